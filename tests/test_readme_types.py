"""What the readme prints passes the type checkers that users run on it."""

import json
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import sktensor_dp

README = Path(__file__).parents[1] / "README.md"
# scikit-learn has no types: what a checker does not know of it says nothing of this library.
UNTYPED = (
    "reportMissingTypeStubs", "reportUnknownMemberType", "reportUnknownVariableType",
    "reportUnknownArgumentType",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples")
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), flags=re.DOTALL)
    assert blocks
    for number, block in enumerate(blocks):
        (folder / f"example_{number}.py").write_text(block, encoding="utf-8")
    return folder


def answer(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    return done.stdout + done.stderr if done.returncode else ""


def test_examples_pass_mypy_strict(folder: Path) -> None:
    pytest.importorskip("mypy", reason="mypy comes with the extra 'lint'")
    (folder / "mypy.ini").write_text(
        f"[mypy]\nstrict = True\nmypy_path = {Path(sktensor_dp.__file__).parents[1]}\n"
        "[mypy-sklearn.*]\nignore_missing_imports = True\n"
    )
    files = sorted(path.name for path in folder.glob("*.py"))
    # What earlier runs found of other packages is kept, as they take most of the time.
    kept = f"--cache-dir={README.parent / '.mypy_cache' / 'examples'}"
    command = [sys.executable, "-m", "mypy", kept, "--config-file", "mypy.ini", *files]
    assert answer(command, folder) == ""


def test_examples_pass_pyright_strict(folder: Path) -> None:
    command = Path(sysconfig.get_path("scripts"), "basedpyright")
    if not command.exists():
        pytest.skip("basedpyright comes with the extra 'lint'")
    settings = {
        "typeCheckingMode": "strict",
        "include": ["*.py"],
        "extraPaths": [str(Path(sktensor_dp.__file__).parents[1])],
        **dict.fromkeys(UNTYPED, False),
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    assert answer([str(command), "--pythonpath", sys.executable], folder) == ""
