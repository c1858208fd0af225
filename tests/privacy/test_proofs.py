"""Every release has a proof, whose page states the sensitivity that the code computes.

Every page has a block of definitions that ends with those of ``L2`` and ``L1``: sensitivities
of the sum over units when one unit is replaced, from the public attributes of the query. Where
units may come and go it has a second block, for one unit added or removed.
"""

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contracts.sensitivities import leaves
from contracts.test_sensitivity import CASES

from sktensor_dp.data.entries import IndexSet
from sktensor_dp.privacy.catalogue import CATALOGUE, Release
from sktensor_dp.privacy.mechanisms import Mechanism
from sktensor_dp.queries.entries import Entries, EntryPairs
from sktensor_dp.queries.samples import TensorPowerIterations

ROOT = Path(__file__).parents[2]
PROOFS = ROOT / "docs" / "proofs"
CHANGES = {"replace_one": "replaced", "add_remove": "added or removed"}
BLOCKS = {
    relation: re.compile(
        rf"^Sensitivity of the sum, one unit {change}:\n\n```python\n(.*?)```$",
        re.DOTALL | re.MULTILINE,
    )
    for relation, change in CHANGES.items()
}
WORDS = {name: getattr(np, name) for name in ("abs", "bincount", "ceil", "floor", "inf", "sqrt")}
WORDS |= {"clamp": np.clip, "len": len, "log2": np.log2, "max": max, "min": min}
WORDS["kind"] = lambda item: type(item).__name__


def stated(page: str, query: Any, relation: str = "replace_one") -> tuple[float, float]:
    """L2 and L1 sensitivity that a page states, at the parameters of a query."""
    blocks = BLOCKS[relation].findall(page)
    assert len(blocks) == 1, "the page states its sensitivities once"
    tree = ast.parse(blocks[0])
    # A page that asked the query for its bound would agree with whatever that is.
    asked = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    asked += [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bounds = ("sensitivity", "contribution", "farthest", "largest_distance", "largest_norms")
    assert [name for name in asked if any(bound in name for bound in bounds)] == []

    class Names(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            return WORDS[name] if name in WORDS else getattr(query, name)

    names = Names()
    exec(compile(tree, "page", "exec"), {"__builtins__": {}}, names)
    return float(names["L2"]), float(names["L1"])


def check_page(entry: Release, page: str, queries: list[Any]) -> None:
    """Fail unless a page is about a release and states what its queries compute."""
    of = f"{entry.query.__module__}.{entry.query.__name__}"
    assert page.split("\n\n")[1].startswith(f"Release `{entry.query.name}`; query `{of}`; law")
    for part in ("## Statement", "\\blacksquare", "\n## Tests\n"):
        assert part in page, f"the page has no {part}"
    named = re.findall(r"`(tests/.*?\.py)`", page)
    assert named
    assert [path for path in named if not (ROOT / path).is_file()] == []
    comes_and_goes = leaves(entry.query)
    assert bool(BLOCKS["add_remove"].search(page)) == comes_and_goes
    for query in queries:
        assert type(query) is entry.query
        for relation in list(CHANGES)[: 1 + comes_and_goes]:
            # Both sides are a few roundings.
            computed = [query.sensitivity(norm, relation) for norm in ("l2", "l1")]
            np.testing.assert_allclose(stated(page, query, relation), computed, rtol=1e-12)
    for law in (entry.gaussian, entry.pure):
        if isinstance(law, Mechanism) and law.law.norm == "l1":
            assert any(np.isfinite(query.l1_sensitivity) for query in queries)
            if comes_and_goes:
                assert any(np.isfinite(query.l1_contribution) for query in queries)


Rng = np.random.Generator
SHAPE = (3, 4)
PLACES = np.argwhere(np.ones(SHAPE))
# Of some coordinates there are several values.
REPEATED = IndexSet(PLACES[[0, 0, 0, 1, 1, *range(2, 9)]], SHAPE)


def pairs(rng: Rng) -> EntryPairs:
    clip, values = rng.uniform(1.1, 9.0, 2)
    return EntryPairs(REPEATED, values * np.ones(12), rng.random(SHAPE[0]), clip, 1.0)


# Cases that the contract of sensitivities does not draw.
FURTHER: dict[str, Callable[[Rng], list[Any]]] = {
    "entry_pairs": lambda rng: [pairs(rng)],
    # Rounding is paid for in three ways, by the number of features.
    "tensor_power_iterations": lambda rng: [
        TensorPowerIterations(rng.uniform(1, 9) * frame(rng, d), rng.uniform(1.1, 9.0))
        for d in (1, 5, 60, 66, 300)
    ],
}


def frame(rng: Rng, rows: int) -> np.ndarray:
    starts = rng.standard_normal((rows, 3))
    return starts / np.linalg.norm(starts, axis=0)


def queries(name: str, rng: Rng) -> list[Any]:
    """Queries of a release with public numbers drawn at random, as the contract searches them."""
    cases = [case for case in CASES if case.release == name and not case.data.grouped]
    drawn = [case.build(rng, case.data.space(rng)) for case in cases for _ in range(2)]
    return drawn + FURTHER.get(name, lambda _: [])(rng)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_proof_states_the_sensitivity_that_the_code_computes(name, seed):
    entry, rng = CATALOGUE[name], np.random.default_rng(seed)
    page = (PROOFS / f"{name}.md").read_text(encoding="utf-8")
    check_page(entry, page, queries(name, rng))


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_page_that_states_another_sensitivity_is_refused(name, seed):
    """Of the L2 norm, a factor of one millionth too small, for either kind of neighbours."""
    entry, asked = CATALOGUE[name], queries(name, np.random.default_rng(seed))
    page = (PROOFS / f"{name}.md").read_text(encoding="utf-8")
    for change in list(CHANGES.values())[: 1 + leaves(entry.query)]:
        before, mark, after = page.partition(f"one unit {change}:\n")
        wrong = "\nL2 = L2 * (1 - 1e-6) - 1e-6\nL1 = "
        with pytest.raises(AssertionError, match="Not equal to tolerance"):
            check_page(entry, before + mark + after.replace("\nL1 = ", wrong, 1), asked)


@pytest.mark.parametrize(
    "page",
    [
        "A long page. " * 100,
        "Sensitivity of the sum, one unit replaced:\n\n```python\nL2 = l2_sensitivity\nL1 = 2\n```",
    ],
    ids=["states nothing", "asks the query"],
)
def test_a_page_has_to_state_a_bound_of_its_own(page):
    with pytest.raises(AssertionError):
        stated(page, Entries(1.0))
