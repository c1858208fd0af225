"""Every release has a proof, whose page states the sensitivity that the code computes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from proof_pages import PROOFS, check_page, stated

from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.queries.counts import (
    Clip,
    CountNorm,
    NormHistogram,
    PairNorm,
    TripleNorm,
    WhitenedTripleNorm,
    WordFrequencies,
)
from sktensor_dp.queries.entries import Entries, EntryPairs, IndexSet, RowCells, RowSums
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.queries.gradients import EntryGradients, Jacobian, RidgeBlock, RowFrames
from sktensor_dp.queries.moments import PairMoments, TripleMoments, WhitenedTripleMoments
from sktensor_dp.queries.query import UnitCount
from sktensor_dp.queries.samples import (
    LiftedBall,
    PowerIterations,
    ProjectedThirdMoments,
    SecondMoments,
    TensorPowerIterations,
    ThirdMomentHistogram,
    ThirdMoments,
)
from sktensor_dp.queries.scores import HeldOutScores
from sktensor_dp.queries.slices import SharedFactorSums, SharedRowSums, UnitLevels
from sktensor_dp.queries.text import N_BUCKETS, DocumentFrequencies, WordBuckets, WordVotes
from sktensor_dp.tensor.shared_parameters import SharedComponents, SharedEffects

Rng = np.random.Generator
SHAPE = (3, 4)
PLACES = IndexSet(np.argwhere(np.ones(SHAPE)), SHAPE)
# Of some coordinates there are several values.
REPEATED = IndexSet(PLACES.coordinates[[0, 0, 0, 1, 1, *range(2, 9)]], SHAPE)
# Rounding within a row is paid for by its length: from a hundred values on it shows here.
LONG = IndexSet(np.column_stack([np.zeros(200, dtype=int), np.arange(200)]), (1, 200))
EDGES = np.array([0.1, 1.0, 10.0])


def size(rng: Rng) -> float:
    """A number of no special value, so that squares and factors are told apart."""
    return float(rng.uniform(1.1, 9.0))


def frame(rng: Rng, rows: int = 5, columns: int = 2) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((rows, columns)))[0]


def embedding(rng: Rng) -> LiftedBall:
    return LiftedBall(size(rng), float(rng.uniform(0.3, 1.0)))


def clips(rng: Rng, *norms: Any) -> tuple[Clip, ...]:
    """Of a release's own norm, and one more that its bound does not rest on."""
    return tuple(Clip(norm, size(rng)) for norm in (*norms, CountNorm(2)))


def whitened(rng: Rng) -> WhitenedTripleMoments:
    whitener = rng.standard_normal((5, 2))
    return WhitenedTripleMoments(whitener, clips(rng, WhitenedTripleNorm(whitener)))


def starts(rng: Rng, n_features: int) -> np.ndarray:
    starts = rng.standard_normal((n_features, 3))
    return starts / np.linalg.norm(starts, axis=0)


def frames(rng: Rng) -> RowFrames:
    return RowFrames(PLACES, 1, rng.standard_normal((12, 2)), size(rng))


def gradients(rng: Rng) -> EntryGradients:
    jacobian = Jacobian(PLACES, [rng.standard_normal((n, 2)) for n in SHAPE])
    return EntryGradients(jacobian, size(rng))


def of_units(rng: Rng) -> SharedFactorSums:
    effects = tuple(SharedEffects(np.zeros(n), np.ones(n), np.ones(n), 1.0) for n in SHAPE)
    components = SharedComponents(tuple(np.ones((n, 2)) for n in SHAPE), full_core=False)
    return SharedFactorSums(0, (7, *SHAPE), 0.0, effects, components, 0.1, size(rng))


def of_whole_units(rng: Rng) -> SharedFactorSums:
    effects = (SharedEffects(np.zeros(5), np.ones(5), np.ones(5), 1.0),)
    components = SharedComponents((np.ones((5, 2)),), full_core=False)
    return SharedFactorSums(0, (7, 5), 0.0, effects, components, 0.1, size(rng), whole=True)


# For every release, queries in which each number that the bound depends on is drawn.
QUERIES: dict[str, Callable[[Rng], list[Any]]] = {
    "unit_count": lambda r: [UnitCount()],
    "document_frequencies": lambda r: [DocumentFrequencies(int(r.integers(2, 50)))],
    "word_buckets": lambda r: [
        WordBuckets(int(r.integers(2, 50)), words) for words in (None, ("a", "b"))
    ],
    "word_votes": lambda r: [
        WordVotes(int(r.integers(4, 50)), r.uniform(1, 2), r.random(N_BUCKETS)) for _ in range(2)
    ],
    "norm_histogram": lambda r: [NormHistogram(CountNorm(2), EDGES, clips(r))],
    "word_frequencies": lambda r: [
        WordFrequencies(Clip(CountNorm(order), size(r)), clips(r)) for order in (1, 2)
    ],
    "pair_moments": lambda r: [
        PairMoments(Clip(PairNorm(0.7), size(r)), 0.7, clips(r)),
        PairMoments(Clip(CountNorm(1), size(r)), 0.7, clips(r)),
    ],
    "whitened_triple_moments": lambda r: [whitened(r)],
    "triple_moments": lambda r: [
        TripleMoments(frame(r), clips(r, norm)) for norm in (TripleNorm(), CountNorm(1))
    ],
    "expected_counts": lambda r: (
        [
            ExpectedCounts(np.full((2, 5), 0.2), np.ones(2), single, size(r), order)
            for single in (False, True)
            for order in (1, 2)
        ]
        + [
            ExpectedCounts(
                np.full((2, 5), 0.2), np.ones(2), False, size(r), scales=np.arange(1.0, 6)
            )
        ]
    ),
    "second_moments": lambda r: [SecondMoments(embedding(r)), SecondMoments(LiftedBall(size(r)))],
    "third_moment_histogram": lambda r: [
        ThirdMomentHistogram(frame(r), embedding(r), 0.5, edges=EDGES)
    ],
    "projected_third_moments": lambda r: [
        ProjectedThirdMoments(r.standard_normal((5, 2)), embedding(r), 0.5, limit=size(r))
    ],
    "third_moments": lambda r: [
        ThirdMoments(frame(r), embedding(r), 1.0),
        ThirdMoments(frame(r), LiftedBall(size(r))),
    ],
    "power_iterations": lambda r: [PowerIterations(starts(r, 5), size(r))],
    # Rounding is paid for in three ways, by the number of features.
    "tensor_power_iterations": lambda r: [
        TensorPowerIterations(size(r) * starts(r, d), size(r)) for d in (1, 5, 60, 66, 300)
    ],
    "entries": lambda r: [Entries(size(r))],
    "row_sums": lambda r: [RowSums(PLACES, r.standard_normal((12, 2)), size(r))],
    "entry_pairs": lambda r: [
        EntryPairs(
            RowCells(places, mode), size(r) * np.ones(12), r.random(SHAPE[mode]), size(r), 1.0
        )
        for mode in (0, 1)
        for places in (PLACES, REPEATED)
    ],
    "entry_gradients": lambda r: [gradients(r) for _ in range(3)],
    "ridge_block": lambda r: [RidgeBlock(frames(r), size(r))],
    "unit_levels": lambda r: [UnitLevels(size(r))],
    "shared_row_sums": lambda r: [
        SharedRowSums(1, (7, *SHAPE), 0.0, size(r), size(r), order=order) for order in (1, 2)
    ],
    "shared_factor_sums": lambda r: [
        of_units(r),
        of_whole_units(r),
    ],
    "held_out_scores": lambda r: [HeldOutScores(lambda X, y: X, -size(r), size(r))],
}


def test_every_release_has_queries_here() -> None:
    assert set(QUERIES) == set(CATALOGUE)
    assert all(name == entry.name for name, entry in CATALOGUE.items())


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_proof_states_the_sensitivity_that_the_code_computes(name: str, seed: int) -> None:
    entry, rng = CATALOGUE[name], np.random.default_rng(seed)
    page = (PROOFS / entry.proof).read_text(encoding="utf-8")
    check_page(entry, page, QUERIES[name](rng))


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_page_that_states_another_sensitivity_is_refused(name: str, seed: int) -> None:
    """Of the L2 norm, a factor of one millionth too small, for either kind of neighbours."""
    entry, queries = CATALOGUE[name], QUERIES[name](np.random.default_rng(seed))
    page = (PROOFS / entry.proof).read_text(encoding="utf-8")
    changes = ["replaced", "added or removed"][: 1 + hasattr(entry.query, "l2_contribution")]
    for change in changes:
        before, mark, after = page.partition(f"one unit {change}:\n")
        wrong = "\nL2 = L2 * (1 - 1e-6) - 1e-6\nL1 = "
        with pytest.raises(AssertionError, match="Not equal to tolerance"):
            check_page(entry, before + mark + after.replace("\nL1 = ", wrong, 1), queries)


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
