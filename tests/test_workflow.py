"""The workflow of a public forge runs what anyone with a clone can run, and nothing else."""

import re
import tomllib
from pathlib import Path

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


def unknown_names(job: dict) -> set[str]:
    """Of the expressions of a job: what neither its matrix nor the run has."""
    matrix = job.get("strategy", {}).get("matrix", {})
    known = {f"matrix.{name}" for name in matrix if name != "include"}
    used = re.findall(r"\$\{\{(.*?)\}\}", yaml.safe_dump(job, width=1000))
    return {name for text in used for name in re.findall(r"[a-z]+\.[a-z_-]+", text)} - known


def test_expressions_use_names_that_there_are() -> None:
    # A schema sees the shape of the file, and `make lint` holds it against one; a name within an
    # expression that nothing defines would be an empty text, without a word.
    assert [name for name, job in jobs().items() if unknown_names(job)] == []
    mistaken = {"strategy": {"matrix": {"os": ["x"]}}, "runs-on": "${{ matrix.oss }}"}
    assert unknown_names(mistaken) == {"matrix.oss"}


def test_jobs_of_the_matrix_that_are_added_name_what_it_has() -> None:
    matrix = jobs()["tests"]["strategy"]["matrix"]
    assert all(set(extra) == set(matrix) - {"include"} for extra in matrix["include"])


def test_lint_checks_the_workflow_file() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lint = makefile.split("\nlint:")[1].split("\n\n")[0]
    assert "vendor.github-workflows .github/workflows/*.yml" in lint
    assert WORKFLOW in set((ROOT / ".github" / "workflows").glob("*.yml"))
