"""Every figure and table in docs/papers, drawn again: what `make papers` runs.

::

    python papers/redraw.py                        # some twenty minutes on two idle cores
    python papers/redraw.py --movielens ml-100k    # ratings from a folder, not the network
    python papers/redraw.py --quick --out drafts   # some minutes: small settings, no claims

Two scripts run at a time, each with one BLAS thread. MovieLens 100K is downloaded unless its folder
is given; where it cannot be had, figure 3 of Wei et al. is left out and said to be. At the end
claims are judged by the new numbers, and the tables of the pages rewritten. Ends with 1 if a script
failed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paper_claims
from figure_files import PAPERS, PROGRESS_FILE

from sktensor_dp.datasets import fetch_movielens_100k

HERE = Path(__file__).resolve().parent
RATINGS = ("ua.base", "ua.test")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
POLL_SECONDS = 0.25
BAR = 30


@dataclass(frozen=True)
class Script:
    """A script, and the seconds that its stages take, from which the time left is judged.

    Stages carry the labels that the script reports its progress under.
    """

    name: str
    stages: dict[str, float]

    @property
    def seconds(self) -> float:
        """Of all stages."""
        return sum(self.stages.values())

    def done(self, label: str, share: float) -> float:
        """Seconds of work done when a share of a stage is."""
        labels = list(self.stages)
        if label not in labels:
            return 0.0
        before = labels[: labels.index(label)]
        return sum(self.stages[name] for name in before) + share * self.stages[label]


# The longest first, so that the last ones to end are short.
SCRIPTS = (
    Script("figure_wei", {"figure 2": 350.0, "figure 3": 300.0}),
    Script("figure_imtiaz_sarwate", {"fits": 200.0}),
    Script("theorem_whitening", {"proposition B.1": 170.0}),
    Script("figure_wang_anandkumar", {"failures": 165.0}),
    Script("theorem_private_power_method", {"theorem 4.2": 150.0}),
    Script("theorem_power_method", {"theorem 2.2": 140.0}),
    Script("theorem_stream", {"theorem 3.1": 120.0}),
    Script("theorem_spectral_lda", {"theorems 10 to 16": 90.0}),
    Script("theorem_incoherence", {"lemma E.1": 10.0}),
)


@dataclass(eq=False)
class Run:
    """A script at work: its process, what it says, and how far it says it is."""

    script: Script
    process: "subprocess.Popen[bytes]"
    log: Path
    report: Path
    started: float = field(default_factory=time.monotonic)

    def done(self) -> float:
        """Seconds of work done, by its own last report."""
        if not self.report.exists():
            return 0.0
        label, *counts = self.report.read_text(encoding="utf-8").rstrip("\n").split("\t")
        # A report may be read while it is written.
        if len(counts) != 2 or not all(count.isdigit() for count in counts):
            return 0.0
        return self.script.done(label, int(counts[0]) / max(int(counts[1]), 1))


def main(arguments: Sequence[str] | None = None, scripts: Sequence[Script] = SCRIPTS) -> int:
    options = parse_arguments(arguments)
    ratings = ratings_folder(options)
    if options.movielens is not None and ratings is None:
        print(
            f"error: {' and '.join(RATINGS)} are not both in {options.movielens}", file=sys.stderr
        )
        return 2
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        failed = run_all(scripts, options, ratings, Path(folder))
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
        files = fetch_movielens_100k().filenames
    except OSError as error:
        print(f"MovieLens 100K: {error}")
        return None
    return files[RATINGS[0]].parent


# ----------------------------------------------------------------- the running


def run_all(
    scripts: Sequence[Script], options: argparse.Namespace, ratings: Path | None, folder: Path
) -> list[str]:
    """Run scripts, some at a time; return the names of those that failed."""
    waiting, running, failed = list(scripts), [], []
    finished, start = 0.0, time.monotonic()
    total = sum(script.seconds for script in scripts)
    try:
        while waiting or running:
            while waiting and len(running) < options.jobs:
                running.append(started(waiting.pop(0), options, ratings, folder))
            time.sleep(POLL_SECONDS)
            for run in [run for run in running if run.process.poll() is not None]:
                running.remove(run)
                finished += run.script.seconds
                failed += ended(run)
            done = finished + sum(run.done() for run in running)
            show(done / total, time.monotonic() - start, running)
    finally:
        for run in running:
            run.process.terminate()
    return failed


def started(script: Script, options: argparse.Namespace, ratings: Path | None, folder: Path) -> Run:
    log, report = folder / f"{script.name}.log", folder / f"{script.name}.progress"
    command = [sys.executable, str(HERE / f"{script.name}.py"), "--out", str(options.out)]
    command += ["--quick"] if options.quick else []
    if script.name == "figure_wei" and ratings is not None:
        command += ["--movielens", str(ratings)]
    environment = {**os.environ, **ONE_THREAD, PROGRESS_FILE: str(report)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
    return Run(script, process, log, report)


def ended(run: Run) -> list[str]:
    """Say how a script ended; return its name if it failed."""
    seconds, code = time.monotonic() - run.started, run.process.returncode
    clear = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(f"{clear}{run.script.name}: {'done' if code == 0 else 'FAILED'}, {seconds:.0f} s",
          file=sys.stderr, flush=True)  # fmt: skip
    if code == 0:
        return []
    tail = run.log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
    print("\n".join(f"  {line}" for line in tail), file=sys.stderr, flush=True)
    return [run.script.name]


def show(share: float, seconds: float, running: Sequence[Run]) -> None:
    """Draw the bar of all scripts on a terminal, with the time left at the pace so far."""
    if not sys.stderr.isatty():
        return
    full = round(BAR * share)
    left = f"{minutes(seconds / share * (1 - share))} left" if share > 0.01 else ""
    names: list[Any] = [run.script.name for run in running]
    line = f"{'█' * full}{'░' * (BAR - full)} {share:4.0%}  {minutes(seconds)}  {left}"
    print(f"\r\x1b[K{line}  {', '.join(names)}"[:100], end="", file=sys.stderr, flush=True)


def minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


if __name__ == "__main__":
    raise SystemExit(main())
