"""Check privacy statements: ``python -m sktensor_dp.report check FILE``."""

import argparse
import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sktensor_dp.exceptions import StatementError
from sktensor_dp.privacy.composition import Composition
from sktensor_dp.privacy.report import NOT_COVERED, PrivacyReport, guarantee_in_words
from sktensor_dp.privacy.statement import MOST_BYTES, load_statement, schema_text
from sktensor_dp.privacy.tables import printable

__all__ = ["load_statement", "main", "schema_text"]

MEANING = {
    "releases": "every unit may be in all of these, so costs add up",
    "sequence": "every unit may be in all parts, so costs add up",
    "parallel": "a unit is in one part only, so the dearest part counts",
    "overlapping": "a unit is in some of the parts, whose costs add up",
    "selection": "the best of a secret number of trials, about {n:g} of them",
    "conversion": "from adding or removing a unit to replacing one",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the command line if not given.

    Returns
    -------
    int
        0 if every statement adds up (and keeps within ``--at-most``), 1 if not; wrong
        arguments end with 2.
    """
    parser = argparse.ArgumentParser(
        prog="python -m sktensor_dp.report", description="Privacy statements of fitted models."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="add statements up again and say what they claim")
    check.add_argument(
        "files", metavar="FILE", nargs="+", help="what privacy_report_.to_json() gave"
    )
    check.add_argument("--quiet", action="store_true", help="print one line for each file")
    check.add_argument(
        "--at-most", metavar="EPSILON", type=float, default=math.inf,
        help="refuse statements of more, and those that protect nothing",
    )  # fmt: skip
    commands.add_parser("schema", help="print the JSON Schema of statements")
    options = parser.parse_args(arguments)
    if options.command == "schema":
        print(schema_text(), end="")
        return 0
    if not options.at_most >= 0:
        parser.error("--at-most must be a number >= 0")
    return max([_check(file, options.at_most, options.quiet) for file in options.files])


def _check(file: str, at_most: float, quiet: bool) -> int:
    """Check one file and say what was found; 0 if it adds up."""
    name = printable(file)
    try:
        with open(file, "rb") as stream:
            # One more than is allowed is refused without reading what follows.
            report = load_statement(stream.read(MOST_BYTES + 1))
        _check_size(report, at_most)
    except OSError as error:
        print(f"{name}: cannot be read: {error.strerror}", file=sys.stderr)
        return 1
    except StatementError as error:
        reasons = str(error).replace("\n", "\n  ")
        print(f"{name}: REFUSED\n  {reasons}", file=sys.stderr)
        return 1
    print(f"{name}: adds up. {printable(guarantee_in_words(report))}")
    if not quiet:
        print("\n".join(f"  {line}" for line in _explained(report)), end="\n\n")
    return 0


def _check_size(report: PrivacyReport, at_most: float) -> None:
    if math.isfinite(at_most) and (report.seeded or report.epsilon > at_most):
        what = "it protects nothing" if report.seeded else f"epsilon is {report.epsilon:.6g}"
        raise StatementError(f"it adds up, but {what}, and at most {at_most:g} is asked for.")


def _explained(report: PrivacyReport) -> Iterator[str]:
    """What a statement says, line by line."""
    assert report.composition is not None
    seeded = "seeded" if report.seeded else "not seeded"
    yield f"Unit: {printable(report.unit)}. Noise: on a grid, {seeded}."
    yield "How it adds up:"
    yield from _tree(report.composition, "  ")
    yield "Releases:"
    rows = tuple(replace(row, name=printable(row.name)) for row in report.rows)
    # The first line is the guarantee, which was said, and the last are the notes.
    table = str(replace(report, rows=rows, unit="unit", neighbours="replace_one")).splitlines()
    yield from (f"  {line}" for line in table[1 : 2 + len(rows)])
    for note in report.notes:
        yield f"Note: {printable(note)}"
    yield "Not covered:"
    yield from (f"  {words}" for words in NOT_COVERED.values())


def _tree(node: Composition, indent: str) -> Iterator[str]:
    yield f"{indent}{node.kind}: {MEANING[node.kind].format(n=node.n_trials)}"
    if node.rows or node.unused:
        names = [f"{row.uses} {row.name}" for row in node.rows]
        names += [f"{row.uses} {row.name} (paid for, not made)" for row in node.unused]
        yield f"{indent}  {printable(', '.join(names))}"
    for part in node.parts:
        units = "unit" if part.n_units == 1 else "units"
        yield f"{indent}  {part.times} {printable(part.role)} of {part.n_units} {units}"
        yield from _tree(part.of, indent + "    ")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        # Whoever reads the table, such as ``head``, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
