"""Show a ledger: ``python -m sktensor_dp.budget show FILE``."""

import argparse
import json
import os
import sys
from collections.abc import Sequence

from sktensor_dp.exceptions import LedgerError
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.ledger import Ledger, scopes_of
from sktensor_dp.privacy.tables import printable

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the command line if not given.

    Returns
    -------
    int
        0 if the ledger could be read and its sums are those of its charges, 1 if
        not; wrong arguments end with 2.
    """
    parser = argparse.ArgumentParser(
        prog="python -m sktensor_dp.budget", description="What a privacy budget was spent on."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="print every charge and the total of each scope")
    show.add_argument("file", metavar="FILE", help="ledger of a BudgetAccountant with a path")
    show.add_argument("--scope", help="this data set only")
    show.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    try:
        scopes = scopes_of(options.file)
        if options.scope is not None:
            if options.scope not in scopes:
                parser.error(f"the ledger has no scope {options.scope!r}; it has {list(scopes)}")
            scopes = (options.scope,)
        for scope in scopes:
            Ledger(options.file, scope).verify()
        budgets = [BudgetAccountant(path=options.file, scope=scope) for scope in scopes]
        shown = [budget.to_dict() if options.json else str(budget) for budget in budgets]
    except LedgerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(shown, indent=2))
    else:
        where = [f"ledger {printable(str(budget.path))}" for budget in budgets[:1]]
        print("\n\n".join([*where, *map(str, shown)]))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        # Whoever reads the table, such as ``head``, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
