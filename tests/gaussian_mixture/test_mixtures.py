"""Groups found by private EM beside the law that drew them, and beside scikit-learn."""

import math
import warnings
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from sktensor_dp import (
    BudgetAccountant,
    NotEnoughDataWarning,
    PrivateGaussianMixture,
    scale_by_ranges,
)
from sktensor_dp.data.samples import IncompleteChunk
from sktensor_dp.gaussian_mixture import recipe
from sktensor_dp.gaussian_mixture.fitted import doubts_of_ends, full_covariances
from sktensor_dp.gaussian_mixture.observed_cells import LEAST_SHARE, observed_overall
from sktensor_dp.gaussian_mixture.recipe import nearest, release_start
from sktensor_dp.gaussian_mixture.step_release import of_type
from sktensor_dp.mixtures import fixed_point as fixed_points
from sktensor_dp.mixtures import uncertainty
from sktensor_dp.mixtures.clipping import clipping_at
from sktensor_dp.mixtures.fixed_point import fixed_point
from sktensor_dp.mixtures.gaussians import (
    Gaussians,
    log_density,
    merged_levels,
    observed_part,
    patterns_of,
    responsibilities,
    without_spare,
)
from sktensor_dp.mixtures.m_step import (
    MeanScores,
    StepNoise,
    WhitenedStatistics,
    average_with_step,
    carried_variances,
    moments_of,
    scatters,
)
from sktensor_dp.mixtures.observed_information import shapes_of_entries
from sktensor_dp.mixtures.places import places_of
from sktensor_dp.mixtures.scores import mean_scores, n_scores, standardised_scores
from sktensor_dp.mixtures.shrinkage import Scatters, shrunk_covariances
from sktensor_dp.mixtures.skew_bias import simulated_bias
from sktensor_dp.mixtures.skewness import EARLY, are_long, log_normal_tails, shared_tails
from sktensor_dp.mixtures.uncertainty import (
    MeanErrors,
    moved_by,
    moved_from,
    parameter_errors,
)
from sktensor_dp.plotting import MixtureDisplay
from sktensor_dp.queries.samples import LiftedBall, SecondMoments
from sktensor_dp.tensor.symmetric import coordinates_to_symmetric, n_unique

TYPES = ("full", "tied", "diag", "spherical")


def law(rng, k, d, apart=5.0, condition=10.0):
    """Groups with means that are `apart` deviations from the nearest, and shapes of a condition."""
    stretches = np.exp(rng.uniform(0, np.log(condition), (k, d)))
    stretches /= np.exp(np.log(stretches).mean(axis=1, keepdims=True))
    frames = np.linalg.qr(rng.standard_normal((k, d, d)))[0]
    covariances = (frames * stretches[:, None, :]) @ frames.swapaxes(1, 2)
    means = rng.standard_normal((k, d))
    distances = np.inf
    for i in range(k):
        for j in range(i):
            step = means[i] - means[j]
            along = step / np.linalg.norm(step)
            spread = np.sqrt(along @ (covariances[i] + covariances[j]) @ along / 2)
            distances = min(distances, np.linalg.norm(step) / spread)
    means *= 1.0 if k == 1 else apart / distances
    return Gaussians(np.full(k, 1 / k), means - means.mean(axis=0), covariances)


def drawn(model, n, rng):
    chosen = rng.choice(len(model.weights), size=n, p=model.weights)
    return model.sample(chosen, rng), chosen


def line(apart=4.0):
    return Gaussians(np.full(3, 1 / 3), apart * np.outer([-1, 0, 1], np.eye(4)[0]),
                     np.tile(np.eye(4), (3, 1, 1)))  # fmt: skip


LAWS = {
    "stretched": (lambda rng: law(rng, 3, 6), 3),
    "more groups than columns": (lambda rng: law(rng, 6, 3, 6.0, 1.0), 6),
    "on a line": (lambda rng: line(), 3),
}


@pytest.mark.parametrize(
    "name",
    ["stretched", "more groups than columns", pytest.param("on a line", marks=pytest.mark.nightly)],
)
def test_groups_are_nearly_those_of_the_law(name, seed):
    """Adjusted Rand index and log-likelihood a row at epsilon 1 beside the law's own."""
    rng, (make, k) = np.random.default_rng(seed), LAWS[name]
    truth = make(rng)
    X, _ = drawn(truth, 20_000, rng)
    new, labels = drawn(truth, 10_000, rng)
    norm = float(np.quantile(np.linalg.norm(X, axis=1), 0.99))
    model = PrivateGaussianMixture(k, data_norm=norm).fit(X)
    joint = truth.log_joint(new)
    best = adjusted_rand_score(labels, joint.argmax(axis=1))
    assert adjusted_rand_score(labels, model.predict(new)) >= best - 0.03
    assert model.score(new) >= log_density(joint).mean() - 0.1


@pytest.mark.nightly
def test_groups_apart_in_short_directions_are_found(seed):
    """All three, in 6 of 8 fits: a start of three in three directions found them in 3 of 10.

    The two longest directions of four show nothing of them. If a fit misses one in 30, 6 of 8 find
    all but in one of 700.
    """
    found = []
    for place in range(8):
        rng = np.random.default_rng([seed, place])
        labels, means = rng.choice(3, 4000, p=[0.6, 0.3, 0.1]), np.zeros((3, 4))
        means[1, 0], means[2, 1] = 5.0, 7.0
        X = (means[labels] + rng.standard_normal((4000, 4))) * [1.0, 1.0, 3.0, 3.0]
        options = {"epsilon": 3.0, "random_state": seed}
        model = PrivateGaussianMixture(3, data_norm=10.0, **options).fit(X - X.mean(axis=0))
        found.append(adjusted_rand_score(labels, model.predict(X - X.mean(axis=0))) > 0.9)
    assert sum(found) >= 6


def test_halves_of_a_group_are_merged_and_a_wide_one_of_tails_is_left_out():
    """Merged into another group, it would draw the tails of all to that one."""
    means = 0.5 * np.array([[8, 0, 0, 0], [0, 8, 0, 0], [0, 0, 8, 0], [0, 0, 8, 1], [0, 0, 0, 0]])
    covariances = np.array([1.0, 1, 1, 1, 25])[:, None, None] * np.eye(4)
    model = Gaussians(np.array([0.3, 0.3, 0.1, 0.2, 0.1]), means, covariances)
    assert without_spare(model, 3).members.tolist() == [
        [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 1, 0],
    ]  # fmt: skip


def test_moments_of_groups_that_share_a_covariance_are_without_those_of_others():
    """By weights and means of the group that is left out."""
    rng = np.random.default_rng(0)
    model = Gaussians(np.full(3, 1 / 3), rng.standard_normal((3, 2)), np.tile(np.eye(2), (3, 1, 1)))
    clip, zeros = clipping_at(2, 0.9), np.zeros((1, 2, 2))
    step = WhitenedStatistics(
        weights=model.weights, shifts=np.zeros((3, 2)), sizes=np.zeros(1), shapes=zeros, n_shape=2,
        sigma=0.0, scales=clip.scales(2), clipping=clip,
    )  # fmt: skip
    kept, squares = np.array([0, 2]), np.zeros((2, 2))
    found = moments_of(model, step).merged(np.eye(3)[kept], model.in_order(kept), np.zeros((3, 3)))
    for place in kept:
        squares += (np.eye(2) + np.outer(model.means[place], model.means[place])) / 3
    assert found.seconds[0] == pytest.approx(squares)
    assert found.firsts == pytest.approx(model.means[kept] / 3)


@pytest.mark.nightly
def test_groups_that_drift_within_the_noise_of_a_step_arrive(seed):
    """Labels are those of the law; of groups as near to each other one stayed too wide: .92."""
    rng, means = np.random.default_rng(seed), 8**0.5 * np.eye(5, 10)
    truth = Gaussians(np.full(5, 0.2), means - means.mean(axis=0), np.tile(np.eye(10), (5, 1, 1)))
    X, _ = drawn(truth, 20_000, rng)
    model = PrivateGaussianMixture(5, data_norm=6.0, epsilon=4.0, random_state=seed).fit(X)
    assert adjusted_rand_score(truth.log_joint(X).argmax(axis=1), model.predict(X)) >= 0.97


@pytest.mark.parametrize(
    "kind", [TYPES[0], *(pytest.param(one, marks=pytest.mark.nightly) for one in TYPES[1:])]
)
def test_without_noise_it_is_a_mixture_of_scikit_learn(kind, seed):
    rng = np.random.default_rng(seed)
    X, _ = drawn(law(rng, 3, 4), 10_000, rng)
    X *= np.sqrt(5 / rng.chisquare(5, (len(X), 1)))  # heavy tails, which a clip would lose
    options = {"covariance_type": kind, "random_state": 0}
    model = PrivateGaussianMixture(3, data_norm=1e3, epsilon=math.inf, **options).fit(X)
    peer = GaussianMixture(3, n_init=3, **options).fit(X)
    assert model.covariances_.shape == peer.covariances_.shape
    assert model.score(X) >= peer.score(X) - 0.08
    # Criteria count the parameters of the same model.
    for name in ("bic", "aic"):
        of_both = [getattr(one, name)(X) + 2 * len(X) * one.score(X) for one in (model, peer)]
        assert of_both[0] == pytest.approx(of_both[1])


@pytest.mark.parametrize(("k", "asked"), [(1, 3), pytest.param(3, 7, marks=pytest.mark.nightly)])
def test_groups_that_the_data_does_not_support_are_joined(k, asked, seed):
    rng = np.random.default_rng(seed)
    X, _ = drawn(law(rng, k, 5), 20_000, rng)
    norm = float(np.quantile(np.linalg.norm(X, axis=1), 0.99))
    with pytest.warns(NotEnoughDataWarning, match=f"Of {asked} groups"):
        model = PrivateGaussianMixture(asked, data_norm=norm, epsilon=2.0, random_state=seed).fit(X)
    assert model.n_components_ == k
    assert model.gains_.shape == (asked,)
    assert model.gains_[0] == 0


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
def test_groups_that_few_rows_support_are_kept(seed):
    """Gains clipped at 3 nats have twice the noise, which joins two of these in every third fit."""
    found = []
    for place in range(20):
        rng = np.random.default_rng([seed, place])
        means = 4.0 * np.array([[0, 0], [1, 0], [0, 1]]) - 4 / 3
        X = means[rng.integers(3, size=2000)] + rng.standard_normal((2000, 2))
        found.append(PrivateGaussianMixture(3, data_norm=6.0, epsilon=0.8).fit(X).n_components_)
    assert np.mean(np.equal(found, 3)) >= 0.85


@pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_rows_that_are_nearly_all_scaled_down_are_doubted(missing, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal([0.0, 50.0, 1.0], [0.3, 9.0, 0.6], (5000, 3))
    X[rng.random(X.shape) < missing] = np.nan
    with pytest.warns(UserWarning, match="Nearly all rows have the norm data_norm=1 once"):
        PrivateGaussianMixture(1, data_norm=1.0).fit(X)
    one = PrivateGaussianMixture(1, data_norm=110.0).fit(X)
    assert "mixture_gains" not in {row.name for row in one.privacy_report_.rows}


@pytest.mark.parametrize(
    ("value", "where", "names"),
    [(0.0, ", or is narrow", ["age", "stays"]), (-1.0, ", at the end of its range", None)],
)
def test_a_group_of_one_value_is_doubted(names, value, where, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 0.2, (10_000, 2))
    X[:, 1] = np.where(rng.random(len(X)) < 0.7, value, value + rng.uniform(0.2, 0.8, len(X)))
    X = X if names is None else pd.DataFrame(X, columns=names)
    name = "column 1" if names is None else "stays"
    with pytest.warns(UserWarning, match=f"nearly one value of {name}{where}"):
        PrivateGaussianMixture(2, data_norm=2**0.5, epsilon=8.0).fit(X)


@pytest.mark.parametrize(
    ("means", "spreads", "said"),
    [
        # Values in other units, a code of missing cells with some others, and in k = 1.
        ([0.998, 0.997, 1.001], [0.002, 0.01, 0.001], "The averages of column 1 lie at the end"),
        ([-0.998], [0.003], "The averages of column 1 lie at the end of its range"),
        ([0.1, -0.2, -0.992], [0.14, 0.12, 0.1], "A group has nearly one value of column 1, at"),
        ([0.999, -0.999], [0.01, 0.02], "A group has nearly one value of column 1, at the end"),
        # Counts of which one group has hardly any, ones in 1 of 100, and a code that makes no group
        ([-0.99, -0.7], [0.03, 0.17], ""),
        ([-0.99, -0.985], [0.14, 0.17], ""),
        ([-0.99], [0.14], ""),
        ([-0.31], [0.5], ""),
    ],
)
def test_groups_at_an_end_of_the_range_are_doubted(means, spreads, said):
    model = PrivateGaussianMixture(3, data_norm=2**0.5, covariance_type="diag")
    model.means_ = np.column_stack([np.zeros(len(means)), means])
    model.covariances_ = np.column_stack([np.full(len(means), 0.04), np.square(spreads)])
    model.weights_ = np.full(len(means), 1 / len(means))
    text = doubts_of_ends(model)
    assert text.startswith(said) if said else not text
    if min(means) > 0.99:  # ends of raw columns are not known; the command's ranges are
        model.set_params(data_norm=9.0)
        assert not doubts_of_ends(model)
        assert doubts_of_ends(model, np.array([[-1.0, 1.0]] * 2))


@pytest.mark.parametrize("d", [2, 8, 30])
def test_means_of_one_cloud_have_little_noise_whatever_its_shape(d):
    """Averages are what one cloud is asked for: shapes took 95 % of the scales of 30 columns."""

    def noise(k, covariance_type):
        model = PrivateGaussianMixture(k, covariance_type=covariance_type, data_norm=1.0)
        return model.forecast(10_000, d).releases[0].noise

    least = noise(1, "spherical")
    assert noise(1, "full") == noise(1, "tied") <= 1.5 * least
    assert noise(1, "diag") <= 1.5 * least
    assert noise(3, "diag") <= noise(3, "full") * (1.0 if d == 2 else 0.8)  # fewer numbers


@pytest.mark.parametrize(
    ("sigma", "shift", "variances"),
    [(0.01, 0.0, [1, 1 / 2, 1 / 3, 1 / 4]), (1e-6, 0.1, [1, 1, 1, 1]), (0.0, 0.0, [1, 1, 1, 1])],
)
def test_a_step_weighs_more_the_further_the_average_is_off(sigma, shift, variances):
    """All alike while nothing moves; the last alone where it moves far beyond its noise."""
    model, clip, average = line(), clipping_at(4, 0.9), None
    for step, variance in enumerate(variances):
        shifts = np.full((3, 4), step * shift)
        found = WhitenedStatistics(
            model.weights, shifts, np.zeros(3), np.zeros((3, 4, 4)), 9, sigma,
            clip.scales(9), clip,
        )  # fmt: skip
        average = average_with_step(average, model, found, 0.0)
        assert average.weight_variances == pytest.approx(variance, rel=0.02)
        moves = average.firsts - average.weights[:, None] * model.means
        np.testing.assert_allclose(moves, shifts / clip.shift_response, rtol=0.01, atol=1e-12)


@pytest.mark.parametrize(
    ("narrow", "far"), [(0.05, 0.0), (1.0, 3.0)], ids=["frames narrow", "means move"]
)
def test_noise_of_an_average_is_known_in_later_frames(narrow, far, seed):
    """It is larger there: with that of one's own frames, small groups collapsed."""
    rng, k, d = np.random.default_rng(seed), 2000, 3
    covariance, mean = np.diag([narrow, 1.0, 1.0]), np.array([far, 0.0, 0.0])
    before = Gaussians(np.ones(k), np.zeros((k, d)), np.tile(np.eye(d), (k, 1, 1)))
    after = Gaussians(np.ones(k), np.tile(mean, (k, 1)), np.tile(covariance, (k, 1, 1)))
    clip, n_shape = clipping_at(d, 0.9), n_unique(d, 2) - 1

    def traceless(matrices):
        return matrices - np.trace(matrices, axis1=-2, axis2=-1)[..., None, None] * np.eye(d) / d

    # Statistics of the law that is found later, and noise.
    square = covariance + np.outer(mean, mean)
    step = WhitenedStatistics(
        np.ones(k), clip.shift_response * after.means,
        np.full(k, clip.size_response * (np.trace(square) - d)),
        np.tile(clip.shape_response * traceless(square), (k, 1, 1)), n_shape, 0.01,
        clip.scales(n_shape), clip,
    )  # fmt: skip
    noise, symmetric = step.noise, rng.standard_normal((k, n_shape + 1))
    shapes = traceless(np.array([coordinates_to_symmetric(one, d, 2) for one in symmetric]))
    step = replace(
        step,
        weights=step.weights + noise.weight * rng.standard_normal(k),
        shifts=step.shifts + noise.shift * clip.shift_response * rng.standard_normal((k, d)),
        sizes=step.sizes + noise.size * clip.size_response * d * rng.standard_normal(k),
        shapes=step.shapes + noise.shape * clip.shape_response * shapes,
    )
    average = moments_of(before, step)
    firsts = average.firsts - average.weights[:, None] * after.means
    firsts = np.einsum("jab,jb->ja", after.whiteners, firsts)
    whitened = scatters(after, average, average.weights, np.zeros((k, d)))
    of_shapes = np.square(traceless(whitened - whitened.mean(axis=0))).sum() / (k * n_shape)
    found = [
        firsts.var(axis=0).mean(),
        of_shapes,
        np.trace(whitened, axis1=1, axis2=2).var() / d**2,
    ]
    # Five deviations of a mean of `k` squares of normal numbers.
    expected = carried_variances(average, after, step)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=5 * math.sqrt(2 / k))


def test_steps_do_not_cut_the_tail_of_a_skewed_column(seed):
    """Clipped early they were worse than their start, which was kept with a warning."""
    X = np.random.default_rng(seed).exponential(size=(20_000, 2)) - 1
    model = PrivateGaussianMixture(1, data_norm=6.0).fit(X)
    assert (model.variances_ > 0.9**2).all()
    assert model.means_interval()[0].shape == (1, 2)


def test_shifts_show_the_tail_that_groups_share(seed):
    clip, early, k, logs = clipping_at(3, 0.999), clipping_at(3, EARLY), 4, 0.5
    tails, parts = log_normal_tails(clip, early), np.full((k, 3), 0.8)
    shift = 0.8 * np.interp(logs, tails.logs, tails.early_shift)
    # A tail in all groups; to the left; in none.
    skewness = shift * np.tile([1, -1, 0], (k, 1))
    found = shared_tails(skewness, np.full(k, 0.005), parts, tails)
    np.testing.assert_allclose(found.logs[:2], logs, rtol=0.1)
    np.testing.assert_allclose(found.square[:2], logs**2, rtol=0.2)
    assert found.logs[2] < 0.1
    # Noise alone shows a tail in few columns, and noise as large as the shift hides most.
    noisy, noise = 0.02 * np.random.default_rng(seed).standard_normal((k, 2000)), np.full(k, 0.02)
    found = shared_tails(noisy, noise, np.full(noisy.shape, 0.8), tails)
    assert are_long(found.logs).mean() < 0.02
    found = shared_tails(np.full((k, 1), shift), np.full(k, 1.0), np.ones((k, 1)), tails)
    assert found.logs[0] == pytest.approx(0.033, abs=0.005)


@pytest.mark.parametrize(
    "covariance_type",
    ["full", *(pytest.param(one, marks=pytest.mark.nightly) for one in TYPES[1:])],
)
def test_moves_by_tails_are_those_of_a_fit_without_noise(covariance_type, seed):
    """Groups that overlap trade rows of a tail; those far apart keep them."""
    for distance, least in ((3.0, 0.03), (30.0, 0.0)):
        rng, means = np.random.default_rng(seed), np.array([[0.0, 0.0], [0.0, distance]])
        normal = rng.standard_normal((2, 50_000, 2))
        normal[..., 1] = (np.exp(0.5 * normal[..., 1]) - math.exp(0.125)) / 0.604
        X = (means[:, None] + normal).reshape(-1, 2)
        clip, early = clipping_at(2, 1 - 1e-6), clipping_at(2, EARLY)
        fit = GaussianMixture(
            2,
            covariance_type=covariance_type,
            means_init=means,
            weights_init=[0.5, 0.5],
            max_iter=10,
            tol=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit.fit(X)
        covariances = full_covariances(fit.covariances_, covariance_type, 2, 2)
        fitted = Gaussians(fit.weights_, fit.means_, covariances)
        bias = simulated_bias(fitted, 100.0, np.ones(2), clip, early, 10, covariance_type)
        true = np.abs(fit.means_ - means)[:, 1]
        assert bias.moves.shape == (2, 2, 3)
        assert bias.moves[1, :, 2].max() == pytest.approx(true.max(), rel=0.5, abs=0.02)
        assert bias.moves[1, :, 2].max() >= least
        share = abs(fit.weights_[0] - 0.5)
        assert bias.moves[1, :, 0].max() == pytest.approx(share, rel=0.5, abs=0.01)
        assert (bias.shifts[1] < 0).all()


def test_noise_alone_gives_no_step_more_weight(seed, monkeypatch):
    """Three numbers differ by more than their noise in many steps; the average is not off.

    Twenty averaged alike have rates that add up to 3.6.
    """
    made, real = [], recipe.release_steps
    monkeypatch.setattr(recipe, "release_steps", lambda *args: made.append(real(*args)) or made[-1])
    X = np.random.default_rng(seed).standard_normal((20_000, 2))
    PrivateGaussianMixture(1, data_norm=4.0).fit(X)
    assert made[-1].average.rates.shape == (1, 20)
    assert made[-1].average.n_full_steps < 10


@pytest.mark.parametrize("size", [1.0, 0.3])
def test_shapes_of_round_groups_are_round_again(seed, size):
    """Also where groups are smaller than in the step before, and noise is larger beside them."""
    rng, d, k, noise = np.random.default_rng(seed), 6, 12, 0.08
    drawn = noise * rng.standard_normal((k, n_unique(d, 2)))
    found = size * np.eye(d) + np.array([coordinates_to_symmetric(one, d, 2) for one in drawn])
    frames, weights, sigma = np.tile(np.eye(d), (k, 1, 1)), np.full(k, 1 / k), np.full(k, noise)
    scatters = Scatters(frames, found, weights, sigma, sigma / d**0.5, len(drawn[0]) - 1)
    values = np.linalg.eigvalsh(shrunk_covariances(scatters, 1e-9, 1e9))
    assert np.median(values[:, -1] / values[:, 0]) < 2


def test_a_fit_too_small_for_intervals_says_so_before_it_is_paid_for():
    budget = BudgetAccountant(1.0, 1e-6)
    model = PrivateGaussianMixture(1, data_norm=4.0, accountant=budget)
    needed = model.forecast(200, 4).n_samples_needed
    for n, is_said in ((needed - 1, True), (needed, False)):
        assert ("will be no intervals" in str(model.forecast(n, 4))) is is_said
    X = np.random.default_rng(0).standard_normal((needed, 4))
    with pytest.raises(NotEnoughDataWarning, match=f"no intervals: .* fewer than the {needed} sam"):
        model.fit(X[1:])
    assert budget.entries == ()
    counted = PrivateGaussianMixture(1, data_norm=4.0, neighbours="add_remove")
    with pytest.warns(NotEnoughDataWarning, match="will be no intervals: .* fewer than the"):
        counted.fit(X[: needed // 2])
    low, _ = model.fit(X).means_interval()
    assert np.isfinite(low).all()


def test_missing_cells_are_missing(seed):
    """Means of the complete fit, or nearly; zeros would pull them to the middle."""
    rng = np.random.default_rng(seed)
    X, _ = drawn(law(rng, 3, 4), 20_000, rng)
    X += 3.0
    norm = float(np.quantile(np.linalg.norm(X, axis=1), 0.99))
    gaps = X.copy()
    gaps[rng.random(len(X)) < 0.2, 1] = np.nan
    whole, fitted = (PrivateGaussianMixture(3, data_norm=norm).fit(data) for data in (X, gaps))
    apart = np.linalg.norm(whole.means_[:, None] - fitted.means_, axis=2).min(axis=1)
    assert apart.max() < 0.15
    shares = np.tile([1.0, 0.8, 1.0, 1.0], (3, 1))
    np.testing.assert_allclose(fitted._mean_errors.observed, shares, atol=0.1)
    shares = fitted.predict_proba(gaps[:50])
    assert np.isfinite(shares).all()
    assert np.isfinite(fitted.score(gaps))
    nothing = np.full((1, 4), np.nan)
    np.testing.assert_allclose(fitted.predict_proba(nothing)[0], fitted.weights_)
    with pytest.raises(ValueError, match="NaN"):
        fitted.predict(sp.csr_matrix(gaps[:50]))


def test_missing_cells_move_no_start():
    """Its mean is that of rows with zeros, although their constant is less; its variances are of
    observed cells: steps do not correct one that is too small."""
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 1.0, (200, 4))
    X[np.arange(200), rng.integers(4, size=200)] = np.nan
    ball = LiftedBall(50.0, 25.0)
    second = SimpleNamespace(value=SecondMoments(ball).total(IncompleteChunk(X)) / 200, sigma=0.0)
    plan = SimpleNamespace(
        nonnormal=None,
        n_features=4,
        n_components=1,
        covariance_type="full",
        random_state=0,
        clip=clipping_at(4, 0.9),
    )
    found = release_start(None, ball, plan, second)
    mean = np.nan_to_num(X).mean(axis=0)
    np.testing.assert_allclose(found.means[0], mean)
    variances = np.nan_to_num(X**2).mean(axis=0) / 0.75 - mean**2
    np.testing.assert_allclose(np.diagonal(found.covariances[0]), variances)


def test_a_sphere_has_the_mean_variance_of_what_it_replaces():
    model = Gaussians(np.ones(1), np.zeros((1, 2)), np.diag([1.0, 9.0])[None])
    found = of_type(model, SimpleNamespace(covariance_type="spherical", nonnormal=None), 10.0)
    np.testing.assert_allclose(found.covariances[0], 5 * np.eye(2))


def pair(apart, spread, weight=0.5):
    """Two groups along a diagonal, the second with a covariance `spread` times the first's."""
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    means = 1.0 + np.outer([0, apart], np.linalg.cholesky(covariance)[:, 0])
    return Gaussians(
        np.array([weight, 1 - weight]), means, np.array([covariance, spread * covariance])
    )


@pytest.mark.parametrize("apart", [2.5, 9.0])
def test_groups_move_to_where_steps_would_lead(apart):
    """Scores without noise of the law's rows, in a mixture that steps were given far from it."""
    model, way = pair(apart, 1.0), np.zeros((2, n_scores(1, 2)))
    way[:, 0], way[:, 1], way[:, 3] = (0.1, -0.1), 0.1, (0.1, -0.1)
    given, ones = moved_by(model, way), np.ones((2, 2))
    rows = model.sample(np.arange(400_000) % 2, np.random.default_rng(0))
    shares = responsibilities(given.log_joint(rows))
    centred = rows[:, None] - given.means
    outer = np.einsum("nk,nka,nkb->kab", shares, centred, centred) / len(rows)
    weights = shares.mean(axis=0)
    scores = MeanScores(
        1, given.weights, given.means, given.covariances, weights - given.weights,
        np.einsum("nk,nka->ka", shares, centred) / len(rows),
        outer - weights[:, None, None] * given.covariances,
    )  # fmt: skip
    noise = StepNoise(1e-4, 1e-4, 1e-4, 1e-4)
    settled = fixed_point(scores, None, noise, given, ones, 10**6, "full")
    left = np.abs(moved_from(settled.model, model)).max()
    assert left < np.abs(moved_from(given, model)).max() / 2


def test_a_prior_of_ten_rows_moves_groups_within_their_errors(monkeypatch):
    model, way, n = pair(2.5, 1.0), np.zeros((2, n_scores(1, 2))), 4000
    way[:, 0], way[:, 1], way[:, 3] = (0.1, -0.1), 0.1, (0.1, -0.1)
    given, ones, found = moved_by(model, way), np.ones((2, 2)), []
    scores = mean_scores(model, given, ones).reshape(2, -1) * np.sqrt(given.weights)[:, None]
    shapes = shapes_of_entries(scores[:, 3:], 2)
    scores = MeanScores(
        1, given.weights, given.means, given.covariances, scores[:, 0],
        np.einsum("jab,jb->ja", given.factors, scores[:, 1:3]),
        given.factors @ shapes @ given.factors.swapaxes(1, 2),
    )  # fmt: skip
    noise = StepNoise(0.005, 0.005, 0.005, 0.005)
    for prior in (0.1, 1.0, 10.0):
        for module in (fixed_points, uncertainty):
            monkeypatch.setattr(module, "PRIOR", prior)
        settled = fixed_point(scores, None, noise, given, ones, n, "full")
        found.append(np.column_stack([settled.model.weights, settled.model.means]))
    errors = MeanErrors(
        noise, 0.0, 0.0, moved_from(given, model), np.zeros((2, 3)), np.zeros((2, 3)), ones, ones,
        ones,
    )  # fmt: skip
    std = parameter_errors(model, errors, n).std
    few, one, many = (np.abs(each - found[1]).max() / std.max() for each in found)
    assert few < 0.1
    assert one == 0
    assert many < 0.4


@pytest.mark.parametrize("share", [pytest.param(1.0, marks=pytest.mark.nightly), 0.6])
def test_mean_scores_are_those_of_drawn_rows(share):
    """Of rows that one of two mixtures takes for another group's, and that lack cells."""
    model, way, observed = pair(2.0, 1.5, 0.4), np.zeros((2, n_scores(1, 2))), np.ones((2, 2))
    way[:, 0], way[:, 1], way[:, 5], observed[:, 1] = (0.1, -0.1), 0.2, 0.1, share
    given, rng, n = moved_by(model, way), np.random.default_rng(0), 400_000
    rows = model.sample((rng.random(n) > 0.4).astype(int), rng)
    seen = rng.random((n, 2)) < observed[0]
    for mixture in (model, given):
        shares = responsibilities(mixture.log_joint(np.where(seen, rows, 0), seen))
        whitened, expected = np.zeros((2, n, 2)), np.zeros((2, n, 2, 2))
        for pattern, places in patterns_of(seen):
            cells = observed_part(mixture.factors, np.zeros(2), pattern, mixture.offsets)
            centred = rows[places] - mixture.means[:, None]
            whitened[:, places] = centred @ cells.whiteners.swapaxes(1, 2)
            expected[:, places] = cells.projectors[:, None]
        outer = whitened[..., :, None] * whitened[..., None, :] - expected
        found = standardised_scores(
            shares.mean(axis=0) - mixture.weights,
            np.einsum("nk,kna->ka", shares, whitened) / n,
            np.einsum("nk,knab->kab", shares, outer) / n,
            mixture,
        )
        np.testing.assert_allclose(found, mean_scores(model, mixture, observed), atol=0.012)


@pytest.mark.parametrize(
    ("model", "places"),
    [
        (pair(0.0, 9.0), [1, 1]),
        # Of one shape and equal weights two groups have two peaks from two deviations on.
        (pair(1.99, 1.0), [1, 1]),
        (pair(2.1, 1.0), [1, 2]),
        (pair(3.5, 1.0, 0.9), [1, 2]),
        (
            Gaussians(np.ones(3) / 3, np.array([[0.0], [9.0], [0.5]]), np.ones((3, 1, 1))),
            [1, 2, 1],
        ),
    ],
)  # fmt: skip
def test_groups_with_one_peak_are_one_place(model, places):
    assert places_of(model).tolist() == places


def test_fewer_groups_come_as_near_to_more_as_steps_bring_them():
    """Where groups overlap steps are short and many: fewer groups seemed worse than they are."""
    means = np.outer(np.arange(4) - 1.5, [2.5, 0.0])
    model = Gaussians(np.ones(4) / 4, means, np.tile(np.eye(2), (4, 1, 1)))
    points, _ = model.points(np.random.RandomState(0))
    merged, plan = (
        merged_levels(model, 4)[2],
        SimpleNamespace(covariance_type="full", nonnormal=None),
    )
    found = nearest(merged, model, plan, 10.0)
    best = GaussianMixture(
        3, tol=1e-7, max_iter=1000, weights_init=merged.weights, means_init=merged.means,
        precisions_init=np.linalg.inv(merged.covariances),
    ).fit(points)  # fmt: skip
    assert log_density(found.log_joint(points)).mean() > best.score(points) - 2e-4


def test_means_are_as_precise_as_the_observed_cells_of_their_column():
    model, n_rows = Gaussians(np.ones(1), np.zeros((1, 2)), np.eye(2)[None]), 10_000
    noise, way = StepNoise(0.0, 0.0, 0.0, 0.0), np.zeros((1, n_scores(1, 2)))
    shares = np.array([0.25, 1.0])
    errors = MeanErrors(
        noise, 0.0, 0.0, way, np.zeros((1, 3)), np.zeros((1, 3)), np.ones((1, 2)), shares[None],
        shares[None],
    )  # fmt: skip
    std = parameter_errors(model, errors, n_rows).std[:, 1:]
    np.testing.assert_allclose(std[0], (n_rows * shares) ** -0.5, rtol=0.06)


@pytest.mark.filterwarnings("ignore:Intervals of")
def test_one_cloud_of_heavy_tails_is_one_place_in_the_table(seed):
    X = np.random.default_rng(seed).standard_t(2.5, (40_000, 2)) * [3.0, 0.2] + [60.0, 1.7]
    ranges = {"age": (30.0, 90.0), "height": (0.0, 3.4)}
    scale = scale_by_ranges(dict(enumerate(ranges.values())))
    model = PrivateGaussianMixture(2, data_norm=0.5, random_state=0).fit(scale.transform(X))
    table = model.groups_table(ranges=ranges)
    assert table["place"].tolist() == [1] * 4
    assert table["column"].tolist() == ["age", "height"] * 2
    assert table["group"].tolist() == [1, 1, 2, 2]
    np.testing.assert_allclose(table["mean"], [60, 1.7] * 2, rtol=0.02)
    assert (table["mean_low"] < table["mean"]).all()
    assert (table["mean"] < table["mean_high"]).all()
    spreads = table["spread"].to_numpy().reshape(2, 2)
    assert (spreads.max(axis=0) > 1.5 * spreads.min(axis=0)).all()
    for wrong, message in (
        ({"ranges": [(0, 1)]}, r"ranges must have a \(low, high\) for each of 2 columns"),
        ({"ranges": 3}, "ranges must have"),
        ({"ranges": {"age": (0, 1)}}, r"each of the 2 columns to \(low, high\); got .*'age'"),
        ({"ranges": [(1, 0)] * 2}, r"ranges\[0\] must be \(low, high\), .* got \(1, 0\)"),
        ({"ranges": {"age": (0, 1), "height": (1,)}}, r"ranges\['height'\] must be .* got \(1,\)"),
        ({"feature_names": ["age"]}, "feature_names must"),
    ):
        for show in (model.groups_table, partial(MixtureDisplay.from_estimator, model)):
            with pytest.raises(ValueError, match=message):
                show(**wrong)
    # A table stays one when it is scaled, and ranges are found by name, whatever their order.
    rows = pd.DataFrame(X, columns=["age", "height"])
    turned = dict(reversed(ranges.items()))
    scaled = scale_by_ranges(turned).transform(rows)
    assert scaled.columns.tolist() == ["height", "age"]
    model.fit(scaled)
    table = model.groups_table(ranges=ranges)
    with pytest.raises(ValueError, match=r"ranges must map the columns \['height', 'age'\]"):
        model.groups_table(ranges=[(0.0, 3.4), (30.0, 90.0)])
    assert table["column"].tolist() == ["height", "age"] * 2
    again = model.groups_table(ranges=ranges, undo={"age": np.exp})
    for end in ("mean", "mean_low", "mean_high"):
        undone = np.where(table["column"] == "age", np.exp(table[end]), table[end])
        assert again[end].tolist() == undone.tolist()
    with pytest.raises(ValueError, match=r"undo must map some of the columns \['height', 'age'\]"):
        model.groups_table(undo={"weight": np.exp})
    assert (table["mean"][::2] < 4).all()
    model.means_ = model.means_ + 9.0
    assert model.groups_table(ranges=ranges)["mean"].tolist() == [3.4, 90.0] * 2


@pytest.mark.parametrize("released", [-1e12, -1e3, -1.0, 0.5, 3.0])
def test_shares_of_observed_cells_are_shares_whatever_is_released(released):
    """Far below 0 the mean of a truncated normal is inexact, or not a number."""
    ball = LiftedBall(1.0, 0.5)
    share = observed_overall(ball, SimpleNamespace(value=np.array([[released]]), sigma=0.01))
    assert LEAST_SHARE <= share <= 1
