"""The workflow of a public forge runs what anyone with a clone can run, and nothing else."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOW = ROOT / ".github" / "workflows" / "checks.yml"


def jobs() -> dict[str, dict]:
    return yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]


def test_every_step_is_a_target_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    steps = [step for job in jobs().values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    assert {command.removeprefix("make ") for command in commands} <= targets
    # Of others' actions only those that lay the ground.
    used = {step["uses"].split("@")[0] for step in steps if "uses" in step}
    assert used == {"actions/checkout", "actions/setup-python"}


def test_versions_of_python_are_those_of_the_metadata() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    prefix = "Programming Language :: Python :: 3."
    claimed = {"3." + c.removeprefix(prefix) for c in project["classifiers"] if prefix in c}
    assert set(jobs()["tests"]["strategy"]["matrix"]["python"]) == claimed
    page = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    assert all(f"| {version} |" in page for version in claimed)
    for line in project["dependencies"]:
        name, lowest = line.split(">=")
        assert f"| {name} | {lowest} |" in page


def test_actionlint_finds_nothing() -> None:
    found = shutil.which("actionlint")
    if found is None:
        pytest.skip("actionlint is a program of its own, which no registry of Python has whole")
    done = subprocess.run([found, str(WORKFLOW)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
