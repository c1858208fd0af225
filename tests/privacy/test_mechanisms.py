"""Noise of the mechanisms: its law, geometry and memory, and what reports say of it."""

import math
import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations

import mpmath
import numpy as np
import pytest
from scipy import stats
from seeded_sources import same_noise
from sessions import opened
from small_corpora import counts, tiny

from sktensor_dp import (
    PrivacyLeakWarning,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    load_statement,
    unsafe_seeded_noise,
)
from sktensor_dp.data.entries import EntryChunks
from sktensor_dp.privacy.catalogue import CATALOGUE
from sktensor_dp.privacy.mechanisms import (
    WHOLE,
    Mechanism,
    Piecewise,
    gaussian_matrix,
    gaussian_pair_masses,
    gaussian_symmetric,
    gaussian_vector,
    laplace_pair_masses,
    laplace_vector,
    piecewise_deviation,
    sigma_of,
    spherical_laplace_rows,
    spherical_laplace_symmetric,
)
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.entries import Entries
from sktensor_dp.queries.laws import GAUSSIAN, LAPLACE
from sktensor_dp.queries.laws import SPHERICAL as SPHERICAL_LAPLACE

SENSITIVITY, STRENGTH, K = 0.3, 1.7, 10


def symmetric_value(order: int, k: int = K) -> np.ndarray:
    rng = np.random.default_rng(3)
    value = rng.standard_normal((k,) * order)
    return sum(value.transpose(axes) for axes in permutations(range(order)))


LAWS = (
    gaussian_symmetric, gaussian_vector, laplace_vector, spherical_laplace_symmetric,
    spherical_laplace_rows,
    # These work in the memory of what they are given.
    gaussian_matrix, gaussian_pair_masses, laplace_pair_masses,
)  # fmt: skip
every_law = pytest.mark.parametrize("place", range(len(LAWS)))


def released(place: int, value: np.ndarray, noise: NoiseSource, strength: float) -> np.ndarray:
    return LAWS[place](value.copy() if place > 4 else value, SENSITIVITY, strength, noise)


@every_law
def test_statistics_are_kept_and_returned_without_noise_where_none_is_asked(place):
    value = symmetric_value(2)
    kept = value.copy()
    released(place, value, NoiseSource(), STRENGTH)
    assert np.array_equal(value, kept)
    exact = released(place, value, NoiseSource(), math.inf)
    np.testing.assert_allclose(exact, value, rtol=1e-12)


@every_law
def test_digits_below_the_step_leave_no_trace(place, monkeypatch):
    # Halves of steps move no statistic that lies on the grid, as zero does.
    both = np.zeros((K, K)), np.full((K, K), 1e-9)
    assert np.array_equal(*(released(place, x, same_noise(11), STRENGTH) for x in both))
    # They do where the same noise is added to what was not rounded.
    monkeypatch.setattr(
        "sktensor_dp.privacy.noise_source._on_grid", lambda x, steps, grid: x + steps * grid.step
    )
    assert not np.array_equal(*(released(place, x, same_noise(11), STRENGTH) for x in both))


def test_mechanism_reads_its_part_of_the_cost():
    seen = []

    def law(value: object, sensitivity: float, strength: float, noise: object, *geometry: object):
        seen.append((sensitivity, strength, *geometry))
        return value

    cost = PrivacyCost(mu=0.5, epsilon=0.25)
    assert sigma_of(GAUSSIAN, 2.0, cost) == 4.0
    assert sigma_of(GAUSSIAN, 2.0, PrivacyCost(mu=math.inf)) == 0
    assert sigma_of(LAPLACE, 2.0, cost) == pytest.approx(8.0 * math.sqrt(2))
    assert sigma_of(SPHERICAL_LAPLACE, 2.0, cost) == 8.0
    Mechanism(GAUSSIAN, law, ("imag",)).release(np.zeros(1), 2.0, cost, NoiseSource(), 7j)
    Mechanism(LAPLACE, law).release(np.zeros(1), 3.0, cost, NoiseSource(), 7j)
    assert seen == [(2.0, 0.5, 7.0), (3.0, 0.25)]


@pytest.mark.parametrize("law", [gaussian_pair_masses, laplace_pair_masses])
@pytest.mark.parametrize("at_once", [1, 700, 4000])
def test_noise_in_place_is_that_of_the_whole(law, at_once, cache_of):
    """Every pair is on the grid of all pairs and has noise of its own, and nothing stays."""
    d, weight = 270, 0.25  # matrices are mirrored in squares of 256
    value = np.random.default_rng(0).normal(size=(d, d))
    value += value.T
    cache_of(4 * at_once)
    taken, turned = value.copy(), np.asfortranarray(value)
    released = law(taken, SENSITIVITY, STRENGTH, same_noise(), weight)
    assert released is taken
    np.testing.assert_array_equal(released, released.T)
    by_columns = law(turned, SENSITIVITY, STRENGTH, same_noise(), weight)
    assert by_columns.flags.c_contiguous
    assert np.shares_memory(by_columns, turned)
    np.testing.assert_array_equal(by_columns, released)
    size, weights = d * (d + 1) // 2, np.where(np.eye(d), weight, 2) / SENSITIVITY
    step = same_noise().grid(1 / STRENGTH, size if law is laplace_pair_masses else size**0.5).step
    places = released * weights / step
    np.testing.assert_allclose(places, np.rint(places), rtol=1e-15, atol=1e-6)
    noise = ((released - value) * weights)[np.triu_indices(d)]
    assert len(np.unique(noise.round(9))) == size
    # 45 draws of either law, of deviation 1 or sqrt(2) of the scale: from a half to twice that.
    assert 0.5 < noise.std() * STRENGTH < 3


@pytest.mark.parametrize("law", [gaussian_matrix, gaussian_pair_masses, laplace_pair_masses])
def test_noise_in_place_takes_a_few_megabytes(law):
    """Beside 32 MB: places, coordinates and noise of one piece, of 1 MB each."""
    value = np.zeros((2000, 2000))
    law(value[:9, :9].copy(), SENSITIVITY, STRENGTH, NoiseSource())  # tables of the law
    tracemalloc.start()
    law(value, SENSITIVITY, STRENGTH, NoiseSource())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20


Z = 4.9  # two-sided 1e-6 point of the normal
EPSILONS = (1e-9, 1e-6, 0.01, 0.3, 1.0, 2.0, 5.0, 10.0, 20.0, 43.9, 44.0, 700.0)


@pytest.fixture
def noise(seed: int) -> Iterator[NoiseSource]:
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        yield NoiseSource()


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("points", [1, 7, 2**20])
def test_probabilities_never_differ_by_more_than_e_to_the_epsilon(epsilon, points, monkeypatch):
    """In exact arithmetic; and by hardly less, up to where rounding is coarse."""
    monkeypatch.setattr("sktensor_dp.privacy.mechanisms.POINTS", points)
    law = Piecewise(epsilon)
    near, far = law.probabilities
    assert near > far > 0
    assert law.window * near + 2 * points * far == 1
    assert (near * WHOLE * law.window).denominator == 1
    with mpmath.workdps(80):
        most = mpmath.exp(mpmath.mpf(epsilon))
        ratio = mpmath.mpf((near / far).numerator) / mpmath.mpf((near / far).denominator)
        assert ratio <= most
        if epsilon <= 20:
            assert mpmath.log(ratio) >= epsilon * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("points", [1, 7, 60])
def test_mean_and_variance_are_those_of_the_probabilities(epsilon, points, monkeypatch):
    monkeypatch.setattr("sktensor_dp.privacy.mechanisms.POINTS", points)
    law = Piecewise(epsilon)
    (near, far), outer = law.probabilities, points + law.reach
    for own in {-points, -points // 2, 0, points}:
        law_of = {o: near if abs(o - own) <= law.reach else far for o in range(-outer, outer + 1)}
        mean = sum(o * p for o, p in law_of.items())
        square = sum(o * o * p for o, p in law_of.items())
        # Answers are divided by 2 M gain: unbiased, as exactly as the gain is a double.
        gain = Fraction(law.gain)
        assert abs(mean - gain * own) <= gain * abs(own) * Fraction(2) ** -50
        variance = float((square - mean**2) / (2 * points * gain) ** 2)
        assert law.variance(own / (2 * points)) == pytest.approx(variance, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-10, math.nan])
def test_an_epsilon_without_a_law_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be at least"):
        Piecewise(epsilon)


@pytest.mark.parametrize("own", [-6, 0, 5])
def test_drawn_answers_follow_the_law_and_no_other(own, noise, monkeypatch):
    """Chi-square, n = 400,000, alpha 1e-6; power 1 - 1e-9 and more at an epsilon larger by 5 %.

    A window has probability .67 at 1.5; the other moves it by .016, or 22 standard errors: a
    non-centrality of some 490 in 19 degrees of freedom.
    """
    monkeypatch.setattr("sktensor_dp.privacy.mechanisms.POINTS", 6)
    law, other, size = Piecewise(1.5), Piecewise(1.5 * 1.05), 400_000
    drawn = law.release(np.full(size, own / 12), noise) * (12 * law.gain)
    answers, outer = np.rint(drawn).astype(int), law.points + law.reach
    np.testing.assert_allclose(drawn, answers, atol=1e-9)
    assert other.reach == law.reach

    def p_value(law: Piecewise) -> float:
        near, far = (float(p) for p in law.probabilities)
        expected = np.full(2 * outer + 1, far * size)
        expected[law.points + own : law.points + own + law.window] = near * size
        observed = np.bincount(answers + outer, None, 2 * outer + 1)
        return float(stats.chisquare(observed, expected).pvalue)

    assert p_value(law) > 1e-6
    assert p_value(other) < 1e-18


def test_integers_are_even_up_to_two_to_the_64(noise):
    """Counts of thirds, n = 90,000, alpha 1e-6; a third that is 5 % larger: power 1 - 1e-6."""
    for below in (3, 2**63 + 2**62, WHOLE):
        drawn = noise.integers(below, 90_000)
        assert drawn.dtype == np.uint64
        thirds = np.floor(drawn.astype(float) / below * 3).astype(int)
        counts = np.bincount(np.minimum(thirds, 2), minlength=3)
        assert counts.sum() == 90_000
        assert np.abs(counts - 30_000).max() < 5.3 * math.sqrt(20_000)
    assert not noise.integers(1, 10).any()


# Laws of released values of tensors that depend on the cost, or on the value itself.

SHAPE, PURE = (4, 6, 3), PrivacyCost(epsilon=0.9)


def session_of_entries(name: str, cost: PrivacyCost, n: int = 300) -> Session:
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.integers(0, size, n) for size in SHAPE])
    plan = ReleasePlan(1.0, 1e-6, (PlannedRelease(name, cost),))
    return opened(EntryChunks(X, rng.uniform(1, 5, n), SHAPE, (1.0, 5.0)), plan)


def test_purely_released_entries_have_the_variance_of_the_piecewise_law(noise):
    """Mean square, n = 3000, alpha 1e-6; a deviation that is 15 % too large: power 1 - 1e-6."""
    noisy, exact = (
        session_of_entries("entries", cost, 3000)(Entries(2.0)).as_sum()
        for cost in (PURE, PrivacyCost(mu=math.inf))
    )
    truth = exact.value
    assert noisy.sigma == pytest.approx(4 * piecewise_deviation(0.9))
    variances = [16 * Piecewise(0.9).variance(x / 4) for x in truth]
    white = (noisy.value - truth) / np.sqrt(variances)
    assert abs((white**2).mean() - 1) < Z * math.sqrt(2 / truth.size)


# Reports say where the program's noise is not proved to have the law on the page.

SPHERICAL = "Spherical Laplace noise"


@tiny
@pytest.mark.parametrize(
    ("options", "said"),
    [({}, False), ({"delta": 0.0}, True), ({"delta": 0.0, "epsilon": math.inf}, False)],
    ids=["Gaussian", "pure", "no noise"],
)
def test_what_the_program_adds_to_delta_is_in_the_report(options, said):
    """The third moment has spherical noise where it is pure; the session notes it for any fit."""
    model = PrivateSpectralLDA(2, perturbation="moment_tensor", random_state=0, **options)
    report = model.fit(counts()).privacy_report_
    for shown in (str(report), load_statement(report.to_json()).notes):
        assert (SPHERICAL in str(shown)) == said


@tiny
def test_a_stream_says_it_once_and_every_law_that_is_not_proved_has_a_note():
    power = PrivateTensorPowerMethod(1, data_norm=1.0, delta=0.0, max_iter=2, random_state=0)
    for part in np.split(np.random.default_rng(0).standard_normal((200, 4)), 4):
        power.partial_fit(part)
    notes = power.privacy_report_.notes
    assert [sum(said in note for note in notes) for said in (SPHERICAL, "disjoint")] == [1, 1]
    laws = {law for one in CATALOGUE.values() for law in (one.gaussian, one.pure) if law}
    spherical = [law for law in laws if law.law.spherical]
    assert spherical
    assert all(SPHERICAL in law.residual for law in spherical)
