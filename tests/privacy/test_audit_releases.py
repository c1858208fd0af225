"""Every release of the catalogue is audited, data to noisy value; sabotage is caught.

Confidence 1 - 5e-7, and as much for chance in what has to be found: a test fails in one run
of a million, whatever the seed.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from sktensor_dp.privacy import mechanisms
from sktensor_dp.privacy.audit import AuditResult, audit_samples
from sktensor_dp.privacy.calibration import gaussian_epsilon
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.queries.counts import (
    Clip,
    CountChunk,
    CountNorm,
    NormHistogram,
    PairNorm,
    TripleNorm,
    WhitenedTripleNorm,
    WordFrequencies,
    as_counts,
)
from sktensor_dp.queries.entries import (
    Entries,
    EntryChunks,
    EntryPairs,
    IndexSet,
    RowCells,
    RowSums,
)
from sktensor_dp.queries.expected_counts import ExpectedCounts
from sktensor_dp.queries.gradients import EntryGradients, Jacobian, RidgeBlock, RowFrames
from sktensor_dp.queries.moments import PairMoments, TripleMoments, WhitenedTripleMoments
from sktensor_dp.queries.query import UnitCount
from sktensor_dp.queries.samples import (
    LiftedBall,
    PowerIterations,
    ProjectedThirdMoments,
    SampleChunk,
    SecondMoments,
    TensorChunk,
    TensorPowerIterations,
    ThirdMomentHistogram,
    ThirdMoments,
    as_samples,
)
from sktensor_dp.queries.scores import HeldOutChunk, HeldOutScores
from sktensor_dp.queries.slices import SharedFactorSums, SharedRowSums, SliceChunks, UnitLevels
from sktensor_dp.queries.text import (
    N_BUCKETS,
    DocumentFrequencies,
    TextChunks,
    WordBuckets,
    WordVotes,
)
from sktensor_dp.tensor.shared_parameters import SharedComponents, SharedEffects

pytestmark = pytest.mark.nightly

SURE = 1 - 5e-7
D = 2
FIRST, SECOND = np.array([[9.0, 0]]), np.array([[0, 9.0]])
UP = np.array([[2.0, 0.0]])
WHITENER = np.array([[0.6, 0.8], [-0.6, -0.8]])
BOUNDS = (-1.0, 1.0)
PLACES = IndexSet(np.zeros((1, 2), dtype=np.intp), (1, 1))
FRAMES = RowFrames(PLACES, 0, np.ones((1, 1)), 0.1)


class One:
    """A data set of one unit, for the curator."""

    n_units = 1

    def __init__(self, chunk: Any) -> None:
        self.chunk = chunk

    def __iter__(self) -> Iterator[Any]:
        return iter([self.chunk])


def documents(query: Any, one: Any = FIRST, other: Any = SECOND) -> tuple:
    return query, *(One(CountChunk(as_counts(np.asarray(row)))) for row in (one, other))


def samples(query: Any, one: Any = UP, other: Any = -UP) -> tuple:
    return query, *(One(SampleChunk(as_samples(row))) for row in (one, other))


def entries(query: Any, reach: float = 1.0, unclamped: bool = False) -> tuple:
    ends = (np.array([reach * end]) for end in BOUNDS)
    bounds = (-reach, reach) if unclamped else BOUNDS
    return query, *(EntryChunks(PLACES.coordinates, end, PLACES.shape, bounds) for end in ends)


def pairs() -> tuple:
    """A row of two values, of which one goes from end to end."""
    places = IndexSet(np.array([[0, 0], [0, 1]]), (1, 2))
    query = EntryPairs(RowCells(places, 0), np.zeros(2), np.ones(1), 1.0, 1.0)
    sides = (np.array([1.0, end]) for end in BOUNDS)
    return query, *(EntryChunks(places.coordinates, x, places.shape, BOUNDS) for x in sides)


def units(query: Any, one: Any = (-1, -1), other: Any = (1, 1)) -> tuple:
    """A unit of two entries, in different rows of the last mode and the same of any other."""
    rows = np.array([[0, 0, 0], [0, 0, 1]], dtype=np.intp)
    sides = (np.array(values, dtype=float) for values in (one, other))
    return query, *(SliceChunks(rows, values, (1, 3, 2), 0, BOUNDS) for values in sides)


def factor_sums_of_units() -> tuple:
    """Two units, larger in one row of the factor and in the other: opposite residuals."""
    none = [SharedEffects(np.zeros(n), np.zeros(n), np.zeros(n), 1.0) for n in (3, 2)]
    components = SharedComponents((np.full((3, 1), 0.1), np.ones((2, 1))), full_core=False)
    query = SharedFactorSums(0, (1, 3, 2), 0.0, tuple(none), components, 1e-4, 1e-3)
    rows = np.array([[0, 0, 0], [0, 1, 0]], dtype=np.intp)
    sides = (np.array(values) for values in ([1.0, -0.5], [-0.5, 1.0]))
    return query, *(SliceChunks(rows, values, (1, 3, 2), 0, BOUNDS) for values in sides)


def texts() -> tuple:
    """Words of twenty documents of either kind; one changes sides. All clear the threshold."""
    sides = [["a b"] * n + ["c d"] * (41 - n) for n in (21, 20)]
    return DocumentFrequencies(2), *(TextChunks(side, str.split) for side in sides)


def of_words(query: Any) -> tuple:
    return query, *texts()[1:]


def tensors() -> tuple:
    """A change of all six orders of one entry on the diagonal, where they are the same."""
    start = np.eye(D)[:, :1]
    sides = (TensorChunk(lambda U, a=a: 6 * a * start @ (start.T @ U) ** 2) for a in (0.0, 1.0))
    return TensorPowerIterations(start, 1.0), *sides


def held_out() -> tuple:
    sides = (HeldOutChunk(np.array([end]), None, 1) for end in BOUNDS)
    return HeldOutScores(lambda X, y: X, *BOUNDS), *sides


def leaving(query: Any, one: One, _: Any = None) -> tuple:
    """A unit is there, or nothing is."""
    return query, one, One(type(one.chunk)(one.chunk.X[:0]))


def clipped(norm: Any) -> Clip:
    return Clip(norm, 4.5)


# Neighbours that are as far apart as a release's sensitivity in L2, or nearly. Where noise is
# drawn in L1, they are so in L1 too.
RELEASES: dict[str, Callable[[], tuple]] = {
    "unit_count": lambda: leaving(UnitCount(), One(CountChunk(as_counts(np.asarray(FIRST))))),
    "document_frequencies": texts,
    "word_buckets": lambda: of_words(WordBuckets(2, tuple("abcd"))),
    "word_votes": lambda: of_words(WordVotes(2, 2**0.5, np.ones(N_BUCKETS))),
    "norm_histogram": lambda: documents(
        NormHistogram(CountNorm(2), np.array([1.0, 5, 25])), FIRST, [[1.0, 0]]
    ),
    "word_frequencies": lambda: documents(WordFrequencies(clipped(CountNorm(1)))),
    "pair_moments": lambda: documents(PairMoments(clipped(PairNorm(1.0)), 1.0)),
    "whitened_triple_moments": lambda: documents(
        WhitenedTripleMoments(WHITENER, (clipped(WhitenedTripleNorm(WHITENER)),))
    ),
    "triple_moments": lambda: documents(TripleMoments(np.eye(D), (clipped(TripleNorm()),))),
    "expected_counts": lambda: documents(ExpectedCounts(np.eye(D), np.full(2, 0.5), True, 4.5, 1)),
    "second_moments": lambda: samples(SecondMoments(LiftedBall(2.0)), UP, UP[:, ::-1]),
    "third_moment_histogram": lambda: samples(
        ThirdMomentHistogram(np.eye(D), LiftedBall(2.0), edges=np.array([0.1, 1, 10])), UP, UP / 4
    ),
    "projected_third_moments": lambda: samples(
        ProjectedThirdMoments(np.eye(D), LiftedBall(2.0), 0.0, limit=0.5)
    ),
    "third_moments": lambda: samples(ThirdMoments(np.eye(D), LiftedBall(2.0))),
    "power_iterations": lambda: samples(PowerIterations(np.eye(D)[:, :1], 2.0)),
    "tensor_power_iterations": tensors,
    "entries": lambda: entries(Entries(1.0)),
    "row_sums": lambda: entries(RowSums(PLACES, np.ones((1, 2)), 1.0)),
    "entry_pairs": pairs,
    "entry_gradients": lambda: entries(
        EntryGradients(Jacobian(PLACES, [np.ones((1, 1))] * 2), 1.0)
    ),
    "ridge_block": lambda: entries(RidgeBlock(FRAMES, 1.0)),
    "unit_levels": lambda: units(UnitLevels(1.0)),
    # Nothing of a second norm, and no level of the unit's own.
    "shared_row_sums": lambda: units(SharedRowSums(1, (1, 3, 2), 0.0, 0.1, 1e9)),
    "shared_factor_sums": factor_sums_of_units,
    "held_out_scores": held_out,
}


def test_every_release_of_the_catalogue_is_audited():
    assert set(RELEASES) == set(CATALOGUE)


def value_of(answer: Any) -> Any:
    """Numbers of an answer; totals of words that were not selected count 0."""
    if isinstance(answer, tuple):
        answer = dict(zip(*answer, strict=True))
    if isinstance(answer, dict):
        answer = [answer.get(word, 0) for word in "abcd"]
    return np.ravel(answer)


def audited(
    name: str,
    cost: PrivacyCost,
    n_runs: int,
    pure: bool = False,
    leaves: bool = False,
    release: Any = None,
) -> AuditResult:
    """Audit one release, data to noisy value, along the line between the exact values."""
    query, *sides = release or RELEASES[name]()
    if leaves:
        query, *sides = leaving(query, *sides)
    neighbours = "add_remove" if leaves or name == "unit_count" else "replace_one"
    plan = ReleasePlan(1.0, 0.0 if pure else 1e-6, (PlannedRelease(name, cost, n_runs),))
    exact = [value_of(query.total(next(iter(side)))) for side in sides]
    gap = exact[1] - exact[0]
    values = []
    for side in sides:
        curator = DataCurator(
            side, plan, spender="audit", unit="unit", accountant=None, neighbours=neighbours
        )
        words = name in ("document_frequencies", "word_votes")
        ask = curator.release_partitions if words else curator.release
        released = (value_of(ask(name, query)) for _ in range(n_runs))
        values.append([(x - exact[0]) @ gap / (gap @ gap) for x in released])
    return audit_samples(
        *values,
        threshold=1.0 if pure else 0.5,
        confidence=SURE,
        delta=0.0 if pure else 1e-6,
        epsilon_claim=cost.epsilon if pure else gaussian_epsilon(cost.mu, 1e-6),
        mu_claim=None if pure else cost.mu,
    )


# A word that is not selected has a share of the budget: at this delta, never of these.
COST = PrivacyCost(mu=3.0, delta=1e-9)


@pytest.mark.parametrize("name", RELEASES)
def test_gaussian_releases_give_away_what_they_claim(name):
    """Between .6 of mu and mu.

    Of 640 runs Binomial(640, Phi(1.5)) are on the right side, for each data set: all but
    5e-7 of the pairs of such counts give a bound of .62 of mu or more, where neighbours are
    as far apart as the sensitivity; for shared factor sums, at .985 of it, .61.
    """
    result = audited(name, COST, 640)
    assert 0.6 * COST.mu <= result.mu_lower <= COST.mu
    assert not result.refutes_claim


COME_AND_GO = [n for n in RELEASES if CATALOGUE[n].family in ("counts", "samples")]


@pytest.mark.parametrize("name", COME_AND_GO)
def test_a_unit_that_leaves_is_given_away_as_claimed(name):
    """The same bounds: a unit that contributes as much as it may leaves, and none comes."""
    result = audited(name, COST, 640, leaves=True)
    assert 0.6 * COST.mu <= result.mu_lower <= COST.mu
    assert not result.refutes_claim


@pytest.mark.parametrize("name", ["word_frequencies", "second_moments", "ridge_block"])
def test_pure_releases_stay_below_their_claim(name):
    """At the far end half of the runs of one side are seen, and e^-2 / 2 of the other's.

    In one dimension, that is; in more the ratio is smaller. Of the ratio's logarithm 2000 runs
    leave 10 (2000 x .068)^(-1/2) = .86 for the bound and chance: 1 of 2 is asked for there.
    """
    seen = name == "ridge_block"
    result = audited(name, PrivacyCost(epsilon=2.0), 2000 if seen else 200, pure=True)
    assert result.epsilon_lower <= 2.0
    assert not seen or result.epsilon_lower >= 1.0


# One release of each Gaussian law: what is caught there is caught at all of its releases.
OF_EVERY_LAW = {CATALOGUE[name].gaussian: name for name in reversed(RELEASES)}


@pytest.mark.usefixtures("half_noise")
@pytest.mark.parametrize("name", OF_EVERY_LAW.values())
def test_half_the_noise_is_caught_at_every_law(name):
    """True mu is 6: all but 5e-7 of the pairs of counts of 450 runs refute 3."""
    assert audited(name, COST, 450).mu_lower > COST.mu


@pytest.mark.usefixtures("half_noise")
def test_half_the_noise_is_caught_at_a_pure_release():
    """True epsilon is 4: e^-4 / 2 of 2000 runs are 18 +- 21, with a bound of 75 at most.

    Half of the runs on the other side, less 5 standard errors of bound and of chance, are
    780 of 2000: log(780 / 75) = 2.3.
    """
    result = audited("ridge_block", PrivacyCost(epsilon=2.0), 2000, pure=True)
    assert result.epsilon_lower > 2
    assert result.refutes_claim


def coordinates(mu: float, n: int = 200_000) -> AuditResult:
    """Audit of a mechanism by the coordinates of one long vector."""
    values = [mechanisms.gaussian_vector(np.full(n, x), 1.0, mu, NoiseSource()) for x in (0.0, 1.0)]
    claim = gaussian_epsilon(mu, 0.01)
    return audit_samples(*values, delta=0.01, confidence=SURE, epsilon_claim=claim, mu_claim=mu)


def test_many_draws_show_most_of_mu():
    """.95 of mu = 1: 1e5 runs leave 10 x 2 x 1.31 / sqrt(1e5) at most, about .08 with both."""
    result = coordinates(1.0)
    assert 0.9 <= result.mu_lower <= 1
    assert not result.refutes_claim


@pytest.mark.usefixtures("half_noise")
def test_half_the_noise_is_caught_without_knowing_that_it_is_gaussian():
    result = coordinates(0.5)
    assert result.epsilon_lower > result.epsilon_claim


# Clipping


class LongWords(WordFrequencies):
    """Claims the sensitivity of a limit of one."""

    l2_sensitivity = WordFrequencies(clipped(CountNorm(1))).l2_sensitivity


class LongMoments(SecondMoments):
    """Claims the sensitivity of a radius of two."""

    l2_sensitivity = SecondMoments(LiftedBall(2.0)).l2_sensitivity


FAR: dict[str, Callable[[bool], tuple]] = {
    "word_frequencies": lambda skipped: documents(
        LongWords(Clip(CountNorm(1), 1e4)) if skipped else WordFrequencies(clipped(CountNorm(1))),
        FIRST * 100, SECOND * 100,
    ),
    "second_moments": lambda skipped: samples(
        LongMoments(LiftedBall(200.0)) if skipped else SecondMoments(LiftedBall(2.0)),
        50 * UP, 50 * UP[:, ::-1],
    ),
    "row_sums": lambda skipped: entries(RowSums(PLACES, np.ones((1, 2)), 1.0), 100.0, skipped),
    "ridge_block": lambda skipped: entries(RidgeBlock(FRAMES, 1.0), 100.0, skipped),
}  # fmt: skip


@pytest.mark.parametrize("name", FAR)
@pytest.mark.parametrize("skipped", [False, True])
def test_skipping_the_clip_is_caught(name, skipped):
    """Units far beyond the limit are told apart every time: 200 runs show epsilon of 2.5."""
    result = audited(name, PrivacyCost(mu=0.2367), 200, release=FAR[name](skipped))
    assert (result.epsilon_lower > result.epsilon_claim) == skipped
    assert result.refutes_claim == skipped
