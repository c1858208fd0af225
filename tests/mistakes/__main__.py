"""Make each mistake of the list in a copy of the repository, and run the tests that map to it.

    PYTHONPATH=tests python -m mistakes [--area AREA] [--only NAME] [--jobs 2] [--results FILE]

A mistake is caught if a test fails. Results are kept in a file, one a line, and what stands in it
is not run again, but for those of ``--only``. ``--clean`` runs the tests without any mistake: they
have to pass within the time limit.
"""

import argparse
import contextlib
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
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .catalogue import AREAS, Mistake, MovedError, mapped_tests, mistakes

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", "_build", "*.egg-info", ".*_cache"
)
# Seconds of processor time that the tests of a file may take, and of waiting for it on a machine
# that does other things too.
CPU_SECONDS, WALL_SECONDS = 60, 900
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
# How pytest ends: all passed, some failed, stopped while it collected.
PASSED, FAILURES, STOPPED = 0, 1, 2

Results = dict[str, dict[str, str]]  # name, outcome and first test to fail, by digest


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

    def run(self, mistake: Mistake, tests: Sequence[str]) -> tuple[str, str]:
        """Make a mistake, run tests until one fails, and mend it: outcome, and which failed."""
        path = self.root / mistake.file
        changed, before = mistake.made_in(self.root), path.read_bytes()
        try:
            self._write(path, changed.encode())
            chosen = ["-k", mistake.cases] if mistake.cases else []
            status, first = self.test([*tests, *chosen])
        finally:
            self._write(path, before)
        if status in (FAILURES, STOPPED) and first:
            return "caught", first.partition("[")[0]
        return "survived" if status == PASSED else "timeout" if status < 0 else "error", ""

    def test(self, tests: Sequence[str]) -> tuple[int, str]:
        """Exit status of pytest, negative where it was ended, and the first test that failed."""
        command = [
            sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider",
            *tests,
        ]  # fmt: skip
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                command, cwd=self.root, env=self._environment, stdout=output, stderr=output,
                start_new_session=True, preexec_fn=_limit_processor_time,
            )  # fmt: skip
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(WALL_SECONDS)
            # What it has started may go on.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
            output.seek(0)
            first = FAILED.search(output.read())
            return status, first[1] if first else ""

    def _write(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        # Compiled files are told apart by time and size, which may be those of the last mistake.
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()


def _limit_processor_time() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))


def run_all(todo: Sequence[Mistake], n_jobs: int, file: Path, known: Results) -> list[str]:
    """Run what is not known yet, and keep each result at once; return what went wrong."""
    wrong, asked = [], []
    for mistake in todo:
        try:
            mistake.made_in(ROOT)
            asked.append((mistake, mapped_tests(mistake, ROOT)))
        except MovedError as error:
            wrong.append(f"{error}: update the list")
    asked = [(one, tests) for one, tests in asked if one.digest not in known]
    copies = queue.SimpleQueue[Copy]()

    def run(one: tuple[Mistake, list[str]]) -> None:
        mistake, copy, begun = one[0], copies.get(), time.monotonic()
        try:
            outcome, by = copy.run(*one)
        finally:
            copies.put(copy)
        seconds = time.monotonic() - begun
        print(f"{outcome:9} {mistake.name} ({seconds:.0f} s) {by}", file=sys.stderr, flush=True)
        if outcome == "error":
            wrong.append(f"{mistake.name}: its tests could not be run")
            return
        found = {"digest": mistake.digest, "name": mistake.name, "outcome": outcome, "by": by}
        known[mistake.digest] = found
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(found) + "\n")

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
        for tests in dict.fromkeys(tuple(mapped_tests(one, ROOT)) for one in todo):
            status, first = copy.test(tests)
            if status != PASSED:
                wrong.append(f"{tests} do not pass without a mistake: {first or status}")
    return wrong


def main() -> int:
    """Run what is asked for, and count what was caught."""
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
        earlier = asked.results.is_file() and not asked.only
        lines = asked.results.read_text("utf-8").splitlines() if earlier else []
        known: Results = {found["digest"]: found for found in map(json.loads, lines)}
        wrong = run_all(todo, asked.jobs, asked.results, known)
        left = [one for one in todo if known.get(one.digest, {}).get("outcome") != "caught"]
        print(f"{len(todo) - len(left)} of {len(todo)} mistakes are caught")
        wrong += [f"{one.name} was not caught: {one.harm}" for one in left]
    for one in wrong:
        print(f"ERROR {one}", file=sys.stderr)
    return bool(wrong)


sys.exit(main())
