"""Components of matrices at slice level: found where they pay, and nothing lost elsewhere."""

import math
from itertools import groupby

import numpy as np
import pytest
from internals import sums_and_covariance

from sktensor_dp import PrivateCPCompletion, PrivateTuckerCompletion, unsafe_seeded_noise
from sktensor_dp.completion import defaults
from sktensor_dp.completion.plan import plan_slices
from sktensor_dp.completion.users import Directions, ItemBiases, forgetting_factor
from sktensor_dp.privacy.curators.entries import NoisySharedFactor
from sktensor_dp.tensor.shared_parameters import SharedEffects

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning")

N, D, EACH, RANK = 6000, 60, 20, 2
EPSILON = 2.5


def tastes(seed, share, each=EACH):
    """Values of variance 1, of which components have that share: to fit, and others."""
    rng = np.random.default_rng(seed)
    X = np.argwhere(rng.random((N, D)) < each / D)
    U, V = rng.standard_normal((N, RANK)), rng.standard_normal((D, RANK))
    y = math.sqrt(share / RANK) * np.einsum("ek,ek->e", U[X[:, 0]], V[X[:, 1]])
    y += math.sqrt(1 - share) * rng.standard_normal(len(y))
    test = rng.random(len(y)) < 0.1
    return (X[~test], y[~test]), (X[test], y[test])


def fitted(data, seed, epsilon, kind=PrivateCPCompletion, rank=4, **options):
    model = kind(
        rank, bounds=(-4, 4), unit_mode=0, shape=(N, D), epsilon=epsilon,
        random_state=seed, **options,
    )  # fmt: skip
    with unsafe_seeded_noise(seed):
        return model.fit(*data)


def error(model, data, test):
    found = model.fold_in(*data).predict(test[0])
    return float(np.sqrt(np.mean((found - test[1]) ** 2)))


@pytest.mark.parametrize("kind", [PrivateCPCompletion, PrivateTuckerCompletion])
def test_shared_components_are_learnt_at_a_small_epsilon(kind, seed):
    data, test = tastes(seed, 0.5)
    rank = 4 if kind is PrivateCPCompletion else (4, 4)
    found = fitted(data, seed, EPSILON, kind, rank)
    assert [factor.shape for factor in found.factors_] == [(N, 4), (D, 4)]
    alone, private, exact = (
        error(model, data, test)
        for model in (fitted(data, seed, EPSILON, rank=0), found, fitted(data, seed, math.inf))
    )
    # Directions of noise explain nothing, whatever their number is. What is lost here is what
    # noise at mu = .55 leaves; exact components explain a third of the variance.
    assert alone - private > 0.5 * (alone - exact) > 0.03


def spent(model):
    """Squared mu by release, and how often each was made."""
    rows = model.privacy_report_.rows
    return [(row.name, row.uses, row.uses * row.mu**2) for row in rows]


def test_no_chance_of_moments_ends_a_search(seed):
    """Of so few units two of them are mostly noise when directions have long been found."""
    data, _ = tastes(seed, 0.5)
    assert hasattr(fitted(data, seed, 2.0), "factors_")


@pytest.mark.parametrize("each", [20, 3])
def test_what_components_do_not_need_goes_to_effects(each, seed):
    """Where nothing shows after some sweeps, or so few values only show chance."""
    data, test = tastes(seed, 0.0, each)
    model, plain = fitted(data, seed, 2.0), fitted(data, seed, 2.0, rank=0)
    made = spent(model)
    tried = sum(uses for name, uses, _ in made if name == "shared_factor_sums")
    # A standard error of noise is passed by chance now and then; the search then goes to its end,
    # and must do no harm either.
    if tried != defaults.DIRECTION_SWEEPS:
        # Parts of a rest may cost as much but for their last bits: they are rows of their own.
        found = [name for name, _ in groupby(name for name, _, _ in made)]
        names = ["unit_levels", "shared_row_sums", "shared_factor_sums", "shared_row_sums"]
        assert found == names
        assert tried == defaults.DIRECTION_TRIAL * defaults.DIRECTION_SWEEPS
        assert not hasattr(model, "factors_")
    whole = sum(cost for _, _, cost in spent(plain))
    assert sum(cost for _, _, cost in made) == pytest.approx(whole, rel=1e-12)
    assert model.privacy_report_.epsilon <= 2.0 * (1 + 1e-9)
    # Nothing is there to be found: effects of variance 0 on a deviation of 1.
    assert error(model, data, test) < 1.01 * error(plain, data, test)


def test_all_releases_of_sums_are_as_good_as_one_for_their_budget(seed):
    data, _ = tastes(seed, 0.0, 3)
    precision = []
    for model in (fitted(data, seed, 2.0), fitted(data, seed, 2.0, rank=0)):
        rows = [row for row in model.privacy_report_.rows if row.name == "shared_row_sums"]
        cost = sum(row.uses * row.mu**2 for row in rows)
        precision.append(sum(row.uses / row.sigma**2 for row in rows) / cost)
    assert precision[0] == pytest.approx(precision[1], rel=1e-12)


@pytest.mark.parametrize(("epsilon", "share"), [(0.5, 0.0), (EPSILON, 0.5), (math.inf, 0.5)])
def test_forecasts_say_what_comes_out_of_what_is_assumed(epsilon, share, seed):
    data, test = tastes(seed, share)
    model = fitted(data, seed, epsilon)
    said = model.forecast(
        len(data[1]), (N, D), deviation=1.0, bias_deviation=0.0, component_share=share
    )
    assert said.of_mean == 1.0
    if share == 0:
        assert said.of_model == said.of_biases
        assert not said.finds_components
    # Two components, of 60 rows each, differ in size from draw to draw: their share of the
    # variance deviates by half of sqrt(2 / 60 / 2), 6 %, of which the error is half. Without
    # components it would be off by 35 %.
    assert said.of_model == pytest.approx(error(model, data, test), rel=0.1)


class Noise:
    """In the place of a curator: sums of noise alone, and moments of all kinds."""

    shape, n_units, half = (1000, 4000), 1000, 4.0

    def __init__(self, rng):
        self.rng, self.turned = rng, []

    def shared_factor_sums(self, query):
        self.turned.append(query.turned)
        root = self.rng.standard_normal((3, 3)) / 3
        sums = 5 * self.rng.standard_normal((self.shape[1], 3))
        return NoisySharedFactor(sums, root @ root.T, 5.0, 1.0, 0.01)


def test_the_noise_of_added_sums_is_what_is_taken_for_it(seed):
    """Whatever of earlier sums is kept; and units' weights are turned within the bounds."""
    rng = np.random.default_rng(seed)
    none = np.zeros(Noise.shape[1])
    part = ItemBiases(None, 1, 0.0, 1.0, None)
    part.effects, part.weights = SharedEffects(none, none, none, 1.0), none + 1
    part.shares = part.weights / len(none)
    curator = Noise(rng)
    search = Directions(curator, part, rng.standard_normal((4000, 3)))
    for _ in range(12):
        search.sweep()
    sums, covariance = sums_and_covariance(search)
    found = sums.T @ sums / len(none)
    # A covariance of 4000 rows deviates by .022 of its variances at most: five times that.
    largest = found.diagonal().max()
    np.testing.assert_allclose(found, covariance, atol=0.11 * largest)
    # All of it were 300, and nothing but the last 25.
    assert (found.diagonal() > 25).all()
    assert (found.diagonal() < 280).all()
    assert curator.turned[0] is None
    for turned in curator.turned[1:]:
        assert 0 < np.linalg.eigvalsh(turned)[0] <= np.linalg.eigvalsh(turned)[-1] <= 1 + 1e-12


def test_what_is_found_is_kept():
    explained = np.array([-0.3, 0.0, 0.2, 0.5, 3.0])
    kept = forgetting_factor(explained)
    assert kept[0] == kept[1] < kept[2] < kept[3] == kept[4] == 1
    assert kept[0] == pytest.approx(defaults.FORGETTING)


def test_few_columns_hold_few_components():
    """Where noise leaves room for one direction, it is not all that people differ by."""
    shape, errors = (60_000, 2000), []
    for epsilon in (0.25, 0.35, 0.5, 0.7, 1.0, 2.0, 5.0):
        model = PrivateCPCompletion(10, bounds=(-4, 4), unit_mode=0, shape=shape, epsilon=epsilon)
        said = model.forecast(
            2_160_000, shape, deviation=1.0, bias_deviation=0.0, component_share=0.5
        )
        errors.append(said.of_fold_in)
    assert errors == sorted(errors, reverse=True)
    # A fit at .5 has .985.
    assert errors[2] == pytest.approx(0.985, rel=0.02)


def test_forecasts_show_what_they_assume():
    model = PrivateCPCompletion(4, bounds=(-4, 4), unit_mode=0, shape=(N, D), epsilon=2.0)
    table = str(model.forecast(N * EACH, (N, D), deviation=1.0, component_share=0.5))
    for part in ("deviation of 1,", "mode one of 0.4", "components 50%", "components too"):
        assert part in table
    assert "deviation of 2," in str(model.forecast(N * EACH, (N, D)))


@pytest.mark.parametrize("unit_mode", [None, 0])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"deviation": 0.0}, "'deviation' parameter"),
        ({"deviation": math.inf}, "'deviation' parameter"),
        ({"deviation": "1"}, "'deviation' parameter"),
        ({"bias_deviation": -0.1}, "'bias_deviation' parameter"),
        ({"component_share": True}, "'component_share' parameter"),
        ({"component_share": -0.1}, "'component_share' parameter"),
        ({"component_share": 0.7}, "a hundredth of the variance"),
        ({"bias_deviation": 2.0, "deviation": 2.0}, "a hundredth of the variance"),
    ],
)
def test_forecasts_refuse_what_leaves_no_variance(given, message, unit_mode):
    model = PrivateCPCompletion(4, bounds=(-4, 4), unit_mode=unit_mode, shape=(N, D))
    with pytest.raises(ValueError, match=message):
        model.forecast(N * EACH, (N, D), **given)


@pytest.mark.parametrize(
    ("shape", "epsilon", "delta", "expected"),
    [
        ((N, D), 2.0, 1e-6, True),
        ((N, D), math.inf, 1e-6, True),
        ((N, D), 2.0, 0.0, False),
        ((N, 6, 10), 2.0, 1e-6, False),
        ((N, 20_000), 2.0, 1e-6, False),
    ],
)
def test_public_numbers_decide_how_components_are_sought(shape, epsilon, delta, expected):
    plan = plan_slices(shape, 4, 0, epsilon, delta)
    assert plan.by_directions == expected
