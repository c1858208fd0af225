"""Every release has a proof, whose page states the sensitivity that the code computes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from contracts.test_sensitivity import CASES
from proof_pages import PROOFS, check_page, stated

from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.queries.entries import Entries, EntryPairs, IndexSet
from sktensor_dp.queries.samples import TensorPowerIterations

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
def test_the_proof_states_the_sensitivity_that_the_code_computes(name: str, seed: int) -> None:
    entry, rng = CATALOGUE[name], np.random.default_rng(seed)
    page = (PROOFS / entry.proof).read_text(encoding="utf-8")
    check_page(entry, page, queries(name, rng))


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_page_that_states_another_sensitivity_is_refused(name: str, seed: int) -> None:
    """Of the L2 norm, a factor of one millionth too small, for either kind of neighbours."""
    entry, asked = CATALOGUE[name], queries(name, np.random.default_rng(seed))
    page = (PROOFS / entry.proof).read_text(encoding="utf-8")
    changes = ["replaced", "added or removed"][: 1 + hasattr(entry.query, "l2_contribution")]
    for change in changes:
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
def test_a_page_has_to_state_a_bound_of_its_own(page: str) -> None:
    with pytest.raises(AssertionError):
        stated(page, Entries(1.0))
