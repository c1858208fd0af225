"""The page of topics in a browser: every control, keyboard, sizes, light and dark."""

import csv
import time

import numpy as np
import pytest
from browsing import WORDS, axe_source, browser, look, model, need_browser, write_page

STATES = ("", "#compare=2", "#word=ship", "#topic=4", "#find=a")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    need_browser()
    written = write_page(tmp_path_factory.mktemp("page"))
    with browser() as driver:
        driver.page = written
        yield driver


@pytest.fixture
def opened(page):
    """The page as it opens; at the end nothing may have been said on the console."""
    show(page)
    yield page
    assert page.get_log("browser") == []


def show(driver, state="", width=1280, dark=False):
    look(driver, width, dark)
    driver.get("about:blank")
    driver.get(driver.page.url + state)


def element(driver, selector):
    return driver.find_element("css selector", selector)


def text(driver, selector):
    return element(driver, selector).text


def rows(driver, part=".name"):
    return [found.text for found in driver.find_elements("css selector", f"#rows {part}")]


def click(driver, selector):
    """By a script: circles lie over each other, and a pointer would meet another one."""
    driver.execute_script(
        "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))",
        element(driver, selector),
    )


def pressed(driver, selector, keys):
    element(driver, selector).send_keys(keys)


def slide(driver, value):
    driver.execute_script(
        "const s = document.getElementById('relevance'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('input', {bubbles: true}))",
        str(value),
    )


def test_words_of_the_page_are_those_that_python_ranks(opened):
    """Topics of a model are in the order of their shares."""
    for relevance in (1.0, 0.6, 0.0):
        slide(opened, relevance)
        expected = model().top_words(15, WORDS, relevance=relevance)[0]
        assert rows(opened) == expected
    assert text(opened, "#panel-title") == "Topic 1"
    assert "40.0 % of the words" in text(opened, "#panel-note")


def test_two_topics_are_compared_and_a_third_begins_anew(opened):
    click(opened, '.map a[data-topic="2"]')
    assert text(opened, "#panel-title") == "Topic 1 and topic 2"
    assert len(opened.find_elements("css selector", ".map [aria-current]")) == 2
    assert "Divergence 0." in text(opened, "#panel-note")
    click(opened, '.map a[data-topic="3"]')
    assert text(opened, "#panel-title") == "Topic 3"
    click(opened, "#previous")
    assert text(opened, "#panel-title") == "Topic 2"
    click(opened, "#next")
    click(opened, "#next")
    assert text(opened, "#panel-title") == "Topic 4"
    assert "Hidden by noise" in text(opened, "#panel-note")
    opened.back()
    assert text(opened, "#panel-title") == "Topic 3"


def test_a_word_shows_its_topics_and_they_lead_on(opened):
    word = rows(opened)[0]
    click(opened, "#rows button")
    assert f"“{word}” in every topic" in text(opened, "#panel-title")
    assert rows(opened)[0] == "Topic 1"
    assert len(rows(opened)) == 4
    click(opened, "#rows li:nth-child(2) button")
    assert text(opened, "#panel-title").startswith("Topic ")
    click(opened, "#rows button")
    click(opened, "#back")
    assert element(opened, "#back").get_attribute("hidden") is not None


def test_search_order_and_more(opened):
    pressed(opened, "#find", "SHI")
    assert rows(opened) == ["ship"]
    assert "1 word with" in text(opened, "#panel-title")
    click(opened, "#rows button")
    assert "“ship” in every topic" in text(opened, "#panel-title")
    assert element(opened, "#find").get_attribute("value") == ""
    show(opened)
    pressed(opened, "#find", "zzz")
    assert "No word" in text(opened, "#panel-note")
    show(opened, "#relevance=1")
    for order in ("alphabet", "probability", "relevance"):
        click(opened, "#order")
        opened.execute_script(
            "const s = arguments[0]; s.value = arguments[1];"
            "s.dispatchEvent(new Event('change', {bubbles: true}))",
            element(opened, "#order"), order,
        )  # fmt: skip
        if order == "alphabet":
            assert rows(opened) == sorted(rows(opened))
    assert len(rows(opened)) == 15
    click(opened, "#more")
    assert len(rows(opened)) == 30
    click(opened, "#more")
    assert len(rows(opened)) == len(WORDS)
    assert element(opened, "#more").get_attribute("hidden") is not None


def test_a_link_leads_to_its_view(opened):
    show(opened, "#topic=2&compare=3&n=5")
    assert text(opened, "#panel-title") == "Topic 2 and topic 3"
    assert len(rows(opened)) == 5
    show(opened, "#word=tax")
    assert "“tax” in every topic" in text(opened, "#panel-title")
    for wrong in ("#topic=99", "#topic=x&n=-1&relevance=7&order=?", "#word=%3Cscript%3E", "#%"):
        show(opened, wrong)
        assert text(opened, "#panel-title") == "Topic 1"
    click(opened, "#link")
    time.sleep(0.2)
    said = element(opened, "#said").get_attribute("textContent")
    assert said in ("Link copied.", "The address bar has the link.")


def test_hover_and_focus_show_probability_and_interval(opened):
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(opened).move_to_element(element(opened, "#rows button")).perform()
    tip = text(opened, "#tip")
    assert "90 % interval" in tip
    assert "of topic 1" in tip
    name = element(opened, "#rows button").get_attribute("aria-label")
    assert name == tip
    ActionChains(opened).send_keys("\ue00c").perform()  # Escape
    assert not element(opened, "#tip").is_displayed()


def test_keyboard_reaches_and_works_everything(opened):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    show(opened, "#relevance=1")
    reached = set()
    for _ in range(60):
        ActionChains(opened).send_keys(Keys.TAB).perform()
        active = opened.switch_to.active_element
        reached.add(active.get_attribute("id") or active.get_attribute("data-topic")
                    or active.tag_name)  # fmt: skip
    controls = {"find", "order", "relevance", "csv", "link", "previous", "next", "more", "summary"}
    assert controls | {"1", "2", "3", "4"} <= reached
    opened.execute_script("document.querySelector('.map a[data-topic=\"3\"]').focus()")
    ActionChains(opened).send_keys(Keys.ENTER).perform()
    assert text(opened, "#panel-title") == "Topic 1 and topic 3"


def test_table_is_sorted_and_downloaded(opened):
    def shown():
        return [row.text.split()[-1] for row in
                opened.find_elements("css selector", "#topics-table tbody th")]  # fmt: skip

    assert shown() == ["1", "2", "3", "4"]
    click(opened, "#topics-table th[data-sort=share] button")
    assert shown() == ["4", "3", "2", "1"]
    click(opened, "#topics-table th[data-sort=number] button")
    assert shown() == ["1", "2", "3", "4"]
    behaviour = {"behavior": "allow", "downloadPath": str(opened.downloads)}
    opened.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
    click(opened, "#csv")
    target = opened.downloads / "topics.csv"
    for _ in range(100):
        if target.exists():
            break
        time.sleep(0.1)
    with target.open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    expected = model().top_words(15, WORDS, relevance=0.6)
    # Of hidden topics, which are marked, the most probable words.
    probable = np.argsort(-model().components_, axis=1, kind="stable")[:, :15]
    expected = [
        one or [WORDS[place] for place in places]
        for one, places in zip(expected, probable, strict=True)
    ]
    assert [row["word"] for row in found] == [word for row in expected for word in row]
    assert float(found[0]["low"]) < float(found[0]["probability"]) < float(found[0]["high"])
    assert {row["hidden"] for row in found if row["topic"] == "4"} == {"yes"}


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_page_fits_and_axe_finds_nothing_serious(opened, width, dark):
    for state in STATES:
        show(opened, state, width, dark)
        opened.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
        wide = opened.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width, state
        opened.execute_script(axe_source())
        found = opened.execute_async_script(
            "const done = arguments[0]; axe.run(document).then((r) => done(r.violations))"
        )
        serious = [
            (one["id"], [node["html"] for node in one["nodes"]][:3])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert serious == [], state


def test_what_is_folded_opens_for_print(opened):
    folded = "return document.querySelector('details').open"
    assert not opened.execute_script(folded)
    opened.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert opened.execute_script(folded)
    opened.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert not opened.execute_script(folded)


def test_without_its_script_the_page_can_be_read(opened):
    opened.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(opened)
        assert not element(opened, ".panel").is_displayed()
        assert "ship" in text(opened, "#topics-table")
        assert element(opened, ".map").is_displayed()
    finally:
        opened.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
