"""Subcommands that read statements and ledgers."""

import argparse
import inspect
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from sktensor_dp.checks.display import counted, plain, printable
from sktensor_dp.checks.parameters import shown
from sktensor_dp.cli.folder import EARLIER, LEDGER, earlier_runs
from sktensor_dp.cli.manifest import MANIFEST, STATEMENT, Manifest, changed_files
from sktensor_dp.cli.officer_page import (
    DOUBTS,
    NOTES,
    PAGES,
    SHOWS,
    large_delta,
    officer_text,
    write_officer_pages,
)
from sktensor_dp.cli.total import summary_of, total_of
from sktensor_dp.exceptions import LedgerError, StatementError
from sktensor_dp.model_files.saving import load_any
from sktensor_dp.privacy.accountant import CHECK, BudgetAccountant, charges_by_fit
from sktensor_dp.privacy.composition import Composition, cover, unit_costs
from sktensor_dp.privacy.ledger import Ledger
from sktensor_dp.privacy.ledger_entries import column_of
from sktensor_dp.privacy.plan import ROUNDING, PrivacyCost
from sktensor_dp.privacy.report import NOT_COVERED, PLANNED, UNITS, PrivacyReport
from sktensor_dp.privacy.statement import MOST_BYTES, load_statement

MEANING = {
    "releases": "every unit may be in all of these, so costs add up",
    "sequence": "every unit may be in all parts, so costs add up",
    "parallel": "a unit is in one part only, so the dearest part counts",
    "selection": "the best of a secret number of trials, about {n:g} of them",
}


def show_budget(options: argparse.Namespace) -> int:
    """Print every charge of a ledger, or of the ledger of a folder; exit status 0."""
    path = Path(options.file)
    path = path / LEDGER if path.is_dir() else path
    if not os.path.lexists(path):
        raise LedgerError(f"{path} does not exist: no run has spent anything there")
    budget = _verified(path)
    if options.json:
        print(budget.to_json())
    else:
        print(f"ledger {printable(str(path.resolve()))}\n\n{budget}")
    return 0


def _verified(path: Path) -> BudgetAccountant:
    """Budget of a ledger whose sums are those of its charges; else LedgerError."""
    budget = BudgetAccountant(path=path)
    Ledger(path, budget.scope).verify()
    return budget


def check_statements(options: argparse.Namespace) -> int:
    """Add statements up again and print what they promise; return the worst exit status."""
    at_most, kind = options.at_most or math.inf, options.kind
    paths = [options.file]
    if kind != "page":
        paths = [one for path in options.file for one in (path, *earlier_runs(path))]
    checked = [_check(path, at_most, kind, options.output) for path in paths]
    status = max(status for status, _ in checked)
    totals = {total.source: total for _, total in checked if total is not None}
    if status or len(totals) < 2:
        return status
    return _together([*totals.values()], at_most)


def earlier_in_words(runs: Sequence[Path]) -> str:
    """Clause on the folders of earlier runs, and the epsilon that each states."""
    named = []
    for run in runs:
        with suppress(OSError, StatementError):
            epsilon = load_statement((run / STATEMENT).read_bytes()).epsilon
            named.append(f"{run.name} (epsilon {epsilon:.4g})")
    return f", with {', '.join(named)}" if named else ""


def on_all_runs(budget: BudgetAccountant, folder: Path, summary: str, now: str) -> str:
    """Say what all runs of a folder cost, how that is kept, and how the budget was changed."""
    said = (
        f"{summary} That is as of {now}{earlier_in_words(earlier_runs(folder))}; later runs add to "
        "it. The folder's ledger, budget.sqlite, adds them up."
    )
    if math.isfinite(budget.epsilon):
        said += " A run beyond the budget is refused; whoever runs it can raise the budget, which "
        said += "is listed."
    changes = "\n".join(f"- {change}." for change in budget.changes)
    return f"{said}\n\n{changes}".strip()


def time_now() -> str:
    """Date and time, UTC, for a page."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


class Total(NamedTuple):
    """Cost to one unit of all that a file states, or of all that its ledger holds."""

    source: Path
    unit: str
    cost: PrivacyCost
    delta: float


def _together(totals: Sequence[Total], at_most: float) -> int:
    """Print what several files, or folders, cost whoever is in all of them; return exit status."""
    units = sorted({one.unit for one in totals})
    delta = max(one.delta for one in totals)
    cost = PrivacyCost.total((one.cost, 1) for one in totals)
    if math.isinf(epsilon := cost.epsilon_at(delta)):  # more was set aside than one delta
        delta = sum(one.delta for one in totals)
        epsilon = cost.epsilon_at(delta)
    said = f"epsilon is {epsilon:.4g} at delta {plain(delta)} for whoever is in all of them"
    if len(units) > 1:
        epsilon = math.inf
        kinds = " and ".join(map(printable, units))
        said = f"they protect {kinds}, which do not add up: check those of each by themselves"
    if math.isfinite(at_most) and epsilon > at_most * (1 + ROUNDING):
        asked = f"at most {at_most:g} is asked for"
        print(f"Together: REFUSED\n  {said}, and {asked}.", file=sys.stderr)
        return 1
    print(f"Together: {said}.")
    return 0


def _ledger_of(path: Path) -> Path | None:
    """Ledger beside a statement, or above it where an earlier run of a folder made it."""
    folder = path.absolute().parent
    folders = [folder, folder.parent] if EARLIER.fullmatch(folder.name) else [folder]
    return next((one / LEDGER for one in folders if os.path.lexists(one / LEDGER)), None)


def _check(path: Path, at_most: float, kind: str, output: Path | None) -> tuple[int, Total | None]:
    """Check and print one file; return the exit status, and its total for `_together`."""
    n_files, changed, private = 0, list[str](), list[str]()
    if path.is_dir():
        n_files, changed = changed_files(path)
        private = Manifest.of(path).private
        path = path / STATEMENT
    name = printable(str(path))
    try:
        report = _sound_report(path, changed)
        _refuse_beyond(at_most, report.epsilon, seeded=report.seeded)
        runs = _runs_of(path, report, at_most)
        if kind == "page":
            said = _write_page(path, output or path.parent, report, runs.budget)
        else:
            promise = f"{printable(report.guarantee).rstrip('.')}. "
            files = _on_files(n_files, private, runs.budget)
            said = f"{name}: adds up. {promise}{runs.sentence}{files}".rstrip()
            if kind == "show":
                said += "".join(f"\n  {line}" for line in _explained(report)) + "\n"
    except (OSError, ValueError) as error:
        print(f"{name}: {_problem(error, path)}", file=sys.stderr)
        return 1, None
    print(said)
    return 0, runs.total if kind in ("check", "show") else None


def _problem(error: OSError | ValueError, path: Path) -> str:
    """Say why the file at `path` was not checked or has no page, or what is wrong with it."""
    if isinstance(error, FileExistsError):
        return f"adds up, but {error}"
    is_missing = isinstance(error, FileNotFoundError) and path.name == STATEMENT
    if is_missing and (models := sorted(path.parent.glob("*.model"))):
        names = ", ".join(printable(str(model)) for model in models)
        return f"is not there: in its place name what was saved in Python: {names}"
    if is_missing and _ledger_of(path):
        return (
            "is not there: no run in this folder came as far as a model. What they spent: "
            f"sktensor-dp budget show {path.parent}"
        )
    if isinstance(error, OSError):
        advice = "Name the output folder of a run, or its statement.json"
        return f"cannot be read, or its page not written: {error.strerror}. {advice}"
    return "REFUSED\n  " + str(error).replace("\n", "\n  ")


class _Runs(NamedTuple):
    """Total of a statement's folder and its budget, if it has one; else of the statement alone."""

    total: Total
    budget: BudgetAccountant | None = None
    sentence: str = ""  # on all runs of the folder


def _runs_of(path: Path, report: PrivacyReport, at_most: float) -> _Runs:
    """Total of a statement, or of all runs in its folder if that has a ledger.

    Raises StatementError if the total exceeds `at_most`, or is less than what the statement costs.
    """
    unit, ledger = f"{report.unit} ({report.neighbours})", _ledger_of(path)
    cost = cover(unit_costs(report.composition))
    if ledger is None:
        return _Runs(Total(path.resolve(), unit, cost, report.delta))
    budget = _verified(ledger)
    epsilon, delta = total_of(budget)
    if cost.epsilon_at(delta) > epsilon * (1 + ROUNDING):
        raise StatementError(
            f"it adds up, but {printable(str(ledger))} did not pay for it: all that it paid for "
            f"costs less, epsilon {epsilon:.4g}. Move it away, or put the ledger that paid there."
        )
    _refuse_beyond(at_most, epsilon, " of all runs in this folder", seeded=report.seeded)
    earlier = earlier_in_words(earlier_runs(path.parent))
    said = f"All runs in this folder: epsilon {epsilon:.4g} at delta {plain(delta)}{earlier}. "
    return _Runs(Total(ledger.resolve(), unit, budget.cost, delta), budget, said)


def _on_files(n_files: int, private: Sequence[str], budget: BudgetAccountant | None) -> str:
    """Say how many files were checked, which are private, and what is needed for the rest."""
    said = f"{counted(n_files, 'file')} as in {MANIFEST}. " if n_files else ""
    if private:
        said += f"Not to be published, as nothing protects it: {', '.join(private)}. "
    needed = {} if n_files else {"whether other files are the run's": MANIFEST}
    if budget is None:
        needed["what other runs cost"] = LEDGER
    advice = f"; name a folder with {' and '.join(needed.values())} for that."
    return f"{said}Not checked: {', and '.join(needed)}{advice}" if needed else said


def _sound_report(path: Path, changed: list[str]) -> PrivacyReport:
    """Report of a statement that adds up, beside unchanged files; else ValueError."""
    if path.suffix == ".model":
        report: PrivacyReport = _model(path).privacy_report_
        return report
    with path.open("rb") as stream:
        # One byte more than is allowed: a larger file is refused without reading all of it.
        report = load_statement(stream.read(MOST_BYTES + 1))
    if changed:
        raise StatementError(
            f"it adds up, but these files are missing, or are not those that {MANIFEST} has the "
            f"SHA-256 of: {', '.join(map(printable, changed))}."
        )
    return report


def _refuse_beyond(at_most: float, epsilon: float, of_what: str = "", *, seeded: bool) -> None:
    """Raise StatementError if `epsilon` exceeds a finite limit, or `seeded` noise hides nothing."""
    # A budget of 2 that is split adds up to 2.0000000000000004: budgets allow for ROUNDING, too.
    if math.isfinite(at_most) and (seeded or epsilon > at_most * (1 + ROUNDING)):
        what = "it protects nothing" if seeded else f"epsilon{of_what} is {epsilon:.6g}"
        raise StatementError(f"it adds up, but {what}, and at most {at_most:g} is asked for.")


def _write_page(
    path: Path, folder: Path, report: PrivacyReport, budget: BudgetAccountant | None
) -> str:
    """Write the officer's page about a statement or a model; return a sentence on where it is.

    The page shows the `budget` that paid. Raises FileExistsError if there is one.
    """
    if (folder / PAGES[1]).exists():
        raise FileExistsError(
            f"{PAGES[1]} is there already, and was left as it is: read it, or name --output"
        )
    folder.mkdir(parents=True, exist_ok=True)
    unit, now = UNITS.get(report.unit, report.unit), time_now()
    settings = {
        "date of this page": now[:10], "statement": path.name, "one unit": unit,
        "promise": report.guarantee,
    }  # fmt: skip
    settings |= _settings_of(_model(path)) if path.suffix == ".model" else _of_models(path, report)
    said = " ".join(settings.values())
    notes = [one for one in report.notes if not (one in said or one.startswith(PLANNED))]
    if notes:
        settings[NOTES] = " ".join(notes)
    others = "Other analyses of the same data are not counted here: ask for the budget of all."
    if budget is not None:
        for column in {column_of(one.unit) for one in budget.entries} - {""}:
            settings["person"] = f"column {column!r}"
        fits = charges_by_fit(one for one in budget.entries if any(one.cost.amounts))
        paid = [f"{one.spender} ({one.when:%Y-%m-%d %H:%M} UTC)" for one, *_ in fits]
        settings["paid by the budget"] = ", ".join(paid)
        if path.suffix == ".model" and any(one.spender == CHECK for one, *_ in fits):
            settings["found by the check"] = "no model keeps that: ask for what it printed"
        summary = summary_of(budget, several=len(fits) > 1)
        others = on_all_runs(budget, path.parent, summary, now)

    def write(name: str, text: str) -> None:
        (folder / name).write_text(text, encoding="utf-8")

    made = Manifest() if path.suffix == ".model" else Manifest.of(path.parent)
    if made.doubts:
        settings[DOUBTS] = " ".join(made.doubts)
    warnings = filter(None, [large_delta(report.delta, report.n_units, unit), *made.warnings])
    source = "What this page is about"
    text = officer_text(settings, report, source, others, [*dict.fromkeys(warnings)])
    write_officer_pages(write, text)
    return f"Written to {printable(str(folder))}: {', '.join(PAGES)}"


def _model(path: Path) -> Any:
    """Model that `save` wrote in Python."""
    from sktensor_dp.completion import PrivateCPCompletion, PrivateTuckerCompletion
    from sktensor_dp.gaussian_mixture import PrivateGaussianMixture
    from sktensor_dp.power_method import PrivateTensorPowerMethod
    from sktensor_dp.spectral_lda import PrivateSpectralLDA
    from sktensor_dp.spectral_lda.shares import TopicShares
    from sktensor_dp.text import PrivateCountVectorizer

    topics = PrivateCountVectorizer, PrivateSpectralLDA, TopicShares
    samples = PrivateGaussianMixture, PrivateTensorPowerMethod
    return load_any(path, (*topics, *samples, PrivateCPCompletion, PrivateTuckerCompletion))


def _of_models(path: Path, report: PrivacyReport) -> dict[str, str]:
    """Settings of the models beside a statement that lists their releases, by names of files."""
    settings = dict[str, str]()
    for file in sorted(path.parent.glob("*.model")):
        with suppress(OSError, ValueError):  # of something else
            model = _model(file)
            if all(row in report.rows for row in model.privacy_report_.rows):
                of_model = _settings_of(model).items()
                settings |= {f"{file.stem}, {name}": text for name, text in of_model}
    return settings


def _settings_of(model: Any) -> dict[str, str]:
    """Public settings of a model.

    They are its class, its columns, its parameters other than by default, and what it shows.
    """
    settings = {"fitted": type(model).__name__}
    if len(columns := getattr(model, "feature_names_in_", ())):
        settings["columns"] = ", ".join(map(repr, columns))
        if hasattr(model, "topic_table"):  # words, which are among the results
            settings["columns"] = counted(len(columns), "word")
    for name, parameter in inspect.signature(type(model)).parameters.items():
        value = getattr(model, name)
        if shown(value) != shown(parameter.default) and name not in ("epsilon", "delta"):
            settings[name] = _in_words(name, value)
    if said := getattr(model, "in_brief", ""):
        settings[SHOWS] = said
    return settings


def _in_words(name: str, value: Any) -> str:
    """Text of a model's parameter: of names of rows, how many there are of each mode, and one."""
    if name == "values":  # a public list of groups stands there however long it is
        return ", ".join(map(str, value))
    if name == "row_names":
        return "; ".join(
            "none" if names is None else f"a list of {len(names):,}, such as {names[0]!r}"
            for names in value
        )
    if name == "random_state":
        return f"{shown(value)} (of starts and splits; no noise is drawn by it)"
    return shown(value)


def _explained(report: PrivacyReport) -> Iterator[str]:
    """Say what a statement says, line by line."""
    seeded = "seeded" if report.seeded else "not seeded"
    yield f"Unit: {printable(report.unit)}. Noise: on a grid, {seeded}."
    yield "How it adds up:"
    yield from _tree(report.composition, "  ")
    yield "Releases:"
    # Skip the first line, the guarantee, which was printed before.
    yield from (f"  {line}" for line in str(report).splitlines()[1:])
    described = dict.fromkeys(f"  {row.name}: {row.description}" for row in report.rows)
    yield from map(printable, described)
    yield "Not covered:"
    yield from (f"  {words}" for words in NOT_COVERED.values())


def _tree(node: Composition, indent: str) -> Iterator[str]:
    """Lines of a composition and, indented, of its parts."""
    yield f"{indent}{node.kind}: {MEANING[node.kind].format(n=node.n_trials)}"
    if node.rows or node.unused:
        names = [f"{row.uses} {row.name}" for row in node.rows]
        names += [f"{row.uses} {row.name} (paid for, not made)" for row in node.unused]
        yield f"{indent}  {printable(', '.join(names))}"
    for part in node.parts:
        yield f"{indent}  {part.times} {printable(part.role)} of {counted(part.n_units, 'unit')}"
        yield from _tree(part.composition, indent + "    ")
