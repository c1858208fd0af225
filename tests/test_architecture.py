"""Imports run one way, randomness has one source, fitted state one writer."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import sktensor_dp

PACKAGE = Path(sktensor_dp.__file__).parent
ROOT = PACKAGE.parent
NAME = PACKAGE.name

FILES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted(Path(__file__).parent.rglob("*.py"))

# The order of floors, from the top. A room is a module or package at the package's first level;
# it imports from floors below its own and from no neighbour on it.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("_former_paths",),
    (
        *("completion", "power_method", "spectral_lda", "text"),
        *("model_selection", "published", "budget", "report", "topic_page", "plotting", "datasets"),
        "metrics",
    ),
    ("spectral_topics",),
    ("estimator",),
    ("model_files",),
    ("privacy",),
    ("statistics",),
    ("topics",),
    ("tensor",),
    ("exceptions",),
)
MOST_ROOMS, MOST_ARROWS = 22, 80

# Within the privacy core, and from it to other floors, each part names what it may import.
CORE: dict[str, tuple[str, ...]] = {
    "sampling": (),
    "opendp_sampling": (),
    "noise": ("exceptions", "privacy.opendp_sampling", "privacy.sampling"),
    **{"amounts": (), "calibration": ()},
    # Whether the sampler in use draws so much is asked of public sizes, before a charge.
    "plan": ("privacy.calibration", "privacy.noise.drawable"),
    "shares": ("privacy.calibration", "privacy.plan"),
    **{"documentation": (), "progress": (), "statement_schema": ()},
    "tables": ("privacy.documentation", "statistics.frames"),
    "composition": ("privacy.plan",),
    "written_statement": ("privacy.composition", "privacy.plan", "privacy.selection"),
    "report": (
        *("privacy.composition", "privacy.shares", "privacy.tables"),
        "privacy.written_statement",
    ),
    "strict_json": ("exceptions",),
    # It reads what anyone may have written, and adds it up without data or noise.
    "statement_check": (
        *("exceptions", "privacy.piecewise.piecewise_deviation"),
        *("privacy.composition", "privacy.plan", "privacy.report", "privacy.selection"),
        *("privacy.statement_schema", "privacy.strict_json", "privacy.tables"),
        "privacy.written_statement",
    ),
    "mixture": (),
    "ledger": ("exceptions", "privacy.mixture", "privacy.plan"),
    "sqlite_ledger": ("exceptions", "privacy.ledger", "privacy.plan"),
    "statement": ("privacy.ledger", "privacy.shares", "privacy.tables"),
    "accountant": (
        *("exceptions", "privacy.amounts", "privacy.calibration", "privacy.ledger"),
        *("privacy.plan", "privacy.sqlite_ledger", "privacy.statement", "privacy.tables"),
    ),
    "piecewise": ("privacy.noise",),
    "mechanisms": ("privacy.noise", "privacy.piecewise", "privacy.plan", "tensor"),
    "partition_selection": ("privacy.noise", "privacy.plan"),
    "selection": ("privacy.calibration", "privacy.noise", "privacy.plan"),
    "secret_parts": ("privacy.noise",),
    # An attacker: it sees reports and what was fitted, and no mechanism or statistic.
    "audit": (
        "exceptions",
        "privacy.accountant",
        "privacy.audit",
        "privacy.calibration",
        "privacy.noise",
        "privacy.report",
    ),
    "noisy_histograms": (),
    "released_rows": ("privacy.noise", "statistics"),
    "releases": ("privacy", "statistics", "tensor"),
    "curator": ("privacy", "statistics"),
    "sources": ("privacy.sources", "statistics"),
    "curators": ("privacy.curator", "privacy.curators", "privacy.plan", "statistics", "tensor"),
}
# What the rooms above see of the core: never a mechanism, the noise, or the catalogue.
COUNTER = (
    *("privacy.accountant", "privacy.calibration", "privacy.composition", "privacy.curator"),
    *("privacy.curators", "privacy.documentation", "privacy.piecewise", "privacy.plan"),
    *("privacy.progress", "privacy.report"),
    *("privacy.secret_parts", "privacy.selection", "privacy.sources", "privacy.strict_json"),
    "privacy.tables",
)
# Outside the boundary: what papers print, and the commands that show ledgers and statements.
BESIDE = {
    "published": ("privacy.calibration", "privacy.noise"),
    "budget": ("privacy.accountant", "privacy.sqlite_ledger"),
    "report": (
        *("privacy.composition", "privacy.report", "privacy.statement_check"),
        *("privacy.statement_schema", "privacy.tables", "privacy.written_statement"),
    ),
}
# Functions of public numbers: a threshold and a size checked before anything is charged, and how
# much noise a law has.
EXTRA_NAMES = {
    "privacy.noise.drawable",
    "privacy.partition_selection.largest_share",
    "privacy.partition_selection.selection_threshold",
    "privacy.piecewise.piecewise_deviation",
}
# Functions that turn what the caller passed into validated raw data, and compute nothing.
DATA_WRAPPERS = {
    *("as_counts", "as_entries", "as_labels", "as_samples", "call_foreign", "read", "read_each"),
    *("are_several", "in_order", "split_chunk"),
    *("as_documents", "as_numbers", "kinds_of", "new_frame", "taken"),
}
LEGACY_NUMPY = {"seed", "random", "normal", "standard_normal", "rand", "randn", "randint"}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names of everything imported, anywhere; not those that are put together."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from [str(n.value) for n in node.args if isinstance(n, ast.Constant)]


@cache
def own_imports(path: Path) -> list[str]:
    names = imported(tree_of(path))
    return [name.removeprefix(NAME + ".") for name in names if name.split(".")[0] == NAME]


def below(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def floor_of(room: str) -> int:
    return next(number for number, rooms in enumerate(FLOORS) if room in rooms)


def violations(module: str, names: list[str]) -> list[str]:
    """Imports that run up, to a neighbour, or past the counter of the privacy core."""
    room = module.split(".")[0]
    others = [name for name in names if name.split(".")[0] != room]
    wrong = [name for name in others if floor_of(name.split(".")[0]) <= floor_of(room)]
    if room == "privacy":
        part = module.split(".")[1] if "." in module else ""
        return wrong + [n for n in names if part and not below(n, CORE[part])]
    seen = BESIDE.get(room, COUNTER)
    core = [name for name in others if below(name, ("privacy",))]
    return wrong + [n for n in core if not below(n, seen) and n not in EXTRA_NAMES]


def arrows() -> dict[str, set[str]]:
    """Which room imports from which."""
    found: dict[str, set[str]] = {}
    for path in FILES:
        room = module_of(path).split(".")[0]
        targets = {name.split(".")[0] for name in own_imports(path)}
        found.setdefault(room or "__init__", set()).update(targets - {room})
    return found


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_imports_run_one_way(path: Path) -> None:
    module = module_of(path)
    if module not in {"", "_former_paths"}:  # these gather names and hold nothing
        assert violations(module, own_imports(path)) == []


def test_the_rules_bite() -> None:
    assert violations("spectral_lda.recipe", ["privacy.mechanisms.gaussian_vector"])
    assert violations("spectral_lda.recipe", ["privacy.noise.NoiseSource"])
    assert violations("spectral_lda.recipe", ["privacy.releases.CATALOGUE"])
    assert violations("spectral_lda.recipe", ["power_method.plan.MomentPlan"])
    assert violations("spectral_lda.recipe", ["published.agn"])
    assert violations("spectral_topics.recipe", ["spectral_lda.stream.StreamState"])
    assert violations("estimator.base", ["completion.base.CompletionMixin"])
    assert violations("model_selection.steps", ["completion.base.CompletionMixin"])
    assert violations("tensor.whitening", ["privacy.plan.PrivacyCost"])
    assert violations("topics.simplex", ["statistics.counts.CountChunk"])
    assert violations("statistics.moments", ["privacy.noise.NoiseSource"])
    assert violations("privacy.noise", ["privacy.plan.PrivacyCost"])
    assert violations("privacy.curators.documents", ["privacy.noise.NoiseSource"])
    assert not violations("privacy.curator", ["statistics.query.Chunks"])
    assert not violations("spectral_lda.estimator", ["privacy.curator.DataCurator"])


def test_the_house_is_small() -> None:
    found = arrows()
    rooms, count = len(found), sum(map(len, found.values()))
    for number, floor in enumerate(FLOORS):
        print(f"floor {len(FLOORS) - number:2}  {', '.join(floor)}")
    print(f"{rooms} rooms, {count} arrows")
    assert {room for floor in FLOORS for room in floor} == found.keys() - {"__init__"}
    assert rooms <= MOST_ROOMS
    assert count <= MOST_ARROWS


def test_tests_mirror_the_package() -> None:
    """A folder of tests is a room, or beside the package; at the root, tests of single files."""
    here, rooms = Path(__file__).parent, {room for floor in FLOORS for room in floor}
    beside = {"docs", "examples", "papers", "support"}
    folders = {path.relative_to(here).parts[0] for path in TESTS if path.parent != here}
    assert folders <= rooms | beside
    assert [path.name for path in (here / "support").glob("test_*.py")] == []


def test_there_are_no_cycles() -> None:
    modules = {module_of(path): own_imports(path) for path in FILES if module_of(path)}
    waiting = {
        module: {
            other for other in modules if other != module and any(below(n, (other,)) for n in names)
        }
        for module, names in modules.items()
    }
    # A package's __init__ gathers its own modules, which may name the package.
    for module, others in waiting.items():
        others -= {o for o in others if module.startswith(o + ".") or o.startswith(module + ".")}
    while waiting:
        free = {module for module, others in waiting.items() if not others & waiting.keys()}
        assert free, f"cycle among {sorted(waiting)}"
        waiting = {m: others for m, others in waiting.items() if m not in free}


ABOVE_THE_CORE = [
    path
    for path in FILES
    if module_of(path).split(".")[0] not in {"", "privacy", "published", "statistics"}
]


@pytest.mark.parametrize("path", ABOVE_THE_CORE, ids=module_of)
def test_estimators_ask_and_do_not_compute(path: Path) -> None:
    """Of the statistics they name the classes of queries and of data, no function."""
    names = {n.split(".")[-1] for n in own_imports(path) if below(n, ("statistics",))}
    assert [name for name in names - DATA_WRAPPERS if not name[0].isupper()] == []


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_only_the_curator_reaches_for_raw_data_and_noise(path: Path) -> None:
    if module_of(path) in {"privacy.curator", "privacy.curators.documents"}:
        return
    tree = tree_of(path)
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not used & {"_chunks", "_noise", "_admit", "_answer", "_mean_of_repeated"}


def writes_of_state(tree: ast.AST) -> list[str]:
    """Where attributes are set whose names say that a fit has set them, or all at once."""
    nodes = list(ast.walk(tree))
    stores = [n for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
    hidden = {"_stream", "_model", "_n_features_out"}
    written = [n.attr for n in stores if re.fullmatch(r"[a-z]\w*_", n.attr) or n.attr in hidden]
    whole = [n.attr for n in nodes if isinstance(n, ast.Attribute) and n.attr == "__dict__"]
    calls = [ast.unparse(n.func) for n in nodes if isinstance(n, ast.Call)]
    return written + whole + [c for c in calls if c in {"setattr", "vars(self).update", "delattr"}]


@pytest.mark.parametrize("path", ABOVE_THE_CORE, ids=module_of)
def test_fitted_state_has_one_writer(path: Path) -> None:
    """Publishing, which is the last thing that a fit does."""
    tree = ast.parse(path.read_text(encoding="utf-8"))  # its own, which is written on
    if module_of(path) == "model_files.fitted_state":
        (publish,) = (
            n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "_publish"
        )
        assert writes_of_state(publish) == ["__dict__"]
        publish.body = [ast.Pass()]
    # On a witness, what scikit-learn's validation would write there.
    known = ["n_features_in_"] if module_of(path) == "estimator.inputs" else []
    assert writes_of_state(tree) == known


# They read model files, ledgers, statements, public data and what is installed: no raw data.
HIDING = (
    "model_files",
    "published",
    "datasets.movielens",
    "datasets.texts",
    "plotting",
    "privacy.sqlite_ledger",
    "privacy.statement_check",
    "privacy.strict_json",
    "privacy.tables",
)


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_errors_on_raw_data_are_not_hidden_behind_others(path: Path) -> None:
    """``from None`` leaves the error, with what it quotes, in the context of the new one."""
    if not below(module_of(path), HIDING):
        tree = tree_of(path)
        chained = [node for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.cause]
        assert [ast.unparse(node) for node in chained] == []


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_noise_has_one_source(path: Path) -> None:
    module = module_of(path)
    tree = tree_of(path)
    roots = {name.split(".")[0] for name in imported(tree)}
    if module == "privacy.noise":
        assert {"randomgen", "secrets"} <= roots
    else:
        assert not roots & {"randomgen", "secrets", "random", "uuid"}
    if module.startswith(("privacy", "statistics")):
        drawn = {
            ast.unparse(node)
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("np.random.")
        }
        # Types are named; the one generator, of secret key, and seeds are in noise.py.
        of_noise = {"np.random.Generator", "np.random.SeedSequence"}
        assert drawn <= (of_noise if module == "privacy.noise" else set())


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_no_global_random_state(path: Path) -> None:
    tree = tree_of(path)
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not used & {f"np.random.{name}" for name in LEGACY_NUMPY}


@pytest.mark.parametrize("path", FILES + TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_are_short_and_named_for_what_they_hold(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    assert path.stem not in {"utils", "helpers", "common", "misc", "util", "helper", "tools"}


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_public_names_are_documented(path: Path) -> None:
    tree = tree_of(path)
    # What a protocol, or a class that others derive from, says of its methods holds for all.
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    bases = {kind: set(map(ast.unparse, kind.bases)) for kind in classes}
    known = {
        node.name
        for kind in classes
        if "Protocol" in bases[kind] or any(kind.name in others for others in bases.values())
        for node in kind.body
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)
    }

    def missing(body: list[ast.stmt], owner: str) -> Iterator[str]:
        for node in body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
                continue
            if ast.get_docstring(node) is None and node.name not in known:
                yield owner + node.name
            if isinstance(node, ast.ClassDef):
                yield from missing(node.body, f"{owner}{node.name}.")

    assert ast.get_docstring(tree) is not None or not tree.body
    if not path.stem.startswith("_"):
        assert list(missing(tree.body, "")) == []


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_only_public_parts_of_scikit_learn(path: Path) -> None:
    parts = [name.split(".") for name in imported(tree_of(path))]
    assert [p for p in parts if p[0] == "sklearn" and any(n.startswith("_") for n in p)] == []


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_no_module_reads_private_names_of_another(path: Path) -> None:
    tree = tree_of(path)
    package = module_of(path).split(".")[0]
    private = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(NAME)
        for alias in node.names
        if alias.name.startswith("_") and (node.module or "").split(".")[1:2] != [package]
    ]
    assert private == []
