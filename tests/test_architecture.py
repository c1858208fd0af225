"""Imports run one way, without circles; noise, queries and raw data stay behind the boundary."""

import ast
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import sktensor_dp
from sktensor_dp import queries
from sktensor_dp.privacy.catalogue import CATALOGUE
from sktensor_dp.queries.query import Query

PACKAGE = Path(sktensor_dp.__file__).parent
NAME = PACKAGE.name
FILES = sorted(PACKAGE.rglob("*.py"))

# Layers from the top. Each module or package at the first level of sktensor_dp imports from layers
# below its own and from no neighbour on it.
LAYERS = (
    ("cli",),
    (
        *("completion", "gaussian_mixture", "power_method", "spectral_lda", "text"),
        *(
            "model_selection",
            "private_check",
            "published",
            "topic_page",
            "plotting",
            "datasets",
            "metrics",
        ),
    ),
    ("estimator",),
    ("model_files",),
    ("privacy",),
    ("queries",),
    ("data", "topics", "mixtures"),
    ("tensor", "checks", "web_page"),
    ("exceptions",),
)


def core(names: str) -> tuple[str, ...]:
    """Names of parts of the privacy core; those of other layers begin with a slash."""
    return tuple(n[1:] if n[0] == "/" else f"privacy.{n}" for n in names.split())


# Within the privacy core, and from it to other layers, each part names what it may import.
CORE = {
    "noise_sampler": core(""),
    "unsafe": core("/exceptions"),
    "noise_source": core("noise_sampler unsafe"),
    "calibration": core(""),
    "zcdp": core("calibration"),
    "plan": core("calibration"),
    "composition": core("plan"),
    "odds": core(""),
    "selection_cost": core("calibration noise_source plan"),
    "partition_selection": core("noise_source plan /queries.laws"),
    "report": core("/checks composition plan selection_cost /queries.laws"),
    # It reads what anyone may have written, and adds it up without data or noise.
    "statement_schema": core(""),
    "statement": core(
        "/checks /exceptions mechanisms.sigma_of composition plan report statement_schema "
        "/queries.laws"
    ),
    "ledger_entries": core("/exceptions calibration plan zcdp"),
    "ledger": core("/exceptions plan ledger_entries"),
    "budget_parts": core("/exceptions calibration plan ledger_entries"),
    "accountant": core("/checks /exceptions budget_parts ledger plan ledger_entries"),
    "mechanisms": core(
        "calibration noise_source plan /queries.laws /queries.query.Coordinates /tensor"
    ),
    "unit_assignment": core("noise_source /data.labels"),
    # An attacker: it sees reports and what was fitted, and no mechanism or statistic.
    "audit": core("/exceptions accountant report"),
    "catalogue": core("mechanisms partition_selection /queries"),
    "answer": core("plan"),
    "sklearn_folds": core("/checks /exceptions ledger_entries"),
    "payer": core("/checks /exceptions accountant sklearn_folds ledger plan report ledger_entries"),
    "session": core("/privacy /data /queries"),
}
# What the packages above see of the core: never a mechanism, the noise, or the catalogue.
COUNTER = core(
    "accountant answer calibration composition odds payer plan report session "
    "ledger_entries.LedgerEntry statement.load_statement statement.strict_json unit_assignment"
)
# Outside the boundary: what papers print, and the command, which shows ledgers and statements.
BESIDE = {
    "published": core("calibration noise_source"),
    "cli": core(
        "accountant calibration composition ledger odds payer plan report ledger_entries "
        "statement statement_schema"
    ),
}
# Functions of public numbers: a threshold checked before anything is charged, what trials may
# cost, from which epsilon on there is a law, and how much noise it has. The number of trials, and
# the process that a fit is in.
EXTRA_NAMES = core(
    "sklearn_folds.FoldRows "
    "mechanisms.PIECEWISE_EPSILONS mechanisms.piecewise_deviation mechanisms.piecewise_variance "
    "mechanisms.sigma_of noise_source.OneProcess "
    "partition_selection.largest_weight partition_selection.most_units_below "
    "partition_selection.selection_threshold "
    "selection_cost.failure_of_trials selection_cost.secret_trials selection_cost.stop_probability "
    "selection_cost.trial_cost unsafe.open_blocks unsafe.refuse_recording"
)
# Functions that turn what the caller passed into validated raw data, and compute nothing.
DATA_WRAPPERS = {
    *("as_counts", "as_entries", "as_incomplete", "as_labels", "as_samples"),
    *("are_repeated", "are_several", "distinct", "in_order", "normalise_labels", "split_chunk"),
    "check_chunks",
}
# The version and the types of arrays, which every part may name.
SHARED = {"__version__", "tensor.arrays.Floats", "tensor.arrays.Integers"}
LEGACY_NUMPY = {"seed", "random", "normal", "standard_normal", "rand", "randn", "randint"}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] in ("__init__", "__main__") else parts)


def last_name(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names of everything imported, anywhere; not those that are put together."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and last_name(node.func) == "import_module":
            yield from [str(n.value) for n in node.args if isinstance(n, ast.Constant)]


@cache
def own_imports(path: Path) -> list[str]:
    names = imported(tree_of(path))
    return [name.removeprefix(NAME + ".") for name in names if name.split(".")[0] == NAME]


def below(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def layer_of(package: str) -> int:
    return next(number for number, packages in enumerate(LAYERS) if package in packages)


def violations(module: str, names: list[str]) -> list[str]:
    """Imports that run up, to a neighbour, or past the counter of the privacy core."""
    package, names = module.split(".")[0], [name for name in names if name not in SHARED]
    others = [name for name in names if name.split(".")[0] != package]
    wrong = [name for name in others if layer_of(name.split(".")[0]) <= layer_of(package)]
    if package == "privacy":
        part = module.split(".")[1] if "." in module else ""
        return wrong + [n for n in names if part and not below(n, CORE[part])]
    seen = BESIDE.get(package, COUNTER)
    core = [name for name in others if below(name, ("privacy",))]
    return wrong + [n for n in core if not below(n, seen) and n not in EXTRA_NAMES]


def imports() -> dict[str, set[str]]:
    """Which package imports from which."""
    found: dict[str, set[str]] = {}
    for path in FILES:
        package = module_of(path).split(".")[0]
        targets = {name.split(".")[0] for name in own_imports(path)}
        found.setdefault(package or "__init__", set()).update(targets - {package})
    return found


def offenders(found_in: Callable[[Path], Iterable[str]], files: list[Path] = FILES) -> list[str]:
    """Names found in any of the files, each with its module."""
    return [f"{module_of(path)}: {name}" for path in files for name in found_in(path)]


def test_imports_run_one_way() -> None:
    modules = [path for path in FILES if module_of(path)]  # the package itself only gathers names
    assert offenders(lambda path: violations(module_of(path), own_imports(path)), modules) == []


WRONG = (
    ("spectral_lda.fitted", "privacy.mechanisms.gaussian_vector"),
    ("spectral_lda.fitted", "privacy.noise_source.NoiseSource"),
    ("spectral_lda.fitted", "privacy.releases.CATALOGUE"),
    ("spectral_lda.fitted", "power_method.plan.ComponentPlan"),
    ("topics.moments", "spectral_lda.recipe.fit_topics"),
    ("estimator.base", "completion.estimator.CompletionMixin"),
    ("tensor.whitening", "privacy.plan.PrivacyCost"),
    ("queries.count_moments", "privacy.noise_source.NoiseSource"),
    ("privacy.noise_source", "privacy.plan.PrivacyCost"),
    ("spectral_lda.clips", "privacy.noise_source.NoiseSource"),
)


def test_the_rules_bite() -> None:
    assert [pair for pair in WRONG if not violations(pair[0], [pair[1]])] == []
    assert not violations("privacy.session", ["data.units.Chunks"])
    assert not violations("spectral_lda.estimator", ["privacy.session.Session"])


def test_every_room_has_a_floor() -> None:
    assert {package for layer in LAYERS for package in layer} == imports().keys() - {"__init__"}


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


CORE_PACKAGES = {"", "data", "privacy", "published", "queries"}
ABOVE_THE_CORE = [path for path in FILES if module_of(path).split(".")[0] not in CORE_PACKAGES]


def test_estimators_ask_and_do_not_compute() -> None:
    """Of the queries they name the classes of queries and of data, no function."""

    def functions(path: Path) -> list[str]:
        found = [n for n in own_imports(path) if below(n, ("data", "queries"))]
        names = {n.split(".")[-1] for n in found}
        return [name for name in names - DATA_WRAPPERS if not name[0].isupper()]

    assert offenders(functions, ABOVE_THE_CORE) == []


@cache
def attributes_in(path: Path) -> list[ast.Attribute]:
    return [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)]


def names_in_numpy_random(path: Path) -> set[str]:
    found = [n for n in attributes_in(path) if isinstance(n.value, ast.Attribute)]
    return {n.attr for n in found if ast.unparse(n.value) == "np.random"}


def test_only_the_session_reaches_for_raw_data_and_noise() -> None:
    private = {"_open_chunks", "_noise", "_admit", "_noisy_mean"}
    files = [path for path in FILES if module_of(path) != "privacy.session"]
    assert offenders(lambda path: {n.attr for n in attributes_in(path)} & private, files) == []


# They read model files, ledgers, statements, public data and what is installed: no raw data.
HIDING = core(
    "/model_files /published /datasets.own_files /datasets.public /plotting /checks.display ledger "
    "statement"
)


def test_errors_on_raw_data_are_not_hidden_behind_others() -> None:
    """``from None`` leaves the error, with what it quotes, in the context of the new one."""

    def chained(path: Path) -> list[str]:
        raised = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Raise)]
        return [ast.unparse(node) for node in raised if node.cause]

    assert offenders(chained, [f for f in FILES if not below(module_of(f), HIDING)]) == []


def test_noise_has_one_source() -> None:
    """Generators of random bits are imported, NumPy's types named, by noise_source.py alone."""

    def sources(path: Path) -> set[str]:
        roots = {name.split(".")[0] for name in imported(tree_of(path))}
        checked = module_of(path).startswith(("data", "privacy", "queries"))
        drawn = names_in_numpy_random(path) if checked else set()
        return roots & {"randomgen", "secrets", "random", "uuid"} | drawn

    noise = PACKAGE / "privacy/noise_source.py"
    of_numpy = {"Generator", "SeedSequence"}
    assert {"randomgen", "secrets"} <= sources(noise) <= {"randomgen", "secrets"} | of_numpy
    assert offenders(sources, [path for path in FILES if path != noise]) == []


def test_no_global_random_state() -> None:
    assert offenders(lambda path: names_in_numpy_random(path) & LEGACY_NUMPY) == []


def test_one_catalogue_lists_every_query() -> None:
    """Also one whose module nobody but an estimator imports."""
    for module in pkgutil.iter_modules(queries.__path__, f"{queries.__name__}."):
        importlib.import_module(module.name)
    found: list[type[Query]] = [Query]
    for query in found:
        found += query.__subclasses__()
        entry = CATALOGUE.get(getattr(query, "name", ""))
        is_listed = entry is not None and issubclass(query, entry.query)
        of_tests = not query.__module__.startswith(NAME)
        assert is_listed or of_tests or query.total is Query.total, query


def unnamed_releases(path: Path) -> list[str]:
    """Functions that are given a session, ask it or hand it on to be asked, and do not say so."""

    def asks(call: ast.Call) -> bool:
        name = last_name(call.func)
        return name in ("ask", "_ask") or name.lstrip("_").startswith(("release", "fit"))

    return [
        node.name
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef)
        and not node.name.lstrip("_").startswith(("release", "fit"))
        and ("ask" in [arg.arg for arg in node.args.args] or "self._ask" in ast.unparse(node))
        and any(asks(call) for call in ast.walk(node) if isinstance(call, ast.Call))
    ]


def test_what_asks_the_session_is_called_release_or_fit() -> None:
    assert offenders(unnamed_releases) == []
