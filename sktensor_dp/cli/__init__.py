"""The command ``sktensor-dp``: private topics, ratings and groups without writing Python."""

import io
import os
import sys
from collections.abc import Sequence

from sktensor_dp.cli.arguments import parse
from sktensor_dp.exceptions import LedgerError

__all__ = ["main"]

# Options of the command in place of the parameters that errors of loaders and estimators name.
AS_OPTIONS = {
    "column must be given": "--text COLUMN must be given",
    "decimal=','": "--decimal ,",
    "list such cells by missing)": "list such cells by --missing; categories need --category)",
    "quoting='none'": "--quoting none",
    "quoting='standard'": "--quoting standard",
    "encoding='cp1252'": "--encoding cp1252",
    "encoding='utf-16'": "--encoding utf-16",
    r"delimiter='\t'": "--delimiter tab",
    "delimiter=';'": "--delimiter ';'",
    "delimiter='|'": "--delimiter '|'",
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
        0; 1 if a statement or ledger is wrong, or nobody reads the output any more; 2 on wrong
        input, too little data by forecast or check, or a cost beyond the budget; 130 if
        interrupted.
    """
    options = parse(None if arguments is None else list(arguments))
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A character that the console cannot show must not end a run that was paid for.
            sys.stdout.reconfigure(errors="replace")
        # Imported here, so that help appears at once, and an interrupt during the import is
        # handled.
        from sktensor_dp.cli.execution import execute

        return execute(options)
    except KeyboardInterrupt:
        print("\nStopped. Nothing was spent.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever reads, such as ``head``, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ImportError, OSError, ValueError) as error:
        # Errors name parameters of estimators; whoever runs the command knows its options.
        text = " ".join(str(error).split())
        for parameter, option in {
            **AS_OPTIONS,
            "n_components": f"--{options.kind or options.command}",
        }.items():
            text = text.replace(parameter, option)
        print(f"error: {text}", file=sys.stderr)
        return 1 if isinstance(error, LedgerError) else 2
