"""The piecewise mechanism, noise that is shaped row by row, and the laws of released sums.

The right law passes but for one seed in a million. The wrong laws named here fail but for
one seed in a million, too, or in every case.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import kolmogi

from sktensor_dp import PrivacyLeakWarning, unsafe_seeded_noise
from sktensor_dp.privacy.curators.entries import EntryCurator, SliceCurator
from sktensor_dp.privacy.mechanisms import spherical_laplace_rows
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.piecewise import WHOLE, Piecewise, piecewise_deviation, piecewise_values
from sktensor_dp.privacy.plan import PlannedRelease, PrivacyCost, ReleasePlan
from sktensor_dp.privacy.releases import CATALOGUE
from sktensor_dp.statistics.entry_queries import Entries
from sktensor_dp.statistics.jacobians import CPJacobian
from sktensor_dp.statistics.observed_entries import EntryChunks, IndexSet, SliceChunks
from sktensor_dp.statistics.row_frames import RowFrames
from sktensor_dp.statistics.slice_queries import MOMENT_WEIGHT, SharedFactorSums
from sktensor_dp.tensor.shared_components import SharedComponents
from sktensor_dp.tensor.shared_effects import SharedEffects

Z = 4.9  # two-sided 1e-6 point of the normal
EPSILONS = (1e-9, 1e-6, 0.01, 0.3, 1.0, 2.0, 5.0, 10.0, 20.0, 43.9, 44.0, 700.0)


@pytest.fixture
def noise(seed: int) -> Iterator[NoiseSource]:
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        yield NoiseSource()


# The piecewise mechanism


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("points", [1, 7, 2**20])
def test_probabilities_never_differ_by_more_than_e_to_the_epsilon(epsilon, points):
    """In exact arithmetic; and by hardly less, up to where rounding is coarse."""
    law = Piecewise(epsilon, points)
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


def test_windows_lie_in_one_set_of_answers():
    """Else an answer would be possible for one value only."""
    law = Piecewise(1.3, points=5)

    class Chosen:
        def __init__(self, first: int) -> None:
            self.draws = [first, None, None]

        def integers(self, below: int, size: int) -> np.ndarray:
            given = self.draws.pop(0)
            return np.arange(size, dtype=np.uint64) % below if given is None else np.full(
                size, given, dtype=np.uint64)  # fmt: skip

    scale = 2 * law.points * law.gain
    for own in range(-5, 6):
        inside, outside = (
            np.rint(law.release(np.full(n, own / 10), Chosen(first)) * scale).astype(int)
            for n, first in ((law.window, 0), (10, law.threshold))
        )
        assert sorted(inside) == list(range(own - law.reach, own + law.reach + 1))
        outer = law.points + law.reach
        assert sorted([*inside, *outside]) == list(range(-outer, outer + 1))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("points", [1, 7, 60])
def test_mean_and_variance_are_those_of_the_probabilities(epsilon, points):
    law = Piecewise(epsilon, points)
    near, far = law.probabilities
    outer = points + law.reach
    for own in {-points, -points // 2, 0, points}:
        law_of = {o: near if abs(o - own) <= law.reach else far for o in range(-outer, outer + 1)}
        mean = sum(o * p for o, p in law_of.items())
        square = sum(o * o * p for o, p in law_of.items())
        # Answers are divided by 2 M gain: unbiased, as exactly as the gain is a double.
        gain = Fraction(law.gain)
        assert abs(mean - gain * own) <= gain * abs(own) * Fraction(2) ** -50
        variance = float((square - mean**2) / (2 * points * gain) ** 2)
        assert law.variance(own / (2 * points)) == pytest.approx(variance, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0])
def test_noise_is_less_than_laplace_noise_at_every_value(epsilon):
    law = Piecewise(epsilon)
    assert law.variance(0.0) <= law.variance(0.5) < 2 / epsilon**2
    assert piecewise_deviation(epsilon) == pytest.approx(math.sqrt(law.variance(0.0)))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 5.0, 10.0])
def test_no_other_window_has_much_less_noise(epsilon):
    """Averaged over values spread evenly, of mean square 1 / 12."""

    def variance(reach: int) -> float:
        law = Piecewise(epsilon, 10_000)
        law.reach = reach
        share = law.window * math.exp(epsilon)
        law.threshold = int(WHOLE * (share / (share + 20_000)))
        return law.variance(math.sqrt(1 / 12))

    own = variance(Piecewise(epsilon, 10_000).reach)
    assert own < 1.01 * min(variance(int(h)) for h in np.geomspace(1, 30_000, 60))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-10, math.nan])
def test_an_epsilon_without_a_law_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be at least"):
        Piecewise(epsilon)


def chi_square(answers: np.ndarray, law: Piecewise, own: int) -> float:
    """Distance of drawn answers from a law, in standard normal units."""
    outer = law.points + law.reach
    counts = np.bincount(answers + outer, minlength=2 * outer + 1)
    near, far = (float(p) for p in law.probabilities)
    expected = np.full(len(counts), far * len(answers))
    expected[law.points + own : law.points + own + law.window] = near * len(answers)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return float(stats.norm.isf(stats.chi2.sf(statistic, len(counts) - 1)))


@pytest.mark.parametrize("own", [-6, 0, 5])
def test_drawn_answers_follow_the_law_and_no_other(own, noise):
    """At epsilon = 1.5 a window has probability .67; an epsilon 5 % larger moves it by .016.

    With 400 000 draws that is 22 standard errors, a non-centrality of some 490 spread over 19
    degrees of freedom: 80 standard deviations of the statistic.
    """
    law, size = Piecewise(1.5, points=6), 400_000
    drawn = law.release(np.full(size, own / 12), noise) * (12 * law.gain)
    answers = np.rint(drawn).astype(int)
    np.testing.assert_allclose(drawn, answers, atol=1e-9)
    assert chi_square(answers, law, own) < Z
    other = Piecewise(1.5 * 1.05, points=6)
    assert other.reach == law.reach
    assert chi_square(answers, other, own) > 9


def test_answers_are_unbiased_and_clipped(noise):
    values = np.repeat([-1e300, -0.7, -0.21, 0.0, 0.4, 0.5, 1e300], 60_000) * 3.0
    answers = piecewise_values(values, 3.0, 2.0, noise).reshape(7, -1)
    law = Piecewise(2.0)
    for value, found in zip(np.clip([-1, -0.7, -0.21, 0, 0.4, 0.5, 1], -0.5, 0.5), answers,
                            strict=True):  # fmt: skip
        sigma = 3 * math.sqrt(law.variance(value))
        assert abs(found.mean() - 3 * value) < Z * sigma / math.sqrt(found.size) + 1e-6
        # Answers are bounded, so their squares have light tails: a few per thousand.
        assert found.std() == pytest.approx(sigma, rel=0.02)


def test_integers_are_even_up_to_two_to_the_64(noise):
    for below in (3, 2**63 + 2**62, WHOLE):
        drawn = noise.integers(below, 90_000)
        assert drawn.dtype == np.uint64
        thirds = np.floor(drawn.astype(float) / below * 3).astype(int)
        counts = np.bincount(np.minimum(thirds, 2), minlength=3)
        assert counts.sum() == 90_000
        assert np.abs(counts - 30_000).max() < 5.3 * math.sqrt(20_000)
    assert not noise.integers(1, 10).any()


# Spherical noise row by row


def test_rows_get_spherical_noise_of_their_own(noise):
    size, epsilon, sensitivity = 3, 1.7, 0.4
    added = spherical_laplace_rows(np.zeros((30_000, size)), sensitivity, epsilon, noise)
    radii = np.linalg.norm(added, axis=1)
    law = stats.gamma(size, scale=sensitivity / epsilon)
    distance = stats.kstest(radii, law.cdf, method="asymp").statistic
    assert distance * math.sqrt(radii.size) < kolmogi(1e-6)
    for column in (added / radii[:, None]).T:
        # Archimedes: a coordinate of a point on the sphere is uniform.
        distance = stats.kstest(column, stats.uniform(-1, 2).cdf, method="asymp").statistic
        assert distance * math.sqrt(radii.size) < kolmogi(1e-6)
    lag = np.corrcoef(radii[1:], radii[:-1])[0, 1]
    assert abs(lag) < Z / math.sqrt(radii.size)


def test_rows_without_noise_are_returned(noise):
    rows = np.arange(6.0).reshape(2, 3)
    assert noise.spherical_laplace_rows(rows, math.inf) is rows


# Curators


def observed(rng: np.random.Generator, shape: tuple[int, ...], n: int) -> np.ndarray:
    return np.column_stack([rng.integers(0, size, n) for size in shape])


def curator(name: str, cost: PrivacyCost, n_uses: int = 1, n: int = 300) -> EntryCurator:
    rng = np.random.default_rng(5)
    chunks = EntryChunks(observed(rng, (4, 6, 3), n), rng.uniform(1, 5, n), (4, 6, 3), (1.0, 5.0))
    plan = ReleasePlan(1.0, 1e-6, (PlannedRelease(name, cost, n_uses),))
    return EntryCurator(chunks, plan, spender="test", unit="entry", accountant=None)


EXACT = PrivacyCost(mu=math.inf)
GAUSSIAN, PURE = PrivacyCost(mu=0.7), PrivacyCost(epsilon=0.9)
DRAWS = 1200


def assert_covariance(samples: np.ndarray, covariance: np.ndarray) -> None:
    """Samples, whitened by the covariance claimed, have unit variance and no correlation."""
    white = np.linalg.solve(np.linalg.cholesky(covariance), samples.T).T
    count, size = white.shape
    # Spherical Laplace noise in r dimensions has E|w|^4 = (r+3)(r+2) r / (r+1), normals less.
    products = white.T @ white / count - np.eye(size)
    assert np.abs(products).max() < 6.5 * math.sqrt(5 / count)


@pytest.mark.dealt
@pytest.mark.parametrize("cost", [GAUSSIAN, PURE], ids=["gaussian", "pure"])
@pytest.mark.parametrize("regularization", [0.0, 3.0])
def test_noise_of_factor_sums_has_the_covariance_claimed(cost, regularization, noise):
    # Under the fixture the noise of every curator made here is seeded.
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((300, 2)) * [3.0, 0.1]
    asked = curator("factor_sums", cost, DRAWS)
    found = [asked.factor_sums(1, rows, regularization) for _ in range(DRAWS)]
    exact = curator("factor_sums", EXACT).factor_sums(1, rows, regularization)
    errors = np.array([answer.sums - exact.sums for answer in found])
    for row in range(6):
        assert_covariance(errors[:, row], found[0].covariances[row])


@pytest.mark.dealt
@pytest.mark.parametrize("cost", [GAUSSIAN, PURE], ids=["gaussian", "pure"])
def test_noise_of_a_ridge_block_has_the_deviation_claimed(cost, noise):
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((300, 3))
    asked = curator("ridge_block", cost, DRAWS)
    # Rows of different size, or one deviation would do for all of them.
    rows *= (1.0 + 3.0 * asked.index_set.rows(0))[:, None]
    found = [asked.ridge_block(0, rows, 2.0) for _ in range(DRAWS)]
    exact = curator("ridge_block", EXACT).ridge_block(0, rows, 2.0).rows
    for row, sigma in enumerate(found[0].sigmas):
        errors = np.array([answer.rows[row] - exact[row] for answer in found])
        assert_covariance(errors, sigma**2 * np.eye(3))


@pytest.mark.dealt
@pytest.mark.parametrize("cost", [GAUSSIAN, PURE], ids=["gaussian", "pure"])
def test_noise_of_sums_and_gradients_has_the_deviation_claimed(cost, noise):
    draws, rng = 300, np.random.default_rng(3)
    asked = [curator(name, cost, draws) for name in ("row_sums", "entry_gradients", "entries")]
    exact = [curator(name, EXACT) for name in ("row_sums", "entry_gradients", "entries")]
    factors = [rng.standard_normal((n, 2)) for n in (4, 6, 3)]
    jacobian, f = CPJacobian(asked[1].index_set, factors), rng.standard_normal(300)
    questions = [
        lambda c: (np.concatenate(c[0].row_sums().sums), c[0].row_sums),
        lambda c: (c[1].descent_direction(jacobian, f, 2.0).value, None),
    ]
    for place, question in enumerate(questions):
        truth = question(exact if place else [curator("row_sums", EXACT)])[0]
        errors = np.array([question(asked)[0] - truth for _ in range(draws - 1)])
        sigma = asked[place]._records[-1].sigma * 300
        # Laplace squares have a relative variance of 5.
        tolerance = Z * math.sqrt(5 / errors.size)
        assert abs((errors**2).mean() / sigma**2 - 1) < tolerance
        assert abs(errors.mean()) < Z * sigma / math.sqrt(errors.size)
    noisy, truth = asked[2].entries(), exact[2].entries().value
    if cost is PURE:
        assert noisy.sigma == pytest.approx(4 * piecewise_deviation(0.9))
        variances = [16 * Piecewise(0.9).variance(x / 4) for x in truth]
        white = (noisy.value - truth) / np.sqrt(variances)
        assert abs((white**2).mean() - 1) < Z * math.sqrt(2 / 300)
    else:
        assert noisy.sigma == pytest.approx(4 / 0.7)


def predictive_error(frames: RowFrames) -> np.ndarray:
    """Expected squared error on a row's own entries of ridge regression on its noisy sum."""
    solution = np.linalg.inv(frames.normal_matrices)
    grams = frames.index_set.grams(frames.mode, frames.rows)
    error = solution @ frames.frames
    return np.einsum("iab,iac,ibc->i", grams, error, error)


def test_the_shape_of_the_noise_is_the_best_of_three_in_every_row(seed):
    rng = np.random.default_rng(seed)
    places = IndexSet(observed(rng, (30, 5), 200), (30, 5))
    rows = rng.standard_normal((200, 3)) * [5, 1, 0.05]
    kinds, winners = ("isotropic", "leverage", "solution"), set()
    for ridge in (0.1, 300.0):
        errors = [predictive_error(RowFrames(places, 0, rows, ridge, (kind,))) for kind in kinds]
        chosen = predictive_error(RowFrames(places, 0, rows, ridge))
        np.testing.assert_allclose(chosen, np.min(errors, axis=0), rtol=1e-9)
        winners |= set(np.argmin(errors, axis=0))
    assert len(winners) > 1


def test_the_root_of_another_matrix_than_the_leverages_underprotects(seed):
    """``g + H^(1/2) N`` at the regularised leverage costs more mu than it says; ours costs mu."""
    rng = np.random.default_rng(seed)
    places = IndexSet(np.zeros((6, 2), dtype=np.intp), (1, 1))
    rows, ridge = rng.standard_normal((6, 3)), 2.0
    frames = RowFrames(places, 0, rows, ridge, ("leverage",))
    H = rows.T @ rows
    leverage = np.einsum("ea,ab,eb->e", rows, np.linalg.inv(H + ridge * np.eye(3)), rows).max()
    # Noise of covariance l A, and values that move by R = 1: mu of one entry is |F^-1 z|.
    covariance = frames.frames[0] @ frames.frames[0].T
    np.testing.assert_allclose(covariance, leverage * (H + ridge * np.eye(3)), rtol=1e-9)
    spent = np.sqrt(np.einsum("ea,ab,eb->e", rows, np.linalg.inv(covariance), rows))
    assert spent.max() == pytest.approx(1.0, abs=1e-9)
    mistaken = np.linalg.inv(leverage * H)
    assert np.sqrt(np.einsum("ea,ab,eb->e", rows, mistaken, rows)).max() > 1.05


def test_a_pure_cost_selects_pure_laws_in_any_plan(noise):
    for name in ("entries", "row_sums", "factor_sums", "ridge_block", "entry_gradients"):
        asked = curator(name, PURE)
        if name == "entry_gradients":
            jacobian = CPJacobian(asked.index_set, [np.ones((n, 1)) for n in (4, 6, 3)])
            asked.descent_direction(jacobian, np.zeros(300))
        elif name in ("factor_sums", "ridge_block"):
            getattr(asked, name)(0, np.ones((300, 1)), 1.0)
        else:
            getattr(asked, name)()
        (row,) = asked.report().rows
        assert row.mechanism == CATALOGUE[name].pure.name
        assert (row.epsilon, row.mu) == (0.9, 0.0)


def slice_curator(name: str, cost: PrivacyCost, uses: int) -> SliceCurator:
    rng = np.random.default_rng(4)
    X, y = observed(rng, (20, 6, 3), 150), rng.uniform(1, 5, 150)
    plan = ReleasePlan(1.0, 1e-6, (PlannedRelease(name, cost, uses),))
    chunks = SliceChunks(X, y, (20, 6, 3), 0, (1.0, 5.0))
    return SliceCurator(chunks, plan, spender="test", unit="user", accountant=None)


@pytest.mark.dealt
@pytest.mark.parametrize("cost", [GAUSSIAN, PURE], ids=["gaussian", "pure"])
def test_noise_of_slices_has_the_deviation_claimed(cost, noise):
    draws = 600
    levels = slice_curator("unit_levels", cost, draws)
    truth = slice_curator("unit_levels", EXACT, 1).unit_levels()
    found = [levels.unit_levels() for _ in range(draws)]
    errors = np.array([(x.mean - truth.mean, x.deviation - truth.deviation) for x in found])
    tolerance = Z * math.sqrt(5 / errors.size)
    assert abs((errors**2).mean() / found[0].sigma ** 2 - 1) < tolerance
    shared = slice_curator("shared_row_sums", cost, draws)
    answers = [shared.shared_row_sums(1, 0.1, 0.5, 5.0) for _ in range(draws)]
    query = CATALOGUE["shared_row_sums"].query(
        1, (20, 6, 3), 0.1, 0.5, 5.0, (), 1 if cost is PURE else 2
    )
    (chunk,) = shared._chunks
    errors = np.array([(x.sums, x.counts) for x in answers]) - query.total(chunk)
    assert abs((errors**2).mean() / answers[0].sigma ** 2 - 1) < Z * math.sqrt(5 / errors.size)
    assert answers[0].sigma == pytest.approx(
        4 * math.sqrt(2) / 0.9 if cost is PURE else 2 / 0.7, rel=1e-5
    )


def test_entries_bound_both_norms_by_the_width():
    assert Entries(2.0).l2_sensitivity == Entries(2.0).l1_sensitivity == 4.0


def test_noise_of_shared_factors_has_the_deviation_claimed(noise):
    draws = 600
    none = SharedEffects(np.zeros(6), np.ones(6), np.zeros(6), 1.0)
    others = SharedEffects(np.zeros(3), np.ones(3), np.zeros(3), 1.0)
    factors = SharedComponents((np.ones((6, 2)), np.ones((3, 2))), full_core=False)
    query = SharedFactorSums(0, (20, 6, 3), 0.1, (none, others), factors, 1.0, 0.5)
    shared = slice_curator("shared_factor_sums", GAUSSIAN, draws)
    answers = [shared.shared_factor_sums(query) for _ in range(draws)]
    (chunk,) = shared._chunks
    truth = query.total(chunk)
    errors = np.array([x.sums for x in answers]) - truth[:6]
    assert abs((errors**2).mean() / answers[0].sigma ** 2 - 1) < Z * math.sqrt(2 / errors.size)
    assert answers[0].sigma == pytest.approx(query.l2_sensitivity / 0.7, rel=1e-3)
    # Of the moment: over its weight and the number of units, and halved off the diagonal.
    errors = np.array([x.moment for x in answers]) - truth[6:] / (MOMENT_WEIGHT * 20)
    expected = answers[0].sigma / (MOMENT_WEIGHT * 20)
    assert abs((errors[:, 0, 0] ** 2).mean() / expected**2 - 1) < Z * math.sqrt(2 / draws)
    assert abs((errors[:, 0, 1] ** 2).mean() / expected**2 - 0.5) < Z * math.sqrt(0.5 / draws)
