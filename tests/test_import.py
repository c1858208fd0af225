"""What an import loads: names come when they are asked for, and nothing beyond what they need."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from internals import homes

import sktensor_dp

# Used by some fits alone: who imports the library does not wait for them.
LATER = {"dask", "distributed", "matplotlib", "safetensors", "sqlite3"}


def loaded(*statements: str) -> list[set[str]]:
    """Modules that a fresh interpreter has after each statement."""
    code = "\n".join(f"{one}\nimport sys\nprint(*sys.modules)" for one in statements)
    root = Path(sktensor_dp.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )
    return [set(line.split()) for line in done.stdout.splitlines()]


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_estimators_load_no_package_that_scikit_learns_decompositions_do_not() -> None:
    """Pandas is among what scipy loads where it is installed; nobody pays for it twice."""
    theirs, ours = loaded("import sklearn.decomposition", "from sktensor_dp import *")
    found = packages(ours) - packages(theirs)
    # Noise comes from randomgen, a fiftieth of an import: no first fit waits for it.
    own = {"sktensor_dp", "randomgen"}
    # scikit-learn loads narwhals itself from 1.9 on.
    assert own <= found <= {*own, "narwhals", *sys.stdlib_module_names} - {"sqlite3"}
    assert not LATER & packages(ours)
    # No more of scikit-learn either than texts and searches are made of.
    made_of = ["frozen", "feature_extraction", "pipeline", "utils", "_cyutility", "callback"]
    more = {name for name in ours - theirs if name.startswith("sklearn.")}
    assert {name.split(".")[1] for name in more} <= set(made_of)


def test_the_package_alone_loads_nothing_but_itself() -> None:
    before, modules = loaded("pass", "import sktensor_dp")
    assert packages(modules) - {"sktensor_dp"} <= {*sys.stdlib_module_names, *before}


def test_names_come_from_where_type_checkers_see_them() -> None:
    tree = ast.parse(Path(sktensor_dp.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sktensor_dp.")
        for alias in node.names
    }
    later = {name: f"sktensor_dp.{home}" for name, home in homes().items()}
    assert later == {name: home for name, home in seen.items() if not home.endswith(".exceptions")}
    assert set(seen) | {"__version__"} >= set(sktensor_dp.__all__) >= set(seen)
    for name, home in seen.items():
        assert getattr(sktensor_dp, name) is getattr(importlib.import_module(home), name)
    assert set(dir(sktensor_dp)) >= set(seen)


def test_rooms_are_attributes_without_an_import_of_their_own() -> None:
    folder = Path(sktensor_dp.__file__).parent
    rooms = {path.name.removesuffix(".py") for path in folder.iterdir()}
    public = {name for name in rooms if not name.startswith("_") and name != "py.typed"}
    assert public <= set(dir(sktensor_dp))
    for room in public:
        assert getattr(sktensor_dp, room) is importlib.import_module(f"sktensor_dp.{room}")
    drawn = "from sktensor_dp.plotting import BarDisplay\n"
    drawn += "BarDisplay(['a', 'b'], [0.7, 0.3]).plot()"
    modules = loaded("import sktensor_dp\nassert sktensor_dp.tensor.symmetric", drawn)[-1]
    # Displays leave pyplot, and what it shows, alone.
    assert "matplotlib.figure" in modules
    assert "matplotlib.pyplot" not in modules
    with pytest.raises(AttributeError, match="has no attribute 'PrivateNothing'"):
        sktensor_dp.PrivateNothing  # noqa: B018
