"""Make each mistake of the list in a copy of the repository, and run the tests that map to it.

    PYTHONPATH=tests python -m mistakes [--area AREA] [--only NAME] [--jobs 2] [--results FILE]

A mistake is caught if a test fails. Results are kept in a file, and what stands in it is not run
again. ``--clean`` runs the tests without any mistake: they have to pass within the time limit.
"""

import argparse
import csv
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from .catalogue import AREAS, Mistake, MovedError, mapped_tests, mistakes

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", "_build", "*.egg-info", ".*_cache", "page-shots"
)
# Seconds of processor time that the tests of a file may take, and of waiting for it on a machine
# that does other things too.
CPU_SECONDS, WALL_SECONDS = 60, 900
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
# How pytest ends: all passed, some failed, stopped while it collected.
PASSED, FAILURES, STOPPED = 0, 1, 2


@dataclass(frozen=True)
class Result:
    """What became of one mistake."""

    name: str
    area: str
    file: str
    outcome: str  # "caught", "survived", "timeout", or "error"
    caught_by: str
    seconds: float  # of processor time
    digest: str

    @property
    def is_caught(self) -> bool:
        """Whether a test has seen it."""
        return self.outcome == "caught"


class Copy:
    """A copy of the repository in which one mistake at a time is made."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self.root = folder
        shutil.copytree(tree, folder, ignore=LEFT_OUT, symlinks=True)
        self._environment = {
            **os.environ, "PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": "1",
        }  # fmt: skip
        found = self._python("-c", "import sktensor_dp; print(sktensor_dp.__file__)")
        if not found.startswith(str(folder)):
            raise RuntimeError(f"tests would import the package from {found}")

    def _python(self, *arguments: str) -> str:
        command = [sys.executable, *arguments]
        return subprocess.check_output(command, cwd=self.root, env=self._environment, text=True)

    def run(self, mistake: Mistake, tests: Sequence[str]) -> Result:
        """Make a mistake, run tests until one fails, and mend it."""
        path = self.root / mistake.file
        changed, before = mistake.made_in(self.root), path.read_bytes()
        try:
            self._write(path, changed.encode())
            status, output, seconds = self.test(tests)
        finally:
            self._write(path, before)
        outcome, first = "survived", FAILED.search(output)
        if status in (FAILURES, STOPPED) and first:
            outcome = "caught"
        elif status < 0:
            outcome = "caught" if mistake.hangs else "timeout"
        elif status != PASSED:
            outcome = "error"
        caught_by = first[1].partition("[")[0] if outcome == "caught" and first else ""
        return Result(
            mistake.name, mistake.area, mistake.file, outcome, caught_by, seconds, mistake.digest
        )

    def test(self, tests: Sequence[str]) -> tuple[int, str, float]:
        """Exit status of pytest, negative where it was ended; output and seconds."""
        command = [
            sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider",
            *tests,
        ]  # fmt: skip
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                command, cwd=self.root, env=self._environment, stdout=output, stderr=output,
                start_new_session=True, preexec_fn=_limit_processor_time,
            )  # fmt: skip
            status, seconds = _ended(process)
            output.seek(0)
            return status, output.read(), seconds

    def _write(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        # Compiled files are told apart by time and size, which may be those of the last mistake.
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()


def _ended(process: subprocess.Popen[bytes]) -> tuple[int, float]:
    """Exit status of a process, ended where it waits for too long, and processor time of all."""
    deadline, ended = time.monotonic() + WALL_SECONDS, os.WEXITED | os.WNOWAIT | os.WNOHANG
    try:
        while not os.waitid(os.P_PID, process.pid, ended) and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        # What it has started may go on. Until it is waited for, its number is nobody else's.
        os.killpg(process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def _limit_processor_time() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))


def known_results(file: Path) -> dict[tuple[str, str], Result]:
    """Results of earlier runs, by name and digest of the mistake, of those still in the list."""
    if not file.is_file():
        return {}
    listed = {(one.name, one.digest) for one in mistakes()}
    with file.open(newline="", encoding="utf-8") as lines:
        rows: list[dict[str, Any]] = list(csv.DictReader(lines))
    found = [Result(**{**row, "seconds": float(row["seconds"])}) for row in rows]
    return {(one.name, one.digest): one for one in found if (one.name, one.digest) in listed}


def write_results(file: Path, results: Iterable[Result]) -> None:
    """Replace a file by all results so far."""
    unfinished = file.with_suffix(".unfinished")
    with unfinished.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.DictWriter(lines, [one.name for one in fields(Result)], lineterminator="\n")
        writer.writeheader()
        for one in results:
            writer.writerow({**asdict(one), "seconds": f"{one.seconds:.1f}"})
    unfinished.replace(file)


def run_all(
    todo: Sequence[Mistake],
    tree: Path,
    n_jobs: int,
    file: Path,
    known: dict[tuple[str, str], Result],
) -> list[str]:
    """Run what is not known yet, and keep each result at once; return what went wrong."""
    wrong: list[str] = []
    asked: list[tuple[Mistake, list[str]]] = []
    for mistake in todo:
        try:
            mistake.made_in(tree)
            asked.append((mistake, mapped_tests(mistake, tree)))
        except MovedError as error:
            wrong.append(f"{error}: update the list")
    asked = [(one, tests) for one, tests in asked if (one.name, one.digest) not in known]
    lock, copies = threading.Lock(), queue.SimpleQueue[Copy]()

    def run(one: tuple[Mistake, list[str]]) -> None:
        copy = copies.get()
        try:
            result = copy.run(*one)
        finally:
            copies.put(copy)
        with lock:
            told = f"{result.outcome:9} {result.name} ({result.seconds:.1f} s) {result.caught_by}"
            print(told, file=sys.stderr, flush=True)
            if result.outcome == "error":
                wrong.append(f"{result.name}: its tests could not be run")
                return
            known[result.name, result.digest] = result
            write_results(file, known.values())

    with tempfile.TemporaryDirectory() as folder:
        for number in range(min(n_jobs, len(asked))):
            copies.put(Copy(tree, Path(folder) / str(number)))
        with ThreadPoolExecutor(n_jobs) as pool:
            list(pool.map(run, asked))
    return wrong


def check_clean(todo: Sequence[Mistake], tree: Path) -> list[str]:
    """Run the tests of each file without a mistake; return those that fail or take too long."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(tree, Path(folder) / "clean")
        lists = {one.file: mapped_tests(one, tree) for one in todo}
        for tests in dict.fromkeys(map(tuple, lists.values())):
            status, output, seconds = copy.test(tests)
            files = ", ".join(file for file, own in lists.items() if tuple(own) == tests)
            print(f"{seconds:5.1f} s  {files}", file=sys.stderr, flush=True)
            if status != PASSED:
                failed = FAILED.search(output)
                told = failed[1] if failed else f"status {status}"
                wrong.append(f"tests of {files} do not pass without a mistake: {told}")
    return wrong


def table(todo: Sequence[Mistake], known: dict[tuple[str, str], Result]) -> str:
    """How many mistakes of each area were caught, and those that were not."""
    found = [known[one.name, one.digest] for one in todo if (one.name, one.digest) in known]
    lines = ["| area | mistakes | caught | seconds |", "| --- | --- | --- | --- |"]
    for area in [*AREAS, "all"]:
        own = [one for one in found if area in (one.area, "all")]
        caught, seconds = sum(one.is_caught for one in own), sum(one.seconds for one in own)
        if own:
            lines.append(f"| {area} | {len(own)} | {caught} | {seconds:.0f} |")
    harms = {one.name: one.harm for one in todo}
    left = [one for one in found if not one.is_caught]
    if left:
        lines += ["", "| not caught | file | what goes wrong |", "| --- | --- | --- |"]
        lines += [
            f"| {one.name}{' (timeout)' * (one.outcome == 'timeout')} | {one.file} "
            f"| {harms[one.name]} |"
            for one in left
        ]
    return "\n".join(lines)


def main() -> int:
    """Run what is asked for and print a table."""
    parser = argparse.ArgumentParser(prog="python -m mistakes", description=__doc__)
    parser.add_argument("--area", choices=AREAS, action="append")
    parser.add_argument("--only", metavar="NAME", action="append", help="run it again")
    parser.add_argument("--again", action="store_true", help="run those not caught again")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("mistakes.csv"))
    parser.add_argument("--tree", type=Path, default=ROOT, help="repository to make them in")
    parser.add_argument("--clean", action="store_true", help="run the tests without a mistake")
    asked = parser.parse_args()
    todo = mistakes(asked.area or AREAS)
    if asked.only:
        todo = [one for one in todo if one.name in asked.only]
        if len(todo) < len(set(asked.only)):
            parser.error("there are no mistakes of some of these names")
    tree = asked.tree.resolve()
    if asked.clean:
        wrong = check_clean(todo, tree)
    else:
        known = known_results(asked.results)
        again = {(one.name, one.digest) for one in todo if asked.only}
        again |= {key for key, one in known.items() if asked.again and not one.is_caught}
        kept = {key: one for key, one in known.items() if key not in again}
        wrong = run_all(todo, tree, asked.jobs, asked.results, kept)
        print(table(todo, kept))
        wrong += [f"{one.name} was not caught" for one in todo if not _is_caught(one, kept)]
    for one in wrong:
        print(f"ERROR {one}", file=sys.stderr)
    return bool(wrong)


def _is_caught(one: Mistake, known: dict[tuple[str, str], Result]) -> bool:
    found = known.get((one.name, one.digest))
    return found is not None and found.is_caught


sys.exit(main())
