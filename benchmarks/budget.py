"""A budget in a file: concurrent charges, killed fits, and what a charge costs."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.report import Report
from sktensor_dp import BudgetAccountant
from sktensor_dp.privacy.ledger import Ledger

SUPPORT = Path(__file__).parents[1] / "tests" / "support"
PROCESSES, CHARGES, ADMITTED = 8, 200, 500


def run(report: Report) -> None:
    """Measure everything in a folder beside the working directory, on a real disk."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        concurrency(report, Path(folder))
        faults(report, Path(folder))
        cost(report, Path(folder))


def concurrency(report: Report, folder: Path) -> None:
    charges = CHARGES // 4 if report.quick else CHARGES
    admitted = ADMITTED // 4 if report.quick else ADMITTED
    rows = []
    for kind in ("pure", "gaussian"):
        path = folder / f"{kind}.sqlite"
        answer = script(
            "charge", path, kind=kind, processes=PROCESSES, charges=charges, admitted=admitted
        )
        succeeded = sum(answer["succeeded"])
        # Opened anew: what is on the disk.
        recorded = len(BudgetAccountant(path=path).entries)
        Ledger(path, "default").verify()
        attempts = PROCESSES * charges
        rows.append(
            [kind, attempts, succeeded, recorded, attempts / answer["seconds"], answer["longest"]]
        )
        wrong = abs(succeeded - admitted) + abs(recorded - admitted)
        report.bar(f"{kind} charges lost, doubled or overspent", wrong, 0)
    report.table(
        f"{PROCESSES} processes, {charges} charges each, budget for {admitted}",
        ["kind", "attempts", "succeeded", "recorded", "attempts / s", "longest wait, s"],
        rows,
    )


def faults(report: Report, folder: Path) -> None:
    kills = 10 if report.quick else 100
    path = folder / "killed.sqlite"
    answer = script("kill", path, kills=kills)
    Ledger(path, "default").verify()
    report.table(
        "fits killed at random moments",
        ["kills", "in the middle of a fit", "releases charged", "releases not charged"],
        [[kills, answer["mid_fit"], answer["released"], len(answer["shortfalls"])]],
    )
    report.bar("releases that left a killed process uncharged", len(answer["shortfalls"]), 0)


def cost(report: Report, folder: Path) -> None:
    rows = []
    for name, path, times in (("memory", None, 1000), ("file", folder / "cost.sqlite", 200)):
        budget = BudgetAccountant(1e6, 0.0, path=path)
        for n_charges in (0, 2000 if not report.quick else 200):
            while len(budget.entries) < n_charges:
                for _ in range(100):
                    budget.spend(0.01, 0)
            durations = []
            for _ in range(times):
                start = time.perf_counter()
                budget.spend(0.01, 0)
                durations.append(1e3 * (time.perf_counter() - start))
            rows.append([name, n_charges, statistics.median(durations), max(durations)])
    report.table("time of one charge", ["ledger", "charges before", "median, ms", "max, ms"], rows)


def script(command: str, path: Path, **options: Any) -> dict[str, Any]:
    """Run the processes that the tests use too."""
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    done = subprocess.run(
        [sys.executable, str(SUPPORT / "ledger_processes.py"), command, str(path), *flags],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [SUPPORT, SUPPORT.parents[1]]))},
        stdout=subprocess.PIPE,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
