"""Subcommands that read statements and ledgers."""

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

from sktensor_dp.checks.display import counted, printable
from sktensor_dp.cli.folder import LEDGER, MANIFEST, changed_files
from sktensor_dp.cli.officer import large_delta, write_officer_pages
from sktensor_dp.exceptions import LedgerError, StatementError
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.composition import Composition
from sktensor_dp.privacy.ledger import Ledger
from sktensor_dp.privacy.opendp_registry import registry_entry
from sktensor_dp.privacy.report import NOT_COVERED, UNITS, PrivacyReport
from sktensor_dp.privacy.statement import MOST_BYTES, load_statement
from sktensor_dp.privacy.statement_schema import schema_text

MEANING = {
    "releases": "every unit may be in all of these, so costs add up",
    "sequence": "every unit may be in all parts, so costs add up",
    "parallel": "a unit is in one part only, so the dearest part counts",
    "overlapping": "a unit is in some of the parts, whose costs add up",
    "selection": "the best of a secret number of trials, about {n:g} of them",
}


ALONE = (
    f"Not checked: whether other files are those that it is about; name the folder with their "
    f"{MANIFEST} for that."
)


def show_budget(options: argparse.Namespace) -> int:
    """Print every charge of a ledger, or of the ledger of a folder."""
    path = Path(options.file)
    path = path / LEDGER if path.is_dir() else path
    if not path.exists():
        raise LedgerError(f"{path} does not exist: no run has spent anything there")
    budget = BudgetAccountant(path=path)
    Ledger(path, budget.scope).verify()
    if options.json:
        print(budget.to_json())
    else:
        print(f"ledger {printable(str(path.resolve()))}\n\n{budget}")
    return 0


def check_statements(options: argparse.Namespace) -> int:
    """Compute the totals of statements from their releases, and print what they claim."""
    if options.kind == "schema":
        print(schema_text(), end="")
        return 0
    at_most = options.at_most or math.inf
    return max([_check(Path(file), at_most, options.kind) for file in options.file])


def _check(path: Path, at_most: float, kind: str) -> int:
    """Check one file and say what was found, or write it for the registry; 0 if it adds up."""
    n_files, changed = changed_files(path) if path.is_dir() else (0, [])
    path = path / "statement.json" if path.is_dir() else path
    name = printable(str(path))
    try:
        report = _sound(path, at_most, changed)
        entry = registry_entry(report) if kind == "registry" else None
        if kind == "page":
            _write_page(path, report)
    except OSError as error:
        advice = "Name the output folder of a run, or its statement.json"
        print(f"{name}: cannot be read: {error.strerror}. {advice}", file=sys.stderr)
        return 1
    except ValueError as error:
        reasons = str(error).replace("\n", "\n  ")
        print(f"{name}: REFUSED\n  {reasons}", file=sys.stderr)
        return 1
    if entry is not None:
        print(json.dumps(entry, indent=2))
        return 0
    files = f"{counted(n_files, 'file')} as in {MANIFEST}." if n_files else ALONE
    print(f"{name}: adds up. {printable(report.guarantee).rstrip('.')}. {files}")
    if kind == "show":
        print("\n".join(f"  {line}" for line in _explained(report)), end="\n\n")
    return 0


def _sound(path: Path, at_most: float, changed: list[str]) -> PrivacyReport:
    """Report of a statement that adds up, to `at_most`, beside unchanged files; else ValueError."""
    with path.open("rb") as stream:
        # One byte more than is allowed: a larger file is refused without reading all of it.
        report = load_statement(stream.read(MOST_BYTES + 1))
    if math.isfinite(at_most) and (report.seeded or report.epsilon > at_most):
        what = "it protects nothing" if report.seeded else f"epsilon is {report.epsilon:.6g}"
        raise StatementError(f"it adds up, but {what}, and at most {at_most:g} is asked for.")
    if changed:
        raise StatementError(
            f"it adds up, but these files are missing, or are not those that {MANIFEST} has the "
            f"SHA-256 of: {', '.join(map(printable, changed))}."
        )
    return report


def _write_page(path: Path, report: PrivacyReport) -> None:
    """Write the officer's page beside a statement; never replace the page of a run."""
    page = path.with_name("for-the-officer.html")
    if page.exists():
        raise ValueError(f"{page.name} is there already: move it away first")
    unit = UNITS.get(report.unit, report.unit)
    settings = {"statement": path.name, "one unit": unit, "promise": report.guarantee}
    others = "Other analyses of the same data are not counted here: ask for the budget of all."

    def write(name: str, text: str) -> None:
        path.with_name(name).write_text(text, encoding="utf-8")

    weak = large_delta(report.delta, report.n_units, unit)
    write_officer_pages(write, settings, report, "What this page is about", others, weak)
    print(f"Written to {printable(str(path.parent))}: {page.name}, {page.stem}.md")


def _explained(report: PrivacyReport) -> Iterator[str]:
    """Say what a statement says, line by line."""
    seeded = "seeded" if report.seeded else "not seeded"
    yield f"Unit: {printable(report.unit)}. Noise: on a grid, {seeded}."
    yield "How it adds up:"
    yield from _tree(report.composition, "  ")
    yield "Releases:"
    # Skip the first line, the guarantee, which was printed before.
    yield from (f"  {line}" for line in str(report).splitlines()[1:])
    told = dict.fromkeys(f"  {row.name}: {row.description}" for row in report.rows)
    yield from map(printable, told)
    yield "Not covered:"
    yield from (f"  {words}" for words in NOT_COVERED.values())


def _tree(node: Composition, indent: str) -> Iterator[str]:
    yield f"{indent}{node.kind}: {MEANING[node.kind].format(n=node.n_trials)}"
    if node.rows or node.unused:
        names = [f"{row.uses} {row.name}" for row in node.rows]
        names += [f"{row.uses} {row.name} (paid for, not made)" for row in node.unused]
        yield f"{indent}  {printable(', '.join(names))}"
    for part in node.parts:
        yield f"{indent}  {part.times} {printable(part.role)} of {counted(part.n_units, 'unit')}"
        yield from _tree(part.of, indent + "    ")
