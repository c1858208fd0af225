"""Every figure and table in docs/papers, drawn again: what `make papers` runs.

::

    python papers/redraw.py                        # some twenty minutes on two idle cores
    python papers/redraw.py --movielens ml-100k    # ratings from a folder, not the network
    python papers/redraw.py --quick --out drafts   # some minutes: small settings, no claims

Two scripts run at a time, each with one BLAS thread. MovieLens 100K is downloaded unless its folder
is given; where it cannot be had, figure 3 of Wei et al. is left out and said to be. At the end
claims are judged by the new numbers. Ends with 1 if a script failed.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import movielens
import paper_claims
from figure_files import PAPERS

HERE = Path(__file__).resolve().parent
RATINGS = ("ua.base", "ua.test")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
# The longest first, so that the last ones to end are short.
SCRIPTS = (
    *("figure_wei", "figure_imtiaz_sarwate", "theorem_whitening", "figure_wang_anandkumar"),
    *("theorem_private_power_method", "theorem_power_method", "theorem_stream"),
    *("theorem_spectral_lda", "theorem_incoherence"),
)


def main(arguments: Sequence[str] | None = None, scripts: Sequence[str] = SCRIPTS) -> int:
    options = parse_arguments(arguments)
    ratings = ratings_folder(options)
    if options.movielens is not None and ratings is None:
        print(
            f"error: {' and '.join(RATINGS)} are not both in {options.movielens}", file=sys.stderr
        )
        return 2
    start = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        succeeded = list(pool.map(partial(run, options=options, ratings=ratings), scripts))
    failed = [name for name, good in zip(scripts, succeeded, strict=True) if not good]
    print(f"Figures and tables are in {options.out} ({time.monotonic() - start:.0f} s).")
    if ratings is None and not options.quick:
        print("Figure 3 of Wei et al. was not drawn anew: MovieLens 100K is not at hand.")
    if not options.quick:
        paper_claims.main(["--out", str(options.out)])
    if failed:
        print(f"\nFAILED: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--movielens", type=Path, help="folder of ua.base and ua.test")
    parser.add_argument("--quick", action="store_true", help="small settings; needs no MovieLens")
    parser.add_argument("--jobs", type=int, default=2, help="scripts at a time (default 2)")
    parser.add_argument("--out", type=Path, default=PAPERS, help="folder (default docs/papers)")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs must be 1 or more")
    # What is drafted must not lie among what the pages quote.
    if options.quick and options.out.resolve() == PAPERS.resolve():
        parser.error("--quick needs another folder: --out")
    return options


def ratings_folder(options: argparse.Namespace) -> Path | None:
    """Folder of the ratings, as given or downloaded; None if they are not to be had."""
    if options.movielens is not None:
        found = all((options.movielens / name).is_file() for name in RATINGS)
        return options.movielens if found else None
    if options.quick:
        return None
    try:
        return movielens.ratings_folder()
    except OSError as error:
        print(f"MovieLens 100K: {error}")
        return None


def run(name: str, options: argparse.Namespace, ratings: Path | None) -> bool:
    """Run a script, say how it ended, and show the end of its output if it failed."""
    command = [sys.executable, str(HERE / f"{name}.py"), "--out", str(options.out)]
    command += ["--quick"] if options.quick else []
    if name == "figure_wei" and ratings is not None:
        command += ["--movielens", str(ratings)]
    start = time.monotonic()
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        env={**os.environ, **ONE_THREAD},
    )  # fmt: skip
    good = ended.returncode == 0
    tail = [] if good else [f"  {line}" for line in ended.stdout.splitlines()[-20:]]
    verdict = f"{name}: {'done' if good else 'FAILED'}, {time.monotonic() - start:.0f} s"
    print("\n".join([verdict, *tail]), file=sys.stderr, flush=True)
    return good


if __name__ == "__main__":
    raise SystemExit(main())
