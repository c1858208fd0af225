"""Scripts of people, as from an installation with no extras but ``[plots,frames]``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from smoke_people import ELSEWHERE, PERSONS, TESTS

pytest.importorskip("matplotlib", reason="it is of the extra 'plots'")


def run(script: Path, folder: Path) -> str:
    """Print in a process that cannot import anything else."""
    start = f"from people import without; without({ELSEWHERE!r}, {str(script)!r})"
    where = {
        **os.environ,
        "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS / 'support'}",
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", start],
        cwd=folder, env=where, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize(
    "person",
    [PERSONS[0], *(pytest.param(one, marks=pytest.mark.nightly) for one in PERSONS[1:])],
    ids=lambda person: person.__name__,
)
def test_what_people_do(person, tmp_path):
    person(tmp_path, run)
