"""Imports run one way, randomness has one source, every release has a proof."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import sktensor_dp
from sktensor_dp.privacy.releases import CATALOGUE

PACKAGE = Path(sktensor_dp.__file__).parent
ROOT = PACKAGE.parent
NAME = PACKAGE.name

FILES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted(Path(__file__).parent.rglob("*.py"))

# What modules of each kind may import of the package; a prefix allows everything below it.
# Estimators are the modules at the top that are not listed.
ALLOWED: dict[str, tuple[str, ...]] = {
    "exceptions": (),
    "_parameters": (),
    "_docstrings": (),
    "tensor": ("tensor",),
    "topics": ("tensor", "topics"),
    "statistics": ("statistics", "tensor", "topics"),
    # The command that shows a ledger.
    "budget": ("exceptions", "privacy.accountant", "privacy.sqlite_ledger"),
    # Algorithms as their papers print them, sound or not: outside the boundary, and imported by
    # no other part.
    "published": (
        "published",
        "_parameters",
        "exceptions",
        "privacy.calibration",
        "privacy.noise",
        "statistics",
        "tensor",
        "topics",
    ),
    "privacy.sampling": (),
    "privacy.opendp_sampling": (),
    "privacy.noise": ("exceptions", "privacy.opendp_sampling", "privacy.sampling"),
    "privacy.calibration": (),
    "privacy.plan": ("privacy.calibration",),
    "privacy.report": (),
    "privacy.mixture": (),
    "privacy.ledger": ("exceptions", "privacy.mixture", "privacy.plan"),
    "privacy.sqlite_ledger": ("exceptions", "privacy.ledger", "privacy.plan"),
    "privacy.statement": ("privacy.ledger",),
    "privacy.accountant": (
        "exceptions",
        "privacy.calibration",
        "privacy.ledger",
        "privacy.plan",
        "privacy.sqlite_ledger",
        "privacy.statement",
    ),
    "privacy.piecewise": ("privacy.noise",),
    "privacy.mechanisms": ("privacy.noise", "privacy.piecewise", "privacy.plan", "tensor"),
    "privacy.partition_selection": ("privacy.noise", "privacy.plan"),
    "privacy.selection": ("privacy.calibration", "privacy.noise", "privacy.plan"),
    # An attacker: it sees reports and what was fitted, and no mechanism or statistic.
    "privacy.audit": (
        "exceptions",
        "privacy.accountant",
        "privacy.audit",
        "privacy.calibration",
        "privacy.noise",
        "privacy.report",
    ),
    "privacy": ("privacy", "statistics", "exceptions", "tensor"),
}
ESTIMATOR = (
    "exceptions",
    "_base",
    "_parameters",
    "_docstrings",
    "tensor",
    "topics",
    "privacy.accountant",
    "privacy.calibration",
    "privacy.curator",
    "privacy.documents",
    "privacy.entries",
    "privacy.piecewise",
    "privacy.plan",
    "privacy.report",
    "privacy.entries",
    "privacy.samples",
    "privacy.selection",
    "statistics",  # classes alone: see test_estimators_ask_and_do_not_compute
)
# Functions of public numbers: a threshold checked before anything is charged, and how much
# noise a law has.
EXTRA_NAMES = {
    "privacy.partition_selection.selection_threshold",
    "privacy.piecewise.piecewise_deviation",
}
# Functions that turn what the caller passed into validated raw data, and compute nothing.
DATA_WRAPPERS = {"as_counts", "as_entries", "as_samples"}
LEGACY_NUMPY = {"seed", "random", "normal", "standard_normal", "rand", "randn", "randint"}


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names of everything imported, at the top or anywhere else."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(path: Path) -> list[str]:
    names = imported(ast.parse(path.read_text(encoding="utf-8")))
    return [name.removeprefix(NAME + ".") for name in names if name.split(".")[0] == NAME]


def below(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def is_estimator(module: str) -> bool:
    return bool(module) and not any(below(module, (kind,)) for kind in ALLOWED)


def allowed_of(module: str) -> tuple[str, ...]:
    kinds = [kind for kind in ALLOWED if below(module, (kind,))]
    return ALLOWED[max(kinds, key=len)] if kinds else ESTIMATOR


def violations(module: str, names: list[str]) -> list[str]:
    return [
        name for name in names if not below(name, allowed_of(module)) and name not in EXTRA_NAMES
    ]


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_imports_run_one_way(path: Path) -> None:
    module = module_of(path)
    if module:  # __init__ gathers the public names
        peers = [other for other in map(module_of, FILES) if is_estimator(other)]
        names = own_imports(path)
        if is_estimator(module):
            names = [name for name in names if not below(name, tuple(peers))]
        assert violations(module, names) == []


def test_the_rules_bite() -> None:
    assert violations("spectral_lda", ["privacy.mechanisms.gaussian_vector"])
    assert violations("spectral_lda", ["privacy.noise.NoiseSource"])
    assert violations("spectral_lda", ["privacy.releases.CATALOGUE"])
    assert violations("spectral_lda", ["published.agn_avn.agn"])
    assert violations("tensor.whitening", ["privacy.plan.PrivacyCost"])
    assert violations("tensor.whitening", ["exceptions.BudgetError"])
    assert violations("topics.simplex", ["statistics.counts.CountChunk"])
    assert violations("statistics.moments", ["privacy.noise.NoiseSource"])
    assert violations("privacy.noise", ["privacy.plan.PrivacyCost"])
    assert not violations("privacy.curator", ["statistics.query.Chunks"])
    assert not violations("spectral_lda", ["privacy.curator.DataCurator"])


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


@pytest.mark.parametrize("path", [p for p in FILES if is_estimator(module_of(p))], ids=module_of)
def test_estimators_ask_and_do_not_compute(path: Path) -> None:
    """Of the statistics they name the classes of queries and of data, no function."""
    names = {n.split(".")[-1] for n in own_imports(path) if below(n, ("statistics",))}
    assert [name for name in names - DATA_WRAPPERS if not name[0].isupper()] == []


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_only_the_curator_reaches_for_raw_data_and_noise(path: Path) -> None:
    if module_of(path) in {"privacy.curator", "privacy.documents"}:
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not used & {"_chunks", "_noise", "_admit", "_answer"}


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_noise_has_one_source(path: Path) -> None:
    module = module_of(path)
    tree = ast.parse(path.read_text(encoding="utf-8"))
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
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not used & {f"np.random.{name}" for name in LEGACY_NUMPY}


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_release_has_its_proof(name: str) -> None:
    page = ROOT / "docs" / "proofs" / CATALOGUE[name].proof
    assert page.is_file()
    assert len(page.read_text(encoding="utf-8")) > 500


def test_catalogue_names_agree() -> None:
    assert all(name == entry.name for name, entry in CATALOGUE.items())


@pytest.mark.parametrize("path", FILES + TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_are_short_and_named_for_what_they_hold(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    assert path.stem not in {"utils", "helpers", "common", "misc", "util", "helper", "tools"}


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_public_names_are_documented(path: Path) -> None:
    def missing(body: list[ast.stmt], owner: str) -> Iterator[str]:
        for node in body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
                continue
            if ast.get_docstring(node) is None:
                yield owner + node.name
            if isinstance(node, ast.ClassDef):
                yield from missing(node.body, f"{owner}{node.name}.")

    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree) is not None or not tree.body
    if not path.stem.startswith("_"):
        # Names left out of a module's __all__ are its package's own business.
        public = set(getattr(importlib.import_module(f"{NAME}.{module_of(path)}"), "__all__", ()))
        assert [n for n in missing(tree.body, "") if n.split(".")[0] in public] == []


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_only_public_parts_of_scikit_learn(path: Path) -> None:
    names = imported(ast.parse(path.read_text(encoding="utf-8")))
    private = [
        name
        for name in names
        if name.split(".")[0] == "sklearn" and any(part.startswith("_") for part in name.split("."))
    ]
    assert private == []


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_no_module_reads_private_names_of_another(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = module_of(path).split(".")[0]
    private = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(NAME)
        for alias in node.names
        if alias.name.startswith("_") and (node.module or "").split(".")[1:2] != [package]
    ]
    assert private == []
