"""The custodian: what it refuses, when it charges, and that it lets go of the data."""

import gc
import math
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from interrupting import Interrupted, Interrupting

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivacyLeakWarning,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    unsafe_seeded_noise,
)
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.queries.counts import Clip, CountChunks, CountNorm, NormHistogram, WordFrequencies
from sktensor_dp.queries.expected_counts import N_THREADS, ExpectedCounts, run_in_batches
from sktensor_dp.queries.moments import PairMoments
from sktensor_dp.queries.slices import SharedRowSums, SliceChunks, UnitLevels

# The data is too small for anything but these tests, and some fits say so.
pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")

N, D = 120, 30
DELTA = 1e-6
WORDS = WordFrequencies(Clip(CountNorm(1), 5.0))
PAIRS = PairMoments(Clip(CountNorm(1), 5.0), 1.0)


def counts(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.poisson(40 * rng.dirichlet(np.full(D, 0.5), N)).astype(float)


class Source:
    """Chunks that fail once they have been read as often as allowed."""

    def __init__(self, X: np.ndarray, passes: int) -> None:
        self.X, self.passes, self.n_units = X, passes, len(X)

    def __iter__(self) -> Iterator[np.ndarray]:
        yield self._read()

    def _read(self) -> np.ndarray:
        if self.passes == 0:
            raise OSError("the data was read")
        self.passes -= 1
        return self.X


def opened(chunks: Any, plan: ReleasePlan, unit: str = "document") -> DataCurator:
    return DataCurator(chunks, plan, spender="test", unit=unit, accountant=None)


def curator_of(
    chunks: Any, shares: dict[str, float], epsilon: float = 1.0, uses: Any = None
) -> DataCurator:
    return opened(chunks, ReleasePlan.split(epsilon, DELTA, shares, uses))


def chunks_of(seed: int) -> CountChunks:
    return CountChunks(sp.csr_matrix(counts(seed)), N, D)


def lda(**parameters: Any) -> PrivateSpectralLDA:
    return PrivateSpectralLDA(**{"n_components": 2, "random_state": 0, **parameters})


def fit_source(estimator: PrivateSpectralLDA, source: Source) -> PrivateSpectralLDA:
    return estimator.fit_chunks(source, n_samples=N, n_features=D)


@pytest.mark.parametrize(
    ("name", "query", "message"),
    [
        ("pair_moments", PAIRS, "not in the plan"),
        ("word_frequencies", PAIRS, "takes a WordFrequencies"),
        ("norm_histogram", WORDS, "takes a NormHistogram"),
        ("document_frequencies", WORDS, "takes a DocumentFrequencies"),
    ],
)
def test_what_was_not_planned_is_refused_unread(name, query, message):
    with curator_of(Source(counts(0), 0), {"word_frequencies": 1.0}) as curator:
        for ask in (curator.release, curator.exact_product, curator.release_partitions):
            with pytest.raises(RuntimeError, match=message):
                ask(name, query)
        assert curator.report().rows == ()
        with pytest.raises(KeyError):
            curator.release("column_sums", query)


def test_a_release_is_made_as_often_as_planned(seed):
    twice = {"word_frequencies": 2}
    with curator_of(chunks_of(seed), {"word_frequencies": 1.0}, uses=twice) as curator:
        first, second = (curator.release("word_frequencies", WORDS) for _ in range(2))
        assert (first != second).any()
        with pytest.raises(RuntimeError, match="used up"):
            curator.release("word_frequencies", WORDS)
    (row,) = curator.report().rows
    assert row.uses == 2
    assert curator.report().epsilon == pytest.approx(1.0, rel=1e-9)


def test_a_failed_release_is_used_up():
    """It may have read everything before it failed."""
    with curator_of(Source(counts(0), 0), {"word_frequencies": 1.0}) as curator:
        with pytest.raises(OSError, match=r"data was read|failed with OSError"):
            curator.release("word_frequencies", WORDS)
        with pytest.raises(RuntimeError, match="used up"):
            curator.release("word_frequencies", WORDS)


def test_nothing_leaves_without_noise_at_a_finite_cost():
    chunks = Source(counts(0), 0)
    with curator_of(chunks, {"norm_histogram": 1.0, "pair_moments": 1e-12}, 1e3) as curator:
        with pytest.raises(RuntimeError, match="needs noise"):
            curator.exact_product("pair_moments", PAIRS)
        with pytest.raises(RuntimeError, match="not made by"):
            curator.release_partitions("norm_histogram", NormHistogram(CountNorm(), np.arange(2)))


def test_threads_warn_as_little_as_the_curator(cache_of):
    """Whether an overflow warns may depend on one unit, in threads as in their caller."""
    threads = set()

    def overflowing(batch, space):
        threads.add(threading.current_thread())
        return np.float32(np.full(1, 1e30) * 1e30)

    cache_of(1)
    X = counts(0)
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="raise"):
        warnings.simplefilter("always")
        run_in_batches(overflowing, sp.csr_matrix(X[np.argsort((X > 0).sum(axis=1))]), 2)
    assert not caught
    assert threads - {threading.current_thread()} or N_THREADS == 1


class Spoiled(WordFrequencies):
    def total(self, chunk):
        result = super().total(chunk)
        result[:3] = math.nan, math.inf, -math.inf
        return result


def test_what_is_not_finite_is_never_released(seed):
    """Queries see to it; were one to fail, no error would tell, and no number would."""
    with curator_of(chunks_of(seed), {"word_frequencies": 1.0}) as curator:
        answer = curator.noisy("word_frequencies", Spoiled(WORDS.clip))
    # Noise about 0; beyond eight deviations once in 1e15 numbers.
    assert (np.abs(answer.value[:3]) < 8 * answer.sigma).all()


@pytest.mark.parametrize("sensitivity", [math.nan, math.inf, 0.0, 1e-250, 1e250])
def test_sensitivities_that_noise_cannot_be_scaled_to_are_refused_unread(sensitivity):
    class Odd(WordFrequencies):
        l2_sensitivity = sensitivity

    with curator_of(Source(counts(0), 0), {"word_frequencies": 1.0}) as curator:
        with pytest.raises(RuntimeError, match="a Odd with a sensitivity of"):
            curator.release("word_frequencies", Odd(WORDS.clip))
        assert curator.report().rows == ()


@pytest.fixture
def alive() -> Iterator[Any]:
    """Objects of some kinds that were made since the test began, once garbage is collected."""

    def found(*kinds: type) -> set[type]:
        gc.collect()
        return {type(one) for one in gc.get_objects() if isinstance(one, kinds)}

    # What was there before takes most of the time.
    gc.freeze()
    yield found
    gc.unfreeze()


def test_a_closed_curator_has_no_data(seed, alive):
    chunks, shares = chunks_of(seed), {"word_frequencies": 1.0, "pair_moments": 1.0}
    with curator_of(chunks, shares, math.inf) as curator:
        product = curator.exact_product("pair_moments", PAIRS)
        product(np.eye(D))
        assert alive(DataCurator, CountChunks) == {DataCurator, CountChunks}
    del chunks
    assert alive(CountChunks) == set()
    for ask in (lambda: product(np.eye(D)), lambda: curator.release("word_frequencies", WORDS)):
        with pytest.raises(RuntimeError, match="closed"):
            ask()


@pytest.mark.parametrize(
    "options", [{}, {"delta": 0}, {"epsilon": math.inf}, {"perturbation": "moment_tensor"}], ids=str
)
def test_a_fitted_estimator_holds_no_curator(options, seed, alive):
    for fit in (PrivateSpectralLDA.fit, PrivateSpectralLDA.partial_fit):
        estimator = lda(**options)
        fit(estimator, sp.csr_matrix(counts(seed)))
        assert alive(DataCurator, CountChunks) == set()


@pytest.mark.parametrize("options", [{}, {"delta": 0}, {"perturbation": "moment_tensor"}], ids=str)
def test_a_refused_fit_reads_nothing(options):
    budget = BudgetAccountant(epsilon=0.9, delta=DELTA)
    estimator = lda(accountant=budget, **options)
    with pytest.raises(BudgetError):
        fit_source(estimator, Source(counts(0), 0))
    assert budget.entries == ()
    assert not hasattr(estimator, "components_")
    with budget, pytest.raises(BudgetError):
        fit_source(lda(**options), Source(counts(0), 0))
    assert budget.entries == ()


@pytest.mark.parametrize(
    "options",
    [{"n_refinements": 0}, {"perturbation": "moment_tensor", "n_refinements": 2}],
    ids=str,
)
def test_without_noise_the_same_releases_are_made(options, seed):
    """Once limits are public and the number of steps is given."""
    limits = {"counts": 8.0, "pairs": 8.0, "triples": 50.0}
    reports = [
        lda(epsilon=epsilon, clip_norm=limits, **options).fit(counts(seed)).privacy_report_
        for epsilon in (500.0, math.inf)
    ]
    noisy, exact = ([(row.name, row.uses) for row in report.rows] for report in reports)
    # Products stand for the pair moments where there is no noise.
    assert exact == noisy
    assert reports[0].epsilon == pytest.approx(500.0)
    assert reports[1].epsilon == math.inf
    assert all(row.sigma == 0 for row in reports[1].rows)
    assert all(row.sigma > 0 for row in reports[0].rows)
    assert {name for name, _ in exact} < set(CATALOGUE)


def test_parameters_are_never_written_back(seed):
    limits = {"counts": 5.0}
    given = {
        "n_components": 50, "epsilon": 2.0, "clip_norm": limits, "doc_topic_prior": None,
        "random_state": 1, "n_refinements": "auto",
    }  # fmt: skip
    estimator = PrivateSpectralLDA(**given)
    before = estimator.get_params()
    with pytest.warns(UserWarning, match="exceeds"):
        estimator.fit(counts(seed))
    after = estimator.get_params()
    assert all(after[name] is value for name, value in before.items())
    assert limits == {"counts": 5.0}
    assert estimator.clip_norm_ is not limits


def slice_curator(uses: int, mu: float, pure: float = 0.0) -> DataCurator:
    releases = (
        PlannedRelease("shared_row_sums", PrivacyCost(mu=0.3, epsilon=pure)),
        PlannedRelease("shared_factor_sums", PrivacyCost(mu=mu), uses),
    )
    chunks = SliceChunks(np.array([[0, 0]]), np.ones(1), (2, 3), 0, (-1.0, 1.0))
    plan = ReleasePlan(1.0, 1e-6, releases)
    # Draws that are rejected call functions again: as many for the same noise.
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(0):
        return opened(chunks, plan, "slice")


SUMS = SharedRowSums(1, (2, 3), 0.0, 1.0, 1.0)


def test_what_is_left_of_a_release_pays_for_another_once():
    with slice_curator(4, 0.5) as curator:
        usual = curator.noisy("shared_row_sums", SUMS)
        rest = curator.noisy("shared_row_sums", SUMS, "shared_factor_sums")
        # Four parts of .5 are one of mu = 1.
        assert rest.sigma == pytest.approx(0.3 * usual.sigma)
        for spent in ("shared_factor_sums", "shared_row_sums"):
            with pytest.raises(RuntimeError, match="used up"):
                curator.noisy("shared_row_sums", SUMS, spent)
        with pytest.raises(RuntimeError, match="used up"):
            curator.noisy("shared_row_sums", SUMS)
        report = curator.report()
    whole = 0.3**2 + 4 * 0.5**2
    assert sum(row.uses * row.mu**2 for row in report.rows) == pytest.approx(whole)
    assert report.composition.unused == ()


def test_what_is_refused_or_interrupted_leaves_no_use_beside_the_plan():
    """A use that the rest would have paid for is not to be had at the usual, higher cost."""
    with slice_curator(2, 0.1) as curator:
        curator.noisy("shared_row_sums", SUMS)
        with Interrupting() as seen:
            curator.noisy("shared_row_sums", SUMS, "shared_factor_sums")
    for place in range(len(seen.calls)):
        with slice_curator(2, 0.1) as curator:
            curator.noisy("shared_row_sums", SUMS)
            with pytest.raises(Interrupted), Interrupting(place):
                curator.noisy("shared_row_sums", SUMS, "shared_factor_sums")
            with pytest.raises(RuntimeError, match="used up"):
                curator.noisy("shared_row_sums", SUMS)


def test_another_kind_of_query_or_of_noise_is_refused_before_it_is_answered():
    for curator, name, query in (
        (slice_curator(2, 0.5, pure=0.1), "shared_row_sums", SUMS),
        (slice_curator(0, 0.5), "shared_row_sums", SUMS),
        (slice_curator(2, 0.5), "unit_levels", UnitLevels(1.0)),
        (slice_curator(2, 0.5), "shared_row_sums", UnitLevels(1.0)),
    ):
        with pytest.raises(RuntimeError):
            curator.noisy(name, query, "shared_factor_sums")
        assert curator.report().rows == ()


@pytest.mark.parametrize(
    ("cost", "part"), [(PrivacyCost(mu=0.5), 3**-0.5), (PrivacyCost(epsilon=0.5), 1 / 3)]
)
def test_three_uses_that_are_left_pay_for_one_release_of_either_noise(cost, part):
    chunks = SliceChunks(np.array([[0, 0]]), np.ones(1), (2, 3), 0, (-1.0, 1.0))
    plan = ReleasePlan(9.0, 1e-6 * (cost.mu > 0), (PlannedRelease("unit_levels", cost, 4),))
    with opened(chunks, plan, "slice") as curator:
        usual = curator.noisy("unit_levels", UnitLevels(1.0))
        rest = curator.noisy("unit_levels", UnitLevels(1.0), "unit_levels")
        assert rest.sigma == pytest.approx(part * usual.sigma)
        with pytest.raises(RuntimeError, match="used up"):
            curator.noisy("unit_levels", UnitLevels(1.0))
        report = curator.report()
    assert report.epsilon == pytest.approx(plan.cost.epsilon_at(plan.delta))
    assert report.composition.epsilon_at(plan.delta) == pytest.approx(report.epsilon)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_counts_without_a_limit_are_refused_unread_unless_there_is_no_noise(delta, order, single):
    query = ExpectedCounts(np.full((2, D), 1 / D), np.full(2, 0.5), single, math.inf, order)
    for epsilon in (1e-3, 1.0, 1e8, 1e300):
        plan = ReleasePlan.split(epsilon, delta, {"expected_counts": 1.0})
        with (
            opened(Source(counts(0), 0), plan) as curator,
            pytest.raises(RuntimeError, match="sensitivity of inf cannot be released"),
        ):
            curator.noisy("expected_counts", query)
    exact = ReleasePlan.split(math.inf, delta, {"expected_counts": 1.0})
    with opened(chunks_of(0), exact) as curator:
        assert curator.noisy("expected_counts", query).sigma == 0


def roomless(*_: Any, **__: Any) -> Any:
    """An error of numpy's that names a length."""
    return np.empty((123_456_789, 2**20))


class Totals(PairMoments):
    total = roomless


class Table:
    """Rows that have no room as an array."""

    shape, ndim, dtype = (9, 6), 2, np.dtype(float)
    __array__ = roomless

    def __len__(self) -> int:
        return 9


def released_without_room() -> None:
    with curator_of(chunks_of(0), {"pair_moments": 1.0}) as curator:
        curator.release("pair_moments", Totals(Clip(CountNorm(1), 5.0), 1.0))


@pytest.mark.parametrize(
    "call",
    [
        released_without_room,
        lambda: PrivateSpectralLDA(2).fit(Table()),
        lambda: PrivateTensorPowerMethod(2, data_norm=1.0).fit(Table()),
        lambda: PrivateTensorPowerMethod(2, moment="single_topic").fit(Table()),
    ],
)
def test_what_has_no_room_is_not_told_by_its_shape(call):
    """How many rows there are may be private; how many pairs of words occur always is."""
    with pytest.raises(MemoryError) as error:
        call()
    assert "1234567" not in str(error.value)
    assert "charged" in str(error.value) or call is not released_without_room
    assert error.value.__context__ is error.value.__cause__ is None
