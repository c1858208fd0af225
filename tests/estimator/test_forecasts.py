"""Forecasts of every estimator."""

import math
import pickle

import pytest
from commands import PLURAL_OF_ONE
from sklearn.base import BaseEstimator, clone

import sktensor_dp
from sktensor_dp import (
    BudgetAccountant,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)
from sktensor_dp.estimator.base import PrivateEstimatorMixin

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning")


BUILDERS = {
    PrivateSpectralLDA: ((1000, 50), {}),
    PrivateTensorPowerMethod: ((1000, 5), {"data_norm": 1.0}),
    PrivateGaussianMixture: ((1000, 5), {"data_norm": 1.0}),
    PrivateCPCompletion: ((1000, (9, 8)), {"bounds": (0, 1)}),
    PrivateTuckerCompletion: ((1000, (9, 8)), {"bounds": (0, 1)}),
    PrivateCountVectorizer: ((1000,), {}),
}


def test_every_estimator_forecasts_by_public_numbers_and_spends_nothing():
    public = {getattr(sktensor_dp, name) for name in sktensor_dp.__all__}
    estimators = {
        one for one in public if isinstance(one, type) and issubclass(one, PrivateEstimatorMixin)
    }
    assert estimators == BUILDERS.keys()
    budget = BudgetAccountant()
    for build, (sizes, options) in BUILDERS.items():
        model: BaseEstimator = build(accountant=budget, **options)
        before = vars(model).copy()
        assert str(model.forecast(*sizes))
        assert not PLURAL_OF_ONE.search(str(model.forecast(1, *sizes[1:])))
        assert vars(model) == before
    assert budget.entries == ()


def completion(unit_mode=None):
    return PrivateCPCompletion(4, bounds=(-4, 4), unit_mode=unit_mode, shape=(60, 9))


REFUSED = [
    (PrivateCountVectorizer(vocabulary=["a"]), (10,), {}, "vocabulary must be None"),
    (PrivateCountVectorizer(delta=0), (10,), {}, "delta=0 cannot protect"),
    (PrivateCountVectorizer(), (0,), {}, "n_documents must be an int >= 1"),
    (PrivateCountVectorizer(), (10,), {"document_length": 0}, "document_length must be a number"),
    (PrivateCountVectorizer(epsilon=-1.0), (10,), {}, "'epsilon' parameter"),
    (PrivateGaussianMixture(3), (10, 2), {}, "'data_norm' parameter .* must be given"),
    (PrivateGaussianMixture(3, data_norm=1.0), (10, 2), {"deviation": 0}, "deviation must be a nu"),
    *((completion(), sizes, {}, "int >= 1|two lengths") for n in (0, False, 1.5, -3)
      for sizes in ((n, (60, 9)), (10, (4, n)), (10, (4,)))),
    *((completion(mode), (300, (60, 9)), {name: value}, f"'{name}' parameter")
      for mode in (None, 0)
      for name, value in (
          *(("deviation", wrong) for wrong in (0.0, math.inf, "1")), ("bias_deviation", -0.1),
          ("component_share", True), ("component_share", -0.1),
      )),
    *((completion(mode), (300, (60, 9)), given, "a hundredth of the variance")
      for mode in (None, 0)
      for given in ({"component_share": 0.98}, {"bias_deviation": 2.0, "deviation": 2.0})),
    (completion(), (100, (60, 9)), {"stays": 3}, "stays needs unit_mode=0: units stay in rows of"),
    (completion(0), (901, (60, 5, 9)), {"stays": 3}, "n_observed must be at most 900, if units"),
    *((completion(0), (100, (60, 9)), {"stays": wrong}, "stays must be an int from 2 on, less than")
      for wrong in (1, 9, True, 2.5, "3")),
    (completion(0), (181, (60, 9)), {"stays": 3}, "n_observed must be at most 180, if units stay"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "sizes", "given", "said"), REFUSED, ids=lambda _: "")
def test_wrong_numbers_of_a_forecast_are_named(model, sizes, given, said):
    with pytest.raises(ValueError, match=said):
        model.forecast(*sizes, **given)


SIZE = (50_000, 30)
# Replacing a unit moves means further than adding one: twice as far, or 2**.5 times.
MODELS = [
    (PrivateSpectralLDA(3, doc_topic_prior=0), math.sqrt(2)),
    (PrivateSpectralLDA(3, delta=0), 2.0),
    (PrivateSpectralLDA(3, perturbation="moment_tensor"), math.sqrt(2)),
    (PrivateTensorPowerMethod(3, data_norm=2.0), math.sqrt(2)),
    (PrivateTensorPowerMethod(3, data_norm=2.0, perturbation="iteration"), 2.0),
]


@pytest.mark.parametrize(("model", "gain"), MODELS, ids=str)
def test_a_forecast_says_what_number_it_assumes(model, gain):
    public = model.set_params(neighbours="replace_one").forecast(*SIZE)
    private = model.set_params(neighbours="add_remove").forecast(*SIZE)
    assert public.count_sigma is None
    assert "released" not in str(public)
    strength = model.epsilon if model.delta == 0 else 1 / private.count_sigma
    assert strength > 0
    assert "50,000 is taken for the number that would be released" in str(private)
    # A percent of the budget goes to the count, and every release moves by less.
    left = 0.99 if model.delta == 0 else math.sqrt(0.99)
    first = public.releases[0].sigma / private.releases[0].sigma
    assert first == pytest.approx(gain * left, rel=1e-9)
    assert len(public.releases) == len(private.releases)


# Estimator, sizes, place of the number of units in them, and a target that some numbers miss.
TARGETS = [
    (PrivateSpectralLDA(5), (3000, 2000), "enough"),
    (PrivateSpectralLDA(5, neighbours="add_remove"), (3000, 2000), "likely too few"),
    (PrivateTensorPowerMethod(4, data_norm=1.0), (1000, 20), "enough"),
    (PrivateTensorPowerMethod(4, data_norm=1.0, delta=0), (1000, 20), "enough"),
    (PrivateGaussianMixture(1, data_norm=3.0), (3000, 9), ("enough", 0.05)),
    (PrivateGaussianMixture(3, data_norm="auto"), (3000, 9), ("may be enough", 0.06)),
    (PrivateCPCompletion(0, bounds=(1, 5), unit_mode=0), (9000, (300, 90)), (0.3, 1)),
    (PrivateCPCompletion(2, bounds=(1, 5)), (9000, (300, 90)), 0.95),
    (PrivateCPCompletion(2, bounds=(1, 5), unit_mode=0), (9000, (300, 90)), 0.92),
    (PrivateTuckerCompletion((2, 2, 1), bounds=(0, 1), unit_mode=1), (9000, (40, 30, 20)), 0.235),
]


@pytest.mark.parametrize(("model", "sizes", "target"), TARGETS)
def test_least_epsilon_and_number_for_a_target_reach_it_and_less_does_not(model, sizes, target):
    target = target if isinstance(target, tuple) else (target,)

    def reached(forecast):
        if isinstance(target[0], str):
            return forecast._test_of(*target)(forecast)
        return (forecast.average_error(target[1]) if target[1:] else forecast.of_model) <= target[0]

    def sized(n):
        unit = getattr(model, "unit_mode", None)
        if unit is None:
            return (n, sizes[1])
        shape = [n if mode == unit else length for mode, length in enumerate(sizes[1])]
        return max(round(sizes[0] / sizes[1][unit] * n), 1), tuple(shape)

    asked = pickle.loads(pickle.dumps(model.forecast(*sizes)))
    epsilon, n = asked.epsilon_for(*target), asked.n_for(*target)
    assert 0.01 < epsilon <= 10
    assert 1 < n < 10**9
    for part, enough in ((1.0, True), (0.98, False)):
        other = clone(model).set_params(epsilon=part * epsilon)
        assert reached(other.forecast(*sizes)) is enough
    assert reached(model.forecast(*sized(n)))
    assert not reached(model.forecast(*sized(n - 1)))


def test_targets_that_nothing_reaches_have_no_epsilon():
    ratings = PrivateCPCompletion(2, bounds=(1, 5)).forecast(9000, (300, 90))
    assert ratings.epsilon_for(0.1) is None
    assert ratings.n_for(0.1) is None
    # Here any value within the bounds does.
    assert ratings.epsilon_for(1.6) == 0.01
    assert ratings.n_for(1.6) == 1
    ratings = PrivateCPCompletion(2, bounds=(1, 5), unit_mode=0).forecast(9000, (300, 90))
    for wrong in (0, 2, "items"):
        with pytest.raises(ValueError, match="mode must be one of the 2 modes, from 0 on, and not"):
            ratings.epsilon_for(0.1, wrong)
    with pytest.raises(ValueError, match=r"no epsilon is the least .* PrivateCPCompletion\(0\)"):
        ratings.n_for(0.1, 1)
    for wrong in ("too few", "good"):
        with pytest.raises(ValueError, match="verdict must be one of 'enough'"):
            PrivateSpectralLDA().forecast(100, 50).epsilon_for(wrong)
