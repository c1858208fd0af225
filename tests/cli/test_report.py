"""The command that checks privacy statements, and pages for the officer made of them."""

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import MODELS, observed_once, plain, report_of
from commands import Command
from scipy.stats import norm

from sktensor_dp import (
    BudgetAccountant,
    PrivateCPCompletion,
    PrivateTensorPowerMethod,
    check_inputs,
)
from sktensor_dp.cli.folder import LEDGER
from sktensor_dp.cli.officer_page import chance_beyond
from sktensor_dp.privacy.composition import Composition, ReleaseRecord
from sktensor_dp.privacy.report import PLANNED, PrivacyReport
from sktensor_dp.privacy.statement import MOST_BYTES, load_statement


@pytest.fixture
def report(command: Command) -> Command:
    return partial(command, "report")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return stated(tmp_path / "statement.json", report_of("topics"))


def stated(path: Path, report: PrivacyReport) -> Path:
    path.write_text(report.to_json(), "utf-8")
    return path


SHOWN = {
    "topics": (
        *("Unit: document", "costs add up", "2 norm_histogram", "How long"),
        "pair_moments: weighted mean second moment of counts",
    ),
    "components, stream": ("parallel: a unit is in one part only", " batch of "),
    "search, components": (
        *("selection: the best", "parallel: a unit is in one", "1 score of 12 units", "These "),
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_sound_statement_is_explained(name, path, report):
    done = report("show", stated(path, report_of(name)))
    assert done.err == ""
    assert done.out.startswith(f"{path}: adds up. {report_of(name).guarantee}")
    assert "Not checked: whether other files" in done.out.splitlines()[0]
    for words in SHOWN[name]:
        assert words in done.out


def test_a_page_for_the_officer_is_made_of_any_statement(path, report, command):
    first = report_of("topics")
    both = first.followed_by(first, delta=first.delta)
    assert "for-the-officer.html" in report("page", stated(path, replace(both, unit="person"))).out
    written = path.with_name("for-the-officer.md")
    page = written.read_text("utf-8")
    assert f"epsilon is {both.epsilon:.4g}, delta 1 in 1,000,000." in page
    assert "Each of 60 persons, with everything of theirs" in page
    for of_a_run in ("this folder", "budget.sqlite", "{", "}"):
        assert of_a_run not in page
    assert "<h2>How strongly</h2>" in written.with_suffix(".html").read_text("utf-8")
    # What is there, such as the fuller page of a run, stays.
    done = report("page", path, status=1)
    assert "adds up, but for-the-officer.html is there already" in done.err
    assert written.read_text("utf-8") == page
    assert "Written to elsewhere: " in report("page", path, "--output", "elsewhere").out
    assert Path("elsewhere", written.name).read_text("utf-8") == page
    # Beside a ledger the page has its column of persons, and what all of its fits cost.
    BudgetAccountant(9.0, path=path.with_name(LEDGER), units="patient").spend(3, 0)
    checked = report("check", path.parent).out
    assert checked.endswith("are the run's; name a folder with manifest.json for that.\n")
    report("page", path.parent, path, "--output", "whole", status=2)  # one page is of one
    assert not Path("whole").exists()
    report("page", path.parent, "--output", "whole")
    page = Path("whole", written.name).read_text("utf-8")
    assert "all rows with the same value in column 'patient' are one person" in page
    assert "All runs in this folder: epsilon 3 at delta 1e-6; the budget is 9." in page
    assert re.search(r"- paid by the budget: caller \(\d{4}-\d\d-\d\d \d\d:\d\d UTC\)\n", page)
    assert "A run beyond the budget is refused" in page
    assert (
        "epsilon 3 of 9 is spent at delta 1e-6, by 1 fit\n"
        in command("budget", "show", path.parent).out
    )


@pytest.mark.parametrize("kind", ["check", "page"])
def test_a_ledger_that_did_not_pay_is_refused(kind, path, report):
    BudgetAccountant(9.0, path=path.with_name(LEDGER)).spend(0.3, 0)  # of a pilot, say
    done = report(kind, path, status=1)
    assert "did not pay for it: all that it paid for costs less, epsilon 0.3." in done.err


def test_a_model_of_python_is_checked_and_has_a_page_with_its_settings(path, report):
    X = pd.DataFrame(np.eye(3)[np.arange(3000) % 3] * 4, columns=["age", "<b>", "stays"])
    budget = BudgetAccountant(9.0, path=path.with_name(LEDGER))
    model = PrivateTensorPowerMethod(
        2, data_norm=4.0, epsilon=4.0, accountant=budget, random_state=3
    ).fit(X)
    budget.change_budget(8.0)
    file = path.with_name("components.model")
    model.save(file)
    done = report("check", file)
    assert done.out.startswith(f"{file}: adds up. {model.privacy_report_.guarantee}")
    report("page", file)
    page = path.with_name("for-the-officer.md").read_text("utf-8")
    for said in (
        "- statement: components.model\n", "- fitted: PrivateTensorPowerMethod\n",
        "- columns: 'age', '<b>', 'stays'\n", "- n_components: 2\n", "- data_norm: 4.0\n",
        "- random_state: 3 (of starts and splits; no noise is drawn by it)\n",
        "paid by the budget: PrivateTensorPowerMethod (", "the budget became 8; it was 9.",
        "- what it shows: 2 of 2 components were found.\n",
        "Noise was added to\n\n- mean second moment of samples clipped to a ball\n- ",
    ):  # fmt: skip
        assert said in page
    assert "tol:" not in page  # as by default
    assert "<b>" not in path.with_name("for-the-officer.html").read_text("utf-8")
    file.write_bytes(file.read_bytes().replace(b"PowerMethod", b"PowerMethox"))
    assert "components.model: REFUSED" in report("check", file, status=1).err


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_public_names_are_counted_on_a_page_and_models_named_where_no_statement_is(
    tmp_path, report
):
    budget = BudgetAccountant(9.0, path=tmp_path / LEDGER)
    rng, files = np.random.default_rng(0), [tmp_path / "ratings.model", tmp_path / "shops.model"]
    names = [f"art {number:03d}" for number in range(12)]
    X = pd.DataFrame({
        "user": np.repeat(np.arange(300), 10), "item": np.tile(names[:10], 300),
        "shop": rng.choice(list("AB"), 3000),
    })  # fmt: skip
    listed = {"listed": np.ones(3000, bool)}
    check_inputs(listed, groups=X["user"], epsilon=1.0, accountant=budget)
    for file, columns in zip(files, (["user", "item"], ["user", "item", "shop"]), strict=True):
        shape, index = (300, 12, 2)[: len(columns)], (None, names, ["A", "B"])[: len(columns)]
        PrivateCPCompletion(
            0, bounds=(1, 5), shape=shape, row_names=index, unit_mode=0, accountant=budget
        ).fit(X[columns], rng.uniform(1, 5, 3000)).save(file)
    report("page", files[1])
    page = (tmp_path / "for-the-officer.md").read_text("utf-8")
    listed = "- row_names: none; a list of 12, such as 'art 000'; a list of 2, such as 'A'\n"
    assert listed in page
    assert "- found by the check: no model keeps that: ask for what it printed\n" in page
    shows = (
        r"- what it shows: The mean errs by 0\.\d+ \(standard error\)\. Averages of item differ by "
        r"0\.\d+ \(deviation\), and differences from the mean err by 0\.\d+ \(median\)"
        r"(; noise hides how they differ)?\. Averages of shop differ by 0\.\d+ "
    )
    assert re.search(shows, page)
    assert re.search(r"\n- sums over units of their clipped residuals .*\(\d+ times\)\n", page)
    assert page.count("Errors are for persons") <= 1
    said = f"is not there: in its place name what was saved in Python: {files[0]}, {files[1]}\n"
    assert report("check", tmp_path, status=1).err.endswith(said)


def test_what_notes_of_a_report_add_is_on_its_page(path, report):
    alone = report_of("CP, persons")
    report("page", stated(path, alone))
    page = path.with_name("for-the-officer.md").read_text("utf-8")
    added, planned = ([one for one in alone.notes if one.startswith(PLANNED) == is_planned]
                      for is_planned in (False, True))  # fmt: skip
    assert f"- what its report adds: {' '.join(added)}\n" in page
    assert planned
    assert f"\n\n{planned[0]}\n\n## How strongly" in page


@pytest.mark.parametrize("name", MODELS)
def test_models_say_in_brief_what_they_show(name):
    (model, _) = observed_once(plain(name))
    said = getattr(model, "in_brief", None)
    if said is None:
        assert name.startswith(("words", "search"))
    elif getattr(model, "n_components_", 0):
        assert re.search(r"\d of [1-9]\d*[ .]", said)
    assert "nan" not in str(said)


FOUND = "found from noisy numbers, within the budget: .*"


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("topics", {"neighbours": "add_remove"}, "About 60 documents were analysed"),
        ("topics", {"neighbours": "tables in a cell"}, "compares tables in a cell"),
        ("topics", {}, f"{FOUND}cut off"),
        ("CP, range chosen", {}, f"{FOUND}range of values"),
    ],
)
def test_a_page_says_what_is_public_what_is_compared_and_what_was_found(
    path, report, name, changes, said
):
    report("page", stated(path, replace(report_of(name), **changes)))
    assert re.search(said, path.with_name("for-the-officer.md").read_text("utf-8"))


@pytest.mark.parametrize(
    ("mu", "delta", "epsilon", "chance"),
    [
        (1e-300, 0.0, 1.0, 0), (1e-3, 0.0, 100.0, 0), (50.0, 0.0, 0.1, 1), (5.0, 0.0, 1e-9, 1),
        (5.0, 1e-7, 1e-9, 1), (1e6, 1e-6, 1e12, 1e-6), (1e-9, 1e-6, 1e3, 1e-6),
    ],
)  # fmt: skip
def test_no_claim_is_too_odd_for_a_chance(mu, delta, epsilon, chance):
    assert chance_beyond(mu, delta, epsilon) == pytest.approx(chance, rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_a_chance_bounds_what_the_best_test_finds(epsilon):
    """Normal noise, and with probability delta what tells all: outcomes that move odds beyond."""
    delta, mu = 1e-3, 0.8
    beyond = epsilon / mu + mu / 2  # from here densities differ by more than the factor
    sees = delta + (1 - delta) * norm.sf(beyond - mu)
    lowers = (1 - delta) * norm.sf(beyond)
    chance = chance_beyond(mu, delta, epsilon)
    assert sees + lowers <= chance < 6 * sees


def test_each_of_several_files_is_checked(path, report):
    wrong, altered, huge = (path.with_name(name) for name in ("wrong", "altered", "huge"))
    wrong.write_bytes(b"{")
    claims = json.loads(path.read_text("utf-8"))
    claims["guarantee"]["epsilon"] = 0.5
    altered.write_text(json.dumps(claims), "utf-8")
    with huge.open("wb") as file:  # sparse: no more of it is read than a statement may have
        file.truncate(100 * MOST_BYTES)
    model = path.rename(path.with_name("cp.model"))
    assert "is damaged, or holds no model" in report("check", model, status=1).err
    model.rename(path)
    done = report("check", path, wrong, "missing", altered, huge, path, status=1)
    assert done.out.count("adds up") == len(done.out.splitlines()) == 2
    for said in ("not JSON", "missing: cannot be read", "longer than"):
        assert said in done.err
    assert f"{altered}: REFUSED\n  guarantee.epsilon states 0.5, but" in done.err
    report("check", path, path)
    report("check", path.parent)


@pytest.mark.parametrize(
    ("changes", "at_most", "told"),
    [
        ({}, ("--at-most", 1), ""),
        ({}, ("--at-most", 0.9), "at most 0.9 is asked for"),
        ({"epsilon": 1 + 4e-16}, ("--at-most", 1), ""),  # of adding up
        ({"epsilon": 1 + 5e-9}, ("--at-most", 1), "at most 1 is asked for"),
        ({"seeded": True}, (), ""),
        ({"seeded": True}, ("--at-most", 1), "protects nothing"),
    ],
)
def test_a_limit_refuses_what_is_beyond_it_and_what_protects_nothing(
    path, report, changes, at_most, told
):
    changed = stated(path, replace(report_of("topics"), **changes))
    done = report("check", changed, *at_most, status=int(bool(told)))
    assert told in done.err
    assert ("adds up. NOT PRIVATE" in done.out) is ("seeded" in changes and not told)


def test_several_statements_are_added_up(path, report):
    """As whoever is in all of them loses it; a file that is named twice counts once."""
    other = stated(path.with_name("other.json"), report_of("topics"))
    both = (path, other, path)
    said = "epsilon is 1.455 at delta 1e-6 for whoever is in all of them"
    assert report("check", *both, "--at-most", 1.5).out.endswith(f"Together: {said}.\n")
    refused = report("check", *both, "--at-most", 1.4, status=1)
    assert refused.err == f"Together: REFUSED\n  {said}, and at most 1.4 is asked for.\n"
    assert "Together" not in report("check", path, path, "--at-most", 1.4).out
    stated(other, replace(report_of("topics"), unit="person"))
    refused = report("check", *both, "--at-most", 9, status=1)
    assert "document (replace_one) and person (replace_one), which do not add" in refused.err


def test_names_cannot_forge_lines(path, report):
    """Newlines and controls in a statement that adds up do not reach the terminal."""
    evil = "x\n/other.json: adds up.\x1b[2J"
    row = ReleaseRecord(evil, evil, 0.1, 0.5, 0.2, 0.0, 0.0, 1, "gaussian")
    whole = Composition("releases", rows=(row,))
    forged = PrivacyReport(whole.epsilon_at(0.1), 0.1, evil, evil, 20, False, whole, (evil,))
    shown = report("show", stated(path, forged)).out
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert not any(line.startswith("/other") for line in shown.splitlines())


def test_statements_are_read_from_python():
    original = report_of("topics")
    assert load_statement(original.to_json()) == original
