"""Make each mistake of the list in a copy of the repository, and run the tests that map to it.

    PYTHONPATH=tests python -m mistakes [--area AREA] [--only NAME] [--jobs 2] [--results FILE]

A mistake is caught if a test fails. Results are kept in a file, one a line, and what stands in it
is not run again, but for those of ``--only``. ``--clean`` runs the tests without any mistake: they
have to pass within the time limit.
"""

import argparse
import json
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
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

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


Results = dict[str, Result]  # by the digest of the mistake


class Copy:
    """A copy of the repository in which one mistake at a time is made."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        shutil.copytree(ROOT, folder, ignore=LEFT_OUT, symlinks=True)
        self._environment = {
            **os.environ, "PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": "1",
        }  # fmt: skip
        command = [sys.executable, "-c", "import sktensor_dp; print(sktensor_dp.__file__)"]
        found = subprocess.check_output(command, cwd=folder, env=self._environment, text=True)
        if not found.startswith(str(folder)):
            raise RuntimeError(f"tests would import the package from {found}")

    def run(self, mistake: Mistake, tests: Sequence[str]) -> Result:
        """Make a mistake, run tests until one fails, and mend it."""
        path = self.root / mistake.file
        changed, before = mistake.made_in(self.root), path.read_bytes()
        try:
            self._write(path, changed.encode())
            chosen = ["-k", mistake.cases] if mistake.cases else []
            status, output, seconds = self.test([*tests, *chosen])
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


def known_results(file: Path) -> Results:
    """Results of earlier runs; of two of one mistake the later one counts."""
    lines = file.read_text("utf-8").splitlines() if file.is_file() else []
    return {found["digest"]: Result(**found) for found in map(json.loads, lines)}


def run_all(todo: Sequence[Mistake], n_jobs: int, file: Path, known: Results) -> list[str]:
    """Run what is not known yet, and keep each result at once; return what went wrong."""
    wrong: list[str] = []
    asked: list[tuple[Mistake, list[str]]] = []
    for mistake in todo:
        try:
            mistake.made_in(ROOT)
            asked.append((mistake, mapped_tests(mistake, ROOT)))
        except MovedError as error:
            wrong.append(f"{error}: update the list")
    asked = [(one, tests) for one, tests in asked if one.digest not in known]
    lock, copies = threading.Lock(), queue.SimpleQueue[Copy]()

    def run(one: tuple[Mistake, list[str]]) -> None:
        copy = copies.get()
        try:
            found = copy.run(*one)
        finally:
            copies.put(copy)
        told = f"{found.outcome:9} {found.name} ({found.seconds:.1f} s) {found.caught_by}"
        with lock:
            print(told, file=sys.stderr, flush=True)
            if found.outcome == "error":
                wrong.append(f"{found.name}: its tests could not be run")
                return
            known[found.digest] = found
            with file.open("a", encoding="utf-8") as lines:
                print(json.dumps(asdict(found)), file=lines)

    with tempfile.TemporaryDirectory() as folder:
        for number in range(min(n_jobs, len(asked))):
            copy = Copy(Path(folder) / str(number))
            if number == 0:
                # A file that cannot be read without a mistake would seem to catch each.
                every = sorted({test.split("::")[0] for _, tests in asked for test in tests})
                if copy.test(["--collect-only", *every])[0] != PASSED:
                    return [*wrong, "tests cannot be collected without a mistake"]
            copies.put(copy)
        with ThreadPoolExecutor(n_jobs) as pool:
            list(pool.map(run, asked))
    return wrong


def check_clean(todo: Sequence[Mistake]) -> list[str]:
    """Run the tests of each file without a mistake; return those that fail or take too long."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder) / "clean")
        files: dict[tuple[str, ...], set[str]] = {}
        for one in todo:
            files.setdefault(tuple(mapped_tests(one, ROOT)), set()).add(one.file)
        for tests, own in files.items():
            status, output, seconds = copy.test(tests)
            named = ", ".join(sorted(own))
            print(f"{seconds:5.1f} s  {named}", file=sys.stderr, flush=True)
            if status != PASSED:
                failed = FAILED.search(output)
                told = failed[1] if failed else f"status {status}"
                wrong.append(f"tests of {named} do not pass without a mistake: {told}")
    return wrong


def table(todo: Sequence[Mistake], known: Results) -> str:
    """How many mistakes of each area were caught, and those that were not."""
    found = [known[one.digest] for one in todo if one.digest in known]
    left = [one for one in found if one.outcome != "caught"]
    lines = ["| area | mistakes | caught | seconds |", "| --- | --- | --- | --- |"]
    for area in [*AREAS, "all"]:
        own = [one for one in found if area in (one.area, "all")]
        caught, seconds = len([one for one in own if one not in left]), sum(o.seconds for o in own)
        if own:
            lines.append(f"| {area} | {len(own)} | {caught} | {seconds:.0f} |")
    if left:
        harms = {one.name: one.harm for one in todo}
        lines += ["", "| not caught | file | what goes wrong |", "| --- | --- | --- |"]
        lines += [f"| {one.name} ({one.outcome}) | {one.file} | {harms[one.name]} |"
                  for one in left]  # fmt: skip
    return "\n".join(lines)


def main() -> int:
    """Run what is asked for and print a table."""
    parser = argparse.ArgumentParser(prog="python -m mistakes", description=__doc__)
    parser.add_argument("--area", choices=AREAS, action="append")
    parser.add_argument("--only", metavar="NAME", action="append", help="run it again")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("mistakes.jsonl"))
    parser.add_argument("--clean", action="store_true", help="run the tests without a mistake")
    asked = parser.parse_args()
    todo = mistakes(asked.area or AREAS)
    if asked.only:
        todo = [one for one in todo if one.name in asked.only]
        if len(todo) < len(set(asked.only)):
            parser.error("there are no mistakes of some of these names")
    if asked.clean:
        wrong = check_clean(todo)
    else:
        known = {} if asked.only else known_results(asked.results)
        wrong = run_all(todo, asked.jobs, asked.results, known)
        print(table(todo, known))
        caught = {digest for digest, found in known.items() if found.outcome == "caught"}
        wrong += [f"{one.name} was not caught" for one in todo if one.digest not in caught]
    for one in wrong:
        print(f"ERROR {one}", file=sys.stderr)
    return bool(wrong)


sys.exit(main())
