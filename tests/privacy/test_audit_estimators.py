"""Releases and estimators are audited against their claims; sabotage is caught.

Confidence 1 - 1e-6: a true claim is refuted by chance in one test of a million.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sktensor_dp import (
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)
from sktensor_dp.privacy import mechanisms
from sktensor_dp.privacy.audit import AuditResult, audit, audit_samples, worst_case
from sktensor_dp.privacy.calibration import gaussian_epsilon
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.statistics import moments
from sktensor_dp.statistics.counts import CountChunk, as_counts
from sktensor_dp.statistics.entries import EntryChunks, IndexSet, SliceChunks
from sktensor_dp.statistics.entry_queries import Entries, FactorSums, RidgeBlock, RowSums
from sktensor_dp.statistics.expected_counts import ExpectedCounts
from sktensor_dp.statistics.moments import (
    NormHistogram,
    PairMoments,
    TripleMoments,
    WhitenedTripleMoments,
    WordFrequencies,
)
from sktensor_dp.statistics.norms import Clip, CountNorm, PairNorm, TripleNorm, WhitenedTripleNorm
from sktensor_dp.statistics.power_iterations import PowerIterations
from sktensor_dp.statistics.row_frames import RowFrames
from sktensor_dp.statistics.sample_moments import (
    Embedding,
    ProjectedThirdMoments,
    SecondMoments,
    ThirdMoments,
)
from sktensor_dp.statistics.samples import SampleChunk, as_samples
from sktensor_dp.statistics.slice_queries import SharedRowSums

SURE = 1 - 1e-6
D = 2
FIRST, SECOND = np.array([[9.0, 0]]), np.array([[0, 9.0]])
UP = np.array([[2.0, 0.0]])
WHITENER = np.array([[0.6, 0.8], [-0.6, -0.8]])
BOUNDS = (-1.0, 1.0)
PLACES = IndexSet(np.zeros((1, 2), dtype=np.intp), (1, 1))
FRAMES = {
    kind: RowFrames(PLACES, 0, np.ones((1, 1)), 0.1, kinds)
    for kind, kinds in {"any": ("isotropic", "leverage"), "solution": ("solution",)}.items()
}


class One:
    """A data set of one unit, for the curator."""

    n_units = 1

    def __init__(self, chunk: Any) -> None:
        self.chunk = chunk

    def __iter__(self):
        return iter([self.chunk])


def documents(query: Any, one: Any = FIRST, other: Any = SECOND) -> tuple:
    return query, *(One(CountChunk(as_counts(np.asarray(row)))) for row in (one, other))


def samples(query: Any, one: Any = UP, other: Any = -UP) -> tuple:
    return query, *(One(SampleChunk(as_samples(row))) for row in (one, other))


def entries(query: Any) -> tuple:
    ends = (np.array([end]) for end in BOUNDS)
    return query, *(EntryChunks(PLACES.coordinates, end, PLACES.shape, BOUNDS) for end in ends)


def units(order: int) -> tuple:
    """Two entries at one end, and two at the other; nothing for a second norm."""
    query = SharedRowSums(1, (1, 3, 2), 0.0, 0.1, 1e9, (), order)
    rows = np.array([[0, 0, 0], [0, 0, 1]], dtype=np.intp)
    sides = (SliceChunks(rows, np.full(2, end), (1, 3, 2), 0, BOUNDS) for end in BOUNDS)
    return query, *sides


def clipped(norm: Any) -> Clip:
    return Clip(norm, 4.5)


# Neighbours of one unit each that are as far apart as a release's sensitivity, in L2. Where
# noise is drawn in L1, they are so in L1 too.
RELEASES: dict[str, Callable[[], tuple]] = {
    "norm_histogram": lambda: documents(
        NormHistogram(CountNorm(2), np.array([1.0, 5, 25])), FIRST, [[1.0, 0]]
    ),
    "word_frequencies": lambda: documents(WordFrequencies(clipped(CountNorm(1)))),
    "pair_moments": lambda: documents(PairMoments(clipped(PairNorm(1.0)), 1.0)),
    "whitened_triple_moments": lambda: documents(
        WhitenedTripleMoments(WHITENER, (clipped(WhitenedTripleNorm(WHITENER)),))
    ),
    "triple_moments": lambda: documents(TripleMoments(np.eye(D), (clipped(TripleNorm(False)),))),
    "expected_counts": lambda: documents(ExpectedCounts(np.eye(D), np.full(2, 0.5), True, 4.5, 1)),
    "second_moments": lambda: samples(SecondMoments(Embedding(2.0)), UP, UP[:, ::-1]),
    "projected_third_moments": lambda: samples(
        ProjectedThirdMoments(np.eye(D), Embedding(2.0), 0.0, limit=0.5)
    ),
    "third_moments": lambda: samples(ThirdMoments(np.eye(D), Embedding(2.0))),
    "power_iterations": lambda: samples(PowerIterations(np.eye(D)[:, :1], 2.0)),
    "entries": lambda: entries(Entries(1.0)),
    "row_sums": lambda: entries(RowSums(PLACES, np.ones((1, 2)), 1.0)),
    "factor_sums": lambda: entries(FactorSums(FRAMES["any"], 1.0)),
    "ridge_block": lambda: entries(RidgeBlock(FRAMES["solution"], 1.0)),
    "shared_row_sums": lambda: units(2),
}


def audited(name: str, cost: PrivacyCost, n_runs: int, pure: bool = False) -> AuditResult:
    """Audit one release, data to noisy value, along the line between the exact values."""
    query, *sides = RELEASES[name]()
    plan = ReleasePlan(1.0, 0.0 if pure else 1e-6, (PlannedRelease(name, cost, n_runs),))
    exact = [query.total(next(iter(side))) for side in sides]
    gap = np.ravel(exact[1] - exact[0])
    values = []
    for side in sides:
        curator = DataCurator(side, plan, spender="audit", unit="unit", accountant=None)
        released = (curator.release(name, query) for _ in range(n_runs))
        values.append([(np.ravel(x) - np.ravel(exact[0])) @ gap / (gap @ gap) for x in released])
    return audit_samples(
        *values,
        threshold=1.0 if pure else 0.5,
        confidence=SURE,
        delta=0.0 if pure else 1e-6,
        epsilon_claim=cost.epsilon if pure else gaussian_epsilon(cost.mu, 1e-6),
        mu_claim=None if pure else cost.mu,
    )


MU = 3.0


@pytest.mark.parametrize("name", RELEASES)
def test_gaussian_releases_give_away_what_they_claim(name):
    """Between .6 of mu and mu.

    At the middle both rates err by 1.93 / sqrt(1000) = .061 in units of mu: five for the
    bound on each, and five sqrt(2) for the chance of both, 17 x .061, are .35 of mu.
    """
    result = audited(name, PrivacyCost(mu=MU), 1000)
    assert 0.6 * MU <= result.mu_lower <= MU
    assert not result.refutes_claim


PURE = ("word_frequencies", "second_moments", "factor_sums")


@pytest.mark.parametrize("name", PURE)
def test_pure_releases_stay_below_their_claim(name):
    """At the far end half of the runs of one side are seen, and e^-2 / 2 of the other's.

    In one dimension, that is; in more the ratio is smaller. Of the ratio's logarithm 3000 runs
    leave 10 (3000 x .068)^(-1/2) = .7 for the bound and chance: 1 of 2 is asked for there.
    """
    result = audited(name, PrivacyCost(epsilon=2.0), 3000, pure=True)
    assert result.epsilon_lower <= 2.0
    if name == "factor_sums":
        assert result.epsilon_lower >= 1.0


def halved(method: Any) -> Any:
    """Noise of half the size: that of twice the strength."""
    return lambda self, x, strength, *rest: method(self, x, 2 * strength, *rest)


@pytest.fixture
def half_noise(monkeypatch):
    for name in ("gaussian", "laplace", "spherical_laplace", "spherical_laplace_rows"):
        monkeypatch.setattr(NoiseSource, name, halved(getattr(NoiseSource, name)))


@pytest.mark.usefixtures("half_noise")
@pytest.mark.parametrize("name", [name for name in RELEASES if name != "entries"])
def test_half_the_noise_is_caught_at_every_release(name):
    """True mu is 6: of 600 runs .8 are on the wrong side, and up to 12 refute 3."""
    assert audited(name, PrivacyCost(mu=MU), 600).mu_lower > MU


@pytest.mark.usefixtures("half_noise")
def test_half_the_noise_is_caught_at_a_pure_release():
    """True epsilon is 4: e^-4 / 2 of 3000 runs are 27 +- 26, with a bound of 90 at most.

    Half of the runs on the other side, less 5 standard errors of bound and of chance, are
    1250 of 3000: log(1250 / 90) = 2.6.
    """
    result = audited("factor_sums", PrivacyCost(epsilon=2.0), 3000, pure=True)
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


def unclipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments, "weights", lambda chunk, *_: np.ones(chunk.X.shape[0]))
    monkeypatch.setattr(SampleChunk, "scales", lambda self, radius: np.ones(self.X.shape[0]))


FAR = {
    "word_frequencies": lambda: documents(
        WordFrequencies(clipped(CountNorm(1))), FIRST * 100, SECOND * 100
    ),
    "second_moments": lambda: samples(SecondMoments(Embedding(2.0)), 50 * UP, 50 * UP[:, ::-1]),
}


@pytest.mark.parametrize("name", FAR)
@pytest.mark.parametrize("skipped", [False, True])
def test_skipping_the_clip_is_caught(name, skipped, monkeypatch):
    """Units far beyond the limit are told apart every time: 200 runs show epsilon of 2.5."""
    if skipped:
        unclipped(monkeypatch)
    monkeypatch.setitem(RELEASES, name, FAR[name])
    result = audited(name, PrivacyCost(mu=0.2367), 200)
    assert (result.epsilon_lower > result.epsilon_claim) == skipped
    assert result.refutes_claim == skipped


# Estimators


def completion(model: Any, delta: float, **parameters: Any) -> Any:
    options = {"shape": (1, 1), "epsilon": 1.0, "random_state": 0}
    return model(1, bounds=(0, 1), delta=delta, **{**options, **parameters})


ESTIMATORS: dict[str, tuple[Callable[[], Any], int, int | None]] = {
    "LDA": (lambda: PrivateSpectralLDA(1, random_state=0), 20, 100),
    "LDA, moment tensor": (
        lambda: PrivateSpectralLDA(1, perturbation="moment_tensor", random_state=0), 20, 100
    ),
    "vocabulary": (lambda: PrivateCountVectorizer(max_words_per_document=2), 100, 200),
    **{
        f"power method, {kind}": (
            lambda kind=kind: PrivateTensorPowerMethod(
                1, data_norm=1.0, perturbation=kind, whiten=kind == "whitened_tensor",
                random_state=0,
            ), 30, 100,
        )
        for kind in ("whitened_tensor", "moment_tensor", "iteration")
    },
    **{
        f"{model.__name__}, {kind}": (
            lambda model=model, kind=kind: completion(model, 0, perturbation=kind), 40, None
        )
        for model in (PrivateCPCompletion, PrivateTuckerCompletion)
        for kind in ("input", "sufficient_statistics", "output")
    },
    "CP, gradient": (
        lambda: completion(PrivateCPCompletion, 1e-6, perturbation="gradient", max_iter=1), 8, None
    ),
    "CP, slices": (
        lambda: completion(PrivateCPCompletion, 1e-6, privacy_unit="slice", shape=(20, 2)), 30, None
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_estimator_exceeds_its_claim(name):
    build, n_runs, n_units = ESTIMATORS[name]
    estimator = build()
    case = worst_case(estimator, n_units)
    result = audit(estimator, case.data, case.neighbour, n_runs=n_runs, statistic=case.statistic,
                   confidence=SURE)  # fmt: skip
    assert result.epsilon_claim == pytest.approx(1.0)
    assert not result.refutes_claim


@pytest.mark.parametrize("skipped", [False, True])
def test_skipping_the_clip_of_a_fit_is_caught(skipped, monkeypatch):
    """One long document among a hundred; 60 fits tell the two apart without exception.

    Both rates are then off by .215 at most, and log(.785 / .215) = 1.3.
    """
    if skipped:
        unclipped(monkeypatch)
    model = PrivateSpectralLDA(1, clip_norm={"counts": 10.0, "pairs": 10.0}, random_state=0)
    data = np.full((100, 2), 5)
    one, other = data.copy(), data.copy()
    one[0], other[0] = (10**9, 0), (0, 10**9)
    result = audit(model, one, other, n_runs=60, confidence=SURE, threshold=0.0,
                   statistic=lambda fitted: float(np.diff(fitted.unigram_)[0]))  # fmt: skip
    assert (result.epsilon_lower > result.epsilon_claim) == skipped


@pytest.mark.parametrize("halve", [False, True])
def test_half_the_noise_of_a_fit_is_caught(halve, monkeypatch):
    """A vocabulary of two words, far from the threshold; mu of its release is 2.7.

    With half the noise .0034 of 600 fits are on the wrong side, 2 of each kind; 12 would do.
    """
    if halve:
        normal = NoiseSource.standard_normal
        monkeypatch.setattr(NoiseSource, "standard_normal", lambda *of: normal(*of) / 2)
    model = PrivateCountVectorizer(max_words_per_document=1, epsilon=10.0, delta=0.01)
    case = worst_case(model, 40)
    mu = model.fit(*case.data).privacy_report_.rows[0].mu
    # One document of 21 and 19 changes sides: from -2 to 0.
    result = audit(model, case.data, case.neighbour, n_runs=600, statistic=case.statistic,
                   threshold=-1.0, confidence=SURE)  # fmt: skip
    assert (result.mu_lower > mu) == halve
