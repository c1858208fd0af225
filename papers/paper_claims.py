"""Claims of the papers against the numbers beside their figures: docs/papers/claims.csv.

::

    python papers/paper_claims.py    # after figures were redrawn

For each CSV that lies in the folder, claims are judged by the rules written here and in the scripts
of the theorems; the verdicts go into ``claims.csv``, of which pages show those of their figures.
"""

import argparse
import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import theorem_incoherence
import theorem_power_method
import theorem_private_power_method
import theorem_spectral_lda
import theorem_stream
import theorem_whitening
from claims_of_figures import imtiaz_sarwate, wang_anandkumar, wei_ratings, wei_tensors
from figure_files import PAPERS, read_rows
from verdicts import Claim

Rows = Sequence[dict[str, Any]]
THEOREMS = (
    theorem_power_method,
    theorem_stream,
    theorem_whitening,
    theorem_incoherence,
    theorem_private_power_method,
    theorem_spectral_lda,
)
# Name of the CSV, and what judges its rows.
CLAIMS: dict[str, Callable[[Rows], list[Claim]]] = {
    "wang-anandkumar-figure-1": wang_anandkumar,
    **{script.NAME: script.claims for script in THEOREMS},
    "imtiaz-sarwate-figure-1": imtiaz_sarwate,
    "wei-figure-2": wei_tensors,
    "wei-figure-3": wei_ratings,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=PAPERS, help="folder (default docs/papers)")
    folder = parser.parse_args(arguments).out
    judged = write_claims(folder)
    for name, claims in judged.items():
        print(f"\n{name}")
        for claim in claims:
            print(f"  {claim.verdict:<15} {claim.source}: {claim.words}\n{'':<18}{claim.measured}")
    return 0


def write_claims(folder: Path) -> dict[str, list[Claim]]:
    """Judge what lies in a folder, and write claims.csv there."""
    judged = {
        name: claims(read_rows(folder / f"{name}.csv"))
        for name, claims in CLAIMS.items()
        if (folder / f"{name}.csv").exists()
    }
    with (folder / "claims.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["figure", "source", "claim", "measured", "verdict"])
        for name, claims in judged.items():
            writer.writerows([name, c.source, c.words, c.measured, c.verdict] for c in claims)
    return judged


if __name__ == "__main__":
    raise SystemExit(main())
