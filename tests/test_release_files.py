"""Files of a release agree with the package; a public forge checks what any clone can check."""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

import sktensor_dp

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = SETTINGS["project"]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


RECIPE: dict[str, Any] = yaml.safe_load(text_of("conda/recipe.yaml"))


def test_version_is_the_same_everywhere() -> None:
    version = re.escape(sktensor_dp.__version__)
    assert re.search(rf"^version: {version}$", text_of("CITATION.cff"), re.MULTILINE)
    newest = re.search(r"^## \[?(\d+\.\d+\.\d+)", text_of("CHANGELOG.md"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == sktensor_dp.__version__
    assert "version" in PROJECT["dynamic"]
    assert RECIPE["context"]["version"] == sktensor_dp.__version__


def test_the_recipe_needs_what_the_metadata_do() -> None:
    lowest = PROJECT["requires-python"].removeprefix(">=")
    python, *needed = RECIPE["requirements"]["run"]
    assert (python, RECIPE["context"]["python_min"]) == ("python >=${{ python_min }}", lowest)
    assert [line.replace(" ", "") for line in needed] == PROJECT["dependencies"]
    (command,) = RECIPE["build"]["python"]["entry_points"]
    assert command.split(" = ") == list(*PROJECT["scripts"].items())


def test_every_system_can_keep_the_names_of_files() -> None:
    included = SETTINGS["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    made = {"_build", "gallery", "generated", "__pycache__"}
    paths = {path for name in included for path in [ROOT / name, *(ROOT / name).rglob("*")]}
    names = [path.relative_to(ROOT) for path in paths if made.isdisjoint(path.parts)]
    # Case does not count on Windows and macOS.
    counts = Counter(str(name).casefold() for name in names)
    assert [name for name, n in counts.items() if n > 1] == []
    # Windows reserves these, with any ending.
    reserved = re.compile(r"(?i)(con|prn|aux|nul|(com|lpt)\d)(\..*)?|.*[<>:\"|?*\\].*|.*[. ]")
    assert [name for name in names if any(map(reserved.fullmatch, name.parts))] == []


def test_the_list_of_pages_for_language_models_leads_to_pages() -> None:
    targets = re.findall(r"\]\(([\w/]+)\.html\)", text_of("docs/llms.txt"))
    assert len(targets) > 10
    assert [name for name in targets if not list(ROOT.glob(f"docs/{name}.*"))] == []


def test_readme_is_short_and_its_first_screen_has_a_result() -> None:
    lines = text_of("README.md").splitlines()
    assert len(lines) < 120
    first = (
        *("pip install sktensor-dp", "```python", "['math'"),
        *("![", "make demo", "make test"),
    )
    places = [next(n for n, line in enumerate(lines) if line.startswith(word)) for word in first]
    assert places == sorted(places)
    assert places[-1] < 40


def test_files_of_a_release_are_in_the_source_distribution() -> None:
    included = SETTINGS["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert all((ROOT / name).exists() for name in included)
    assert {path.name for path in ROOT.glob("*.md")} <= set(included)


def test_the_files_that_contributors_are_sent_to_exist() -> None:
    named = re.findall(r"`((?:tests|docs|sktensor_dp)/[\w/.*]+)`", text_of("CONTRIBUTING.md"))
    assert len(named) > 10
    assert [path for path in named if not list(ROOT.glob(path))] == []


# The workflow of a public forge

CHECKS: dict[str, Any] = yaml.safe_load(text_of(".github/workflows/checks.yml"))["jobs"]
RELEASE: dict[str, Any] = yaml.safe_load(text_of(".github/workflows/release.yml"))["jobs"]
JOBS = {**CHECKS, **{f"release {name}": job for name, job in RELEASE.items()}}
MATRIX = CHECKS["tests"]["strategy"]["matrix"]


def used(jobs: dict[str, Any]) -> set[str]:
    """Actions that others wrote."""
    steps = [step for job in jobs.values() for step in job["steps"]]
    return {step["uses"].split("@")[0] for step in steps if "uses" in step}


def test_every_step_is_a_target_of_the_makefile_or_stands_on_the_page_for_windows() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    steps = [step for job in JOBS.values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    unknown = {command for command in commands if command.removeprefix("make ") not in targets}
    assert [line for line in unknown if f"`{line}`" not in text_of("docs/install.md")] == []
    # Of others' actions only those that lay the ground.
    lays_ground = {"actions/checkout", "actions/setup-python"}
    assert used(CHECKS) == lays_ground


def test_only_a_job_that_runs_no_code_of_ours_may_publish() -> None:
    carried = {"actions/upload-artifact", "actions/download-artifact"}
    ground = {"actions/checkout", "actions/setup-python", "pypa/gh-action-pypi-publish"}
    assert used(RELEASE) == carried | ground
    trusted = {name for name, job in JOBS.items() if "id-token" in job.get("permissions", {})}
    assert trusted == {"release pypi"}
    job = RELEASE["pypi"]
    assert (job["needs"], job["environment"]) == ("dist", "pypi")
    assert all("run" not in step for step in job["steps"])


def test_hooks_before_a_commit_are_programs_of_lint() -> None:
    (local,) = yaml.safe_load(text_of(".pre-commit-config.yaml"))["repos"]
    assert (local["repo"], {hook["language"] for hook in local["hooks"]}) == ("local", {"system"})
    programs = {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in local["hooks"]}
    assert programs <= {line.split(">=")[0] for line in PROJECT["optional-dependencies"]["lint"]}


def test_versions_of_python_are_those_of_the_metadata() -> None:
    prefix = "Programming Language :: Python :: 3."
    claimed = {"3." + c.removeprefix(prefix) for c in PROJECT["classifiers"] if prefix in c}
    assert set(MATRIX["python"]) == claimed
    page = text_of("docs/versions.md")
    assert all(f"| {version} |" in page for version in claimed)
    for line in PROJECT["dependencies"]:
        name, lowest = line.split(">=")
        assert f"| {name} | {lowest} |" in page


def unknown_names(job: dict[str, Any]) -> set[str]:
    """Of the expressions of a job: what neither its matrix nor the run has."""
    matrix = job.get("strategy", {}).get("matrix", {})
    known = {f"matrix.{name}" for name in matrix if name != "include"}
    used = re.findall(r"\$\{\{(.*?)\}\}", yaml.safe_dump(job, width=1000))
    return {name for text in used for name in re.findall(r"[a-z]+\.[a-z_-]+", text)} - known


def test_jobs_use_names_that_there_are() -> None:
    # A schema sees the shape of the file, and `make lint` holds it against one; a name within an
    # expression that nothing defines would be an empty text, without a word.
    assert [name for name, job in JOBS.items() if unknown_names(job)] == []
    mistaken = {"strategy": {"matrix": {"os": ["x"]}}, "runs-on": "${{ matrix.oss }}"}
    assert unknown_names(mistaken) == {"matrix.oss"}
    assert all(set(extra) == set(MATRIX) - {"include"} for extra in MATRIX["include"])


def test_lint_checks_the_workflow_file() -> None:
    lint = text_of("Makefile").split("\nlint:")[1].split("\n\n")[0]
    assert "vendor.github-workflows .github/workflows/*.yml" in lint
