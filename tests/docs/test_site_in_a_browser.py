"""The built site in a browser: no error, nothing cut off at either width, a search that finds.

``make docs-check`` builds the site first; where there is none, the tests are skipped, but not where
everything is checked.
"""

import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browsing import browser, look, need_browser

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
PHONE, DESK = 390, 1280
# Pages of one kind have one layout: of these a few stand for all.
SAMPLED = {"_modules": 2, "reference/generated": 6, "gallery": 6}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not (SITE / "index.html").exists():
        reason = "the site is not built: make docs"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def window(address: str) -> Iterator[object]:
    need_browser()
    with browser() as driver:
        driver.set_page_load_timeout(60)  # type: ignore[attr-defined]
        yield driver


def pages() -> list[str]:
    """Every page that is written by hand, and some of each kind that is generated."""
    found = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
    found = [page for page in found if not page.startswith("_static")]
    chosen = [page for page in found if not page.startswith(tuple(SAMPLED))]
    for folder, number in SAMPLED.items():
        of_kind = [page for page in found if page.startswith(folder)]
        chosen += of_kind[:: max(1, len(of_kind) // number)][:number]
    return chosen


def wider_than_window(driver) -> int:
    return driver.execute_script(
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


# Blocks of code and tables of which a part shows only after scrolling sideways.
CUT_OFF = """
const article = document.querySelector("article");
if (!article) return [];
const hidden = (box) => {
  let most = box.getBoundingClientRect().right - article.getBoundingClientRect().right;
  for (let at = box; at !== article; at = at.parentElement)
    if (at === box || getComputedStyle(at).overflowX !== "visible")
      most = Math.max(most, at.scrollWidth - at.clientWidth);
  return most;
};
return [...article.querySelectorAll("pre, table")]
  .filter((box) => hidden(box) > 1)
  .map((box) => `${Math.round(hidden(box))} pixels of ${box.textContent.trim().slice(0, 40)}`);
"""


def test_pages_fit_their_window_and_say_nothing_on_the_console(address, window) -> None:
    faults = {}
    for page in pages():
        window.get(f"{address}/{page}")
        for width in (PHONE, DESK):
            look(window, width)
            if wider := wider_than_window(window):
                faults[f"{page} at {width}"] = f"{wider} pixels too wide"
            # Code of the package is shown as it is.
            if not page.startswith("_modules") and (cut := window.execute_script(CUT_OFF)):
                faults[f"{page} at {width}"] = f"{len(cut)} cut off: {cut}"
        broken = "return [...document.images].filter(i => !i.naturalWidth).map(i => i.src)"
        if pictures := window.execute_script(broken):
            faults[page] = f"no picture: {pictures}"
        for line in window.get_log("browser"):
            if line["level"] in ("WARNING", "SEVERE"):
                faults[page] = line["message"]
    assert not faults, "\n".join(f"{page}: {fault}" for page, fault in faults.items())


@pytest.mark.parametrize(
    ("words", "answer"),
    [("epsilon", "privacy/epsilon.html"), ("PrivateSpectralLDA", "PrivateSpectralLDA.html")],
)
def test_search_finds_without_a_network(address, window, words: str, answer: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    look(window, DESK)
    window.get(f"{address}/search.html?q={words}")
    # Results come one by one.
    WebDriverWait(window, 60).until(
        lambda driver: driver.execute_script(
            "return [...document.querySelectorAll('#search-results li a')]"
            ".some(link => link.href.includes(arguments[0]))",
            answer,
        )
    )
