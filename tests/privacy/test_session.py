"""The session: what it refuses, when it charges, and that it lets go of the data."""

import gc
import math
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
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
from sktensor_dp.data.counts import CountChunks
from sktensor_dp.data.person_entries import PersonChunks
from sktensor_dp.data.units import Chunks
from sktensor_dp.exceptions import LedgerError
from sktensor_dp.privacy.payer import NOBODY, Payer
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.report import PLANNED
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.clips import Clip, CountNorm
from sktensor_dp.queries.count_moments import PairMoments, WordFrequencies
from sktensor_dp.queries.person_entries import (
    ReleasedEffects,
    SharedFactorSums,
    SharedRowSums,
    UnitLevels,
)
from sktensor_dp.queries.query import REGISTERED
from sktensor_dp.queries.samples import LiftedBall, SecondMoments
from sktensor_dp.tensor.shared_parameters import SharedEffects

# The data is too small for anything but these tests, and some fits say so.
pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")

N, D = 120, 30
DELTA = 1e-6
WORDS = WordFrequencies(Clip(CountNorm(1), 5.0))
PAIRS = PairMoments(Clip(CountNorm(1), 5.0), 1.0)


def counts(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.poisson(40 * rng.dirichlet(np.full(D, 0.5), N)).astype(float)


class Source(Chunks):
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


def session_of(
    chunks: Any, shares: dict[str, float], epsilon: float = 1.0, uses: Any = None
) -> Session:
    return Session(chunks, ReleasePlan.split(epsilon, DELTA, shares, uses))


ONE = {"word_frequencies": 1.0}


def unread(shares: dict[str, float] = ONE, epsilon: float = 1.0) -> Session:
    """Session of chunks that fail when they are read."""
    return session_of(Source(counts(0), 0), shares, epsilon)


def chunks_of(seed: int) -> CountChunks:
    return CountChunks(sp.csr_matrix(counts(seed)), N, D)


def lda(**parameters: Any) -> PrivateSpectralLDA:
    return PrivateSpectralLDA(**{"n_components": 2, "random_state": 0, **parameters})


def fit_source(estimator: PrivateSpectralLDA, source: Source) -> PrivateSpectralLDA:
    return estimator.fit_chunks(source, n_samples=N, n_features=D)


class Impostor(PairMoments):
    name = "column_sums"


del REGISTERED["column_sums"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (PAIRS, "not in the plan"),
        (Impostor(PAIRS.clip, 1.0), "not in the catalogue"),
        (SecondMoments(LiftedBall(1.0)), "not in the plan"),
        (lambda chunk: chunk, "not in the catalogue"),
    ],
)
def test_what_was_not_planned_is_refused_unread(query, message):
    with unread() as ask:
        for question in (ask, ask.exact_product):
            with pytest.raises(RuntimeError, match=message):
                question(query)
        assert ask.report().rows == ()


def test_a_session_is_charged_when_it_is_entered_and_asked_while_it_is_open(seed):
    budget = BudgetAccountant(2.0, DELTA)
    plan = ReleasePlan.split(1.0, DELTA, ONE)
    session = Session(chunks_of(seed), plan, Payer("test", budget))
    with pytest.raises(RuntimeError, match="not open yet"):
        session(WORDS)
    assert budget.entries == ()
    with pytest.raises(OSError, match="later"), Session(chunks_of(seed), plan, Payer("a", budget)):
        raise OSError("later")
    assert [entry.spender for entry in budget.entries] == ["a"]
    # Others may have spent what a check before it found left.
    later = Session(Source(counts(0), 0), plan, Payer("b", budget.spend(0.9, 0)))
    with pytest.raises(BudgetError, match="Nothing more was charged"), later:
        pytest.fail("it was entered")


def test_a_session_keeps_to_its_plan_and_tells_public_facts_alone():
    chunks = PersonChunks(np.array([[0, 0]]), np.ones(1), (2, 3), 0, (-1.0, 1.0))
    with Session(chunks, ReleasePlan.split(1.0, DELTA, {"unit_levels": 1.0})) as ask:
        assert (ask.n_units, ask.public("shape")) == (2, (2, 3))
        with pytest.raises(RuntimeError, match="must be the charged one"):
            ask.divide(ReleasePlan.split(2.0, DELTA, {"unit_levels": 1.0}))
        with pytest.raises(RuntimeError, match="not among the public facts"):
            ask.public("values")
        with pytest.raises(RuntimeError, match="entered once"):
            ask.__enter__()


def test_a_release_is_made_as_often_as_planned(seed):
    with session_of(chunks_of(seed), ONE, uses={"word_frequencies": 2}) as ask:
        first, second = (ask(WORDS) for _ in range(2))
        assert (first.value != second.value).any()
        with pytest.raises(RuntimeError, match="used up"):
            ask(WORDS)
    (row,) = ask.report().rows
    assert row.uses == 2
    assert ask.report().epsilon == pytest.approx(1.0, rel=1e-9)


def test_a_failed_release_is_used_up():
    """It may have read everything before it failed."""
    with unread() as ask:
        for error, message in ((OSError, "data was read|failed with"), (RuntimeError, "used up")):
            with pytest.raises(error, match=message):
                ask(WORDS)


def test_nothing_leaves_without_noise_at_a_finite_cost():
    plan = {"norm_histogram": 1.0, "pair_moments": 1e-12}
    with unread(plan, 1e3) as ask, pytest.raises(RuntimeError, match="needs noise"):
        ask.exact_product(PAIRS)


class Spoiled(WordFrequencies):
    def total(self, chunk):
        result = super().total(chunk)
        result[:3] = math.nan, math.inf, -math.inf
        return result


def test_what_is_not_finite_is_never_released(seed):
    """Queries see to it; were one to fail, no error would tell, and no number would."""
    with session_of(chunks_of(seed), ONE) as ask:
        answer = ask(Spoiled(WORDS.clip))
    # Noise about 0; beyond eight deviations once in 1e15 numbers.
    assert (np.abs(answer.value[:3]) < 8 * answer.sigma).all()


@pytest.mark.parametrize("sensitivity", [math.nan, math.inf, 0.0, 1e-250, 1e250])
def test_sensitivities_that_noise_cannot_be_scaled_to_are_refused_unread(sensitivity):
    class Odd(WordFrequencies):
        l2_sensitivity = sensitivity

    with unread() as ask:
        with pytest.raises(RuntimeError, match="a Odd with a sensitivity of"):
            ask(Odd(WORDS.clip))
        assert ask.report().rows == ()


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


def test_a_closed_session_has_no_data(seed, alive):
    chunks, shares = chunks_of(seed), {"word_frequencies": 1.0, "pair_moments": 1.0}
    with session_of(chunks, shares, math.inf) as ask:
        product = ask.exact_product(PAIRS)
        product(np.eye(D))
        assert alive(Session, CountChunks) == {Session, CountChunks}
    del chunks
    assert alive(CountChunks) == set()
    for question in (lambda: product(np.eye(D)), lambda: ask(WORDS)):
        with pytest.raises(RuntimeError, match="closed"):
            question()


@pytest.mark.parametrize("options", [{}, {"delta": 0}, {"perturbation": "moment_tensor"}], ids=str)
def test_a_refused_fit_reads_nothing(options):
    budget = BudgetAccountant(epsilon=0.9, delta=DELTA)
    with pytest.raises(BudgetError):
        fit_source(lda(accountant=budget, **options), Source(counts(0), 0))
    with budget, pytest.raises(BudgetError):
        fit_source(lda(**options), Source(counts(0), 0))
    assert budget.entries == ()


NONE = SharedEffects(np.zeros(3), np.zeros(3), np.zeros(3), 0.0)
ABOUT = ReleasedEffects((NONE,), 0.0, 1.0)
SUMS = SharedRowSums(1, (2, 3), ABOUT, 1.0)
LEVELS = UnitLevels(1.0, order=1)
GAUSSIAN, PURE = PrivacyCost(mu=0.5), PrivacyCost(epsilon=0.5)


def plan_of(*releases: tuple[str, PrivacyCost, int]) -> ReleasePlan:
    delta = 1e-6 * any(cost.mu > 0 for _, cost, _ in releases)
    return ReleasePlan(9.0, delta, tuple(PlannedRelease(*release) for release in releases))


def person_session(plan: ReleasePlan, payer: Payer = NOBODY) -> Session:
    chunks = PersonChunks(np.array([[0, 0]]), np.ones(1), (2, 3), 0, (-1.0, 1.0))
    # Draws that are rejected call functions again: as many for the same noise.
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(0):
        return Session(chunks, plan, payer)


def plan_of_two(uses: int, mu: float = 0.5, pure: float = 0.0) -> ReleasePlan:
    sums = PrivacyCost(mu=0.3, epsilon=pure)
    return plan_of(("shared_row_sums", sums, 1), ("shared_factor_sums", PrivacyCost(mu=mu), uses))


@pytest.mark.parametrize(
    ("plan", "release", "payer", "ratio"),
    [
        # Four parts of .5 are one of mu = 1.
        (plan_of_two(4), SUMS, SharedFactorSums, 0.3),
        # After one use of four, three are left.
        (plan_of(("unit_levels", GAUSSIAN, 4)), LEVELS, UnitLevels, 3**-0.5),
        (plan_of(("unit_levels", PURE, 4)), LEVELS, UnitLevels, 1 / 3),
    ],
    ids=["another release", "the same, Gaussian", "the same, pure"],
)
def test_what_is_left_of_a_release_pays_for_one_more_once(plan, release, payer, ratio):
    with person_session(plan) as ask:
        usual = ask(release)
        assert ask(release, ask.left(payer), payer).sigma == pytest.approx(ratio * usual.sigma)
        for spent in (payer, type(release)):
            with pytest.raises(RuntimeError, match="used up"):
                ask(release, ask.left(spent), spent)
        with pytest.raises(RuntimeError, match="used up"):
            ask(release)
        report = ask.report()
    assert report.epsilon == pytest.approx(plan.cost.epsilon_at(plan.delta))
    assert report.composition.epsilon_at(plan.delta) == pytest.approx(report.epsilon)
    assert report.composition.unused == ()


@pytest.mark.parametrize(("cost", "ratio"), [(GAUSSIAN, 3**-0.5), (PURE, 1 / 3)])
def test_several_uses_pay_for_one_release(cost, ratio):
    plan = plan_of(("unit_levels", cost, 4))
    with person_session(plan) as ask:
        for uses in (0, -1, 5):
            with pytest.raises(RuntimeError, match="used up"):
                ask(LEVELS, pooled=uses)
        sigma = ask(LEVELS, pooled=3).sigma
        with pytest.raises(RuntimeError, match="used up"):
            ask(LEVELS, pooled=2)
        assert sigma == pytest.approx(ratio * ask(LEVELS).sigma)
        report = ask.report()
    assert report.notes[-1] == f"{PLANNED}unit_levels 4 and 2. The guarantee counts the plan."
    assert report.epsilon == pytest.approx(plan.cost.epsilon_at(plan.delta))
    assert report.composition.epsilon_at(plan.delta) == pytest.approx(report.epsilon)
    assert report.composition.unused == ()


def test_what_is_given_back_is_not_answered_and_stays_in_the_guarantee():
    plan, budget = plan_of(("unit_levels", GAUSSIAN, 4)), BudgetAccountant(math.inf, DELTA)
    with person_session(plan, Payer("fit", budget)) as ask:
        ask(LEVELS)
        ask.give_back(UnitLevels)
        ask.give_back(UnitLevels)  # nothing is left
        with pytest.raises(RuntimeError, match="used up"):
            ask(LEVELS)
        report = ask.report()
    with pytest.raises(RuntimeError):
        ask.give_back(UnitLevels)
    assert report.epsilon == pytest.approx(plan.cost.epsilon_at(plan.delta))
    assert report.composition.epsilon_at(plan.delta) == pytest.approx(report.epsilon)
    assert [(one.uses, one.gives_back) for one in budget.entries] == [(4, False), (3, True)]


@pytest.mark.parametrize("event", ["INSERT ON releases", "UPDATE ON balance"])
def test_what_cannot_be_given_back_stays_charged_and_is_not_answered(event, tmp_path):
    budget = BudgetAccountant(100.0, DELTA, path=tmp_path / "budget.sqlite")
    plan = plan_of(("unit_levels", GAUSSIAN, 4))
    with person_session(plan, Payer("fit", budget)) as ask:
        with closing(sqlite3.connect(budget.path, isolation_level=None)) as connection:
            refused = "BEGIN SELECT RAISE(ABORT, 'full'); END"
            connection.execute(f"CREATE TRIGGER t BEFORE {event} {refused}")
        with pytest.raises(LedgerError, match="full"):
            ask.give_back(UnitLevels)
        with pytest.raises(RuntimeError, match="used up"):
            ask(LEVELS)
    assert [(one.uses, one.gives_back) for one in budget.entries] == [(4, False)]


def test_what_is_refused_or_interrupted_leaves_no_use_beside_the_plan():
    """A use that the rest would have paid for is not to be had at the usual, higher cost."""
    with person_session(plan_of_two(2, 0.1)) as ask:
        ask(SUMS)
        with Interrupting() as seen:
            ask(SUMS, ask.left(SharedFactorSums), SharedFactorSums)
    for place in range(len(seen.calls)):
        with person_session(plan_of_two(2, 0.1)) as ask:
            ask(SUMS)
            with pytest.raises(Interrupted), Interrupting(place):
                ask(SUMS, ask.left(SharedFactorSums), SharedFactorSums)
            with pytest.raises(RuntimeError, match="used up"):
                ask(SUMS)


@pytest.mark.parametrize(
    ("plan", "release"),
    [(plan_of_two(2, pure=0.1), SUMS), (plan_of_two(0), SUMS), (plan_of_two(2), LEVELS)],
    ids=["two kinds of noise", "nothing left", "not planned"],
)
def test_what_the_rest_does_not_pay_for_is_refused_before_it_is_answered(plan, release):
    with person_session(plan) as ask, pytest.raises(RuntimeError):
        ask(release, ask.left(SharedFactorSums), SharedFactorSums)
    assert ask.report().rows == ()


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


def test_what_has_no_room_is_not_told_by_its_shape():
    """How many rows there are may be private; how many pairs of words occur always is."""
    ask = session_of(chunks_of(0), {"pair_moments": 1.0}).__enter__()
    totals = Totals(Clip(CountNorm(1), 5.0), 1.0)
    for call, says in (
        (lambda: ask(totals), "too little memory"),
        (lambda: PrivateSpectralLDA(2).fit(Table()), "."),
        (lambda: PrivateTensorPowerMethod(2, data_norm=1.0).fit(Table()), "."),
    ):
        with pytest.raises(MemoryError, match=says) as error:
            call()
        assert "1234567" not in str(error.value)
        assert error.value.__context__ is error.value.__cause__ is None


class Forking:
    """Chunks that fork the process when they are read a second time, in a release."""

    def __init__(self, n_passes: int) -> None:
        self.X, self.left, self.child = counts(0), n_passes, None

    def __iter__(self):
        self.left -= 1
        yield self.X[:60]
        if self.left == 0:
            self.child = os.fork()
        yield self.X[60:]


def in_chunks(source: Forking) -> None:
    PrivateSpectralLDA(1, n_refinements=0).fit_chunks(source, n_samples=N, n_features=D)


def as_a_stream(source: Forking) -> None:
    model = PrivateTensorPowerMethod(1, data_norm=4.0, perturbation="stream", max_iter=1)
    model.fit_chunks(iter(source))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize(("fit", "n_passes"), [(in_chunks, 2), (as_a_stream, 1)])
def test_a_process_forked_in_a_fit_is_refused_and_its_parent_goes_on(fit, n_passes):
    source, said = Forking(n_passes), ""
    try:
        fit(source)
    except RuntimeError as error:
        said = str(error)
    finally:
        if source.child == 0:
            os._exit(0 if "forked while a fit was running" in said else 1)
    assert said == ""
    assert os.waitstatus_to_exitcode(os.waitpid(source.child, 0)[1]) == 0
