"""Processes that share a ledger, or die while they use it; prints what they saw as JSON.

python ledger_processes.py charge FILE --kind pure --processes 8 --charges 200
python ledger_processes.py kill FILE --kills 100

A script of its own, so that it can fork without the threads of a test runner.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from small_completions import X0, Y0, build

import sktensor_dp
from sktensor_dp import BudgetAccountant, BudgetError, PrivateSpectralLDA
from sktensor_dp.privacy.ledger_entries import LedgerEntry
from sktensor_dp.privacy.plan import PrivacyCost, ReleasePlan
from sktensor_dp.privacy.session import Session

WORDS = np.ones((40, 300), dtype=int)


def run_script(*arguments: str) -> dict[str, Any]:
    """Run this file as a script, and return what it printed."""
    roots = [str(Path(__file__).parent), str(Path(sktensor_dp.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(roots), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def cost_of(kind: str, admitted: int) -> PrivacyCost:
    """One charge of a budget of epsilon 5 that admits exactly so many."""
    if kind == "pure":
        return PrivacyCost(epsilon=5.0 / admitted)
    plan = ReleasePlan.split(5.0, 1e-6, {"release": 1}, {"release": admitted})
    return plan.cost_of("release")


def charge(options: argparse.Namespace) -> dict[str, object]:
    """All processes start together and charge as often as they can."""
    # With a delta, pure costs may add up to less than their sum.
    BudgetAccountant(5.0, 0.0 if options.kind == "pure" else 1e-6, path=options.file)
    ready, go = os.pipe(), os.pipe()
    children = []
    for number in range(options.processes):
        answer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(go[1])
            accountant = BudgetAccountant(path=options.file)
            os.write(ready[1], b"1")
            os.read(go[0], 1)
            os.write(answer[1], json.dumps(attempt(accountant, number, options)).encode())
            os._exit(0)
        os.close(answer[1])
        children.append((child, answer[0]))
    for _ in children:
        os.read(ready[0], 1)
    start = time.perf_counter()
    os.close(go[1])
    answers = []
    for child, answer in children:
        with os.fdopen(answer) as stream:
            answers.append(json.loads(stream.read()))
        os.waitpid(child, 0)
    seconds = time.perf_counter() - start
    return {
        "succeeded": [one["succeeded"] for one in answers],
        "refused": [one["refused"] for one in answers],
        "longest": max(one["longest"] for one in answers),
        "seconds": seconds,
    }


def attempt(
    accountant: BudgetAccountant, number: int, options: argparse.Namespace
) -> dict[str, float]:
    succeeded = refused = 0
    longest = 0.0
    cost = cost_of(options.kind, options.admitted)
    for _ in range(options.charges):
        start = time.perf_counter()
        try:
            entry = LedgerEntry(f"process {number}", "release", 1, cost)
            accountant.charge([entry])
            succeeded += 1
        except BudgetError:
            refused += 1
        longest = max(longest, time.perf_counter() - start)
    return {"succeeded": succeeded, "refused": refused, "longest": longest}


def kill(options: argparse.Namespace) -> dict[str, object]:
    """Kill fits at random moments; count what left them and what was charged."""
    chance = random.Random()
    start = time.perf_counter()
    accountant = BudgetAccountant(1e9, 1e-3, path=options.file, units="any")
    fit(accountant)
    whole = time.perf_counter() - start
    before = charged(options.file)
    shortfalls, mid_fit = [], 0
    with tempfile.NamedTemporaryFile(dir=Path(options.file).parent) as sink:
        for _ in range(options.kills):
            os.ftruncate(sink.fileno(), 0)
            child = os.fork()
            if child == 0:
                fit_for_ever(accountant, sink.name)
            time.sleep(chance.uniform(0, 2 * whole))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            left = Counter(Path(sink.name).read_text("ascii").split())
            after = charged(options.file)
            paid, before = after - before, after
            shortfalls += [name for name in left if left[name] > paid[name]]
            mid_fit += paid != left
    return {"shortfalls": shortfalls, "mid_fit": mid_fit, "released": sum(before.values())}


def charged(file: str) -> Counter[str]:
    """Uses paid for, by release and cost, as a new process would read them."""
    accountant = BudgetAccountant(path=file)
    uses: Counter[str] = Counter()
    for entry in accountant.entries:
        sign = -1 if entry.gives_back else 1
        uses[f"{entry.release}:{entry.cost.mu!r}:{entry.cost.epsilon!r}"] += sign * entry.uses
    return uses


def fit(accountant: BudgetAccountant) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        build(accountant=accountant, epsilon=3.0, perturbation="gradient", max_iter=2).fit(X0, Y0)
        # One topic alone: the fit gives back what its steps would have cost.
        PrivateSpectralLDA(2, accountant=accountant, epsilon=0.1).fit(WORDS)


def fit_for_ever(accountant: BudgetAccountant, sink: str) -> None:
    """Write down every value as soon as its noise is drawn; what is written survives a kill."""
    usual, out = Session.__call__, os.open(sink, os.O_WRONLY | os.O_APPEND)

    def noted(self, query, *more):
        answer = usual(self, query, *more)
        os.write(out, f"{query.name}:{answer.cost.mu!r}:{answer.cost.epsilon!r}\n".encode())
        return answer

    Session.__call__ = noted
    while True:
        fit(accountant)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["charge", "kill"])
    parser.add_argument("file")
    parser.add_argument("--kind", choices=["pure", "gaussian"], default="pure")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--charges", type=int, default=200)
    parser.add_argument("--admitted", type=int, default=500)
    parser.add_argument("--kills", type=int, default=10)
    options = parser.parse_args()
    run = {"charge": charge, "kill": kill}[options.command]
    json.dump(run(options), sys.stdout)


if __name__ == "__main__":
    main()
