"""Search, scorer and audit take estimators that they have never heard of, by their hooks."""

import ast
from pathlib import Path

import numpy as np
import pytest
from internals import unit_score_of
from sklearn.base import BaseEstimator
from small_searches import mixtures
from toy_regressor import NoisyMean, constant, targets

import sktensor_dp
from sktensor_dp import PrivateSearchCV, make_private_scorer
from sktensor_dp.estimator.base import PrivateEstimatorMixin
from sktensor_dp.privacy.audit import audit, worst_case

INF = float("inf")
PACKAGE = Path(sktensor_dp.__file__).parent
ASKING = [*sorted((PACKAGE / "model_selection").glob("*.py")), PACKAGE / "privacy" / "audit.py"]
# What these ask of objects by name: conventions of scikit-learn and of containers, what fits
# publish, and a hook.
BY_NAME = {
    *("best_estimator_", "feature_names_in_", "n_features_in_", "privacy_report_", "unit"),
    *("__next__", "_skl_callbacks", "columns", "dtype", "iloc", "kind", "rvs", "shape"),
    "_worst_case",
    *("func", "ndim", "to_delayed"),
}
pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning")


class Stranger(NoisyMean):
    """Its parameters are called as others of this package, and mean something else."""

    _estimator_type = None

    def __init__(
        self, shift=0.0, *, limits=(0.0, 10.0), unit_mode=0, moment="single_topic",
        perturbation="input", epsilon=1.0, delta=1e-6, accountant=None, random_state=None,
        verbose=0,
    ):  # fmt: skip
        super().__init__(
            shift, epsilon=epsilon, delta=delta, accountant=accountant, random_state=random_state,
            verbose=verbose,
        )  # fmt: skip
        del self.factor, self.fail, self.bounds
        self.limits, self.unit_mode = limits, unit_mode
        self.moment, self.perturbation = moment, perturbation

    factor, fail = 1.0, False
    bounds = property(lambda self: self.limits, lambda self, _: None, lambda self: None)


class Pure(NoisyMean):
    _has_pure_noise = True


class Silent(PrivateEstimatorMixin, BaseEstimator):
    """Says nothing of itself."""

    def __init__(self, epsilon=1.0, accountant=None):
        self.epsilon, self.accountant = epsilon, accountant


class Density(Silent):
    def score_samples(self, X):
        return np.zeros(len(X))


def test_a_third_party_estimator_is_searched_whatever_its_parameters_are_called(n_trials_are):
    X, y = targets(200)
    n_trials_are(8)  # each of two candidates is in some
    search = PrivateSearchCV(Stranger(), {"shift": [-2.0, 0.0]}, epsilon=INF, n_trials=20.0)
    assert search.fit(X, y).best_params_ == {"shift": 0.0}
    fitted = search.best_estimator_
    scorer = make_private_scorer("neg_mean_squared_error", epsilon=INF)
    assert -1 < scorer(fitted, X, y) <= 0


def test_the_kind_of_noise_is_asked_for():
    X, y = targets(200)
    rows = [
        PrivateSearchCV(build(), {"shift": [0.0]}, delta=delta)
        .fit(X, y)
        .privacy_report_.rows
        for build, delta in ((NoisyMean, 1e-6), (Pure, 1e-6), (NoisyMean, 0))
    ]  # fmt: skip
    assert [{row.epsilon > 0 for row in trial} for trial in rows] == [{False}, {True}, {True}]


def test_a_default_score_follows_from_what_an_estimator_offers():
    X = np.zeros((10, 1))
    with pytest.raises(ValueError, match="scoring must be given: Silent has no default"):
        PrivateSearchCV(Silent(), {}).fit(X)
    with pytest.raises(ValueError, match="bounds must be given"):
        make_private_scorer("log_likelihood", epsilon=INF)(constant(), X)
    with pytest.raises(ValueError, match="score_bounds must be given"):
        mixtures({}, score_bounds=None).fit(np.random.default_rng(0).standard_normal((50, 3)))
    assert (unit_score_of(Silent()), unit_score_of(Density())) == (None, "log_likelihood")


def test_a_third_party_estimator_is_audited_at_its_worst():
    """Without noise the neighbours, a tenth of the range apart, are told every time.

    40 fits of each then show an epsilon of at least 1: rates off by .1 at most, and
    log(.9 / .1) = 2.2. With noise the claim stands, unless by a chance of 1e-6.
    """
    case = worst_case(NoisyMean(), 10)
    sharp = audit(NoisyMean(epsilon=INF), case.data, case.neighbour, n_runs=40,
                  statistic=case.statistic)  # fmt: skip
    assert sharp.epsilon_lower > 1
    result = audit(NoisyMean(), case.data, case.neighbour, n_runs=100, statistic=case.statistic,
                   confidence=1 - 1e-6)  # fmt: skip
    assert result.epsilon_claim == pytest.approx(1.0)
    assert not result.refutes_claim


def test_an_estimator_without_worst_neighbours_is_told_so():
    with pytest.raises(ValueError, match=r"hook _worst_case .* got a Silent"):
        worst_case(Silent())


def test_nothing_asks_for_the_name_of_a_parameter_or_for_a_type_of_estimator():
    asked = {
        (path.stem, node)
        for path in ASKING
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and getattr(call.func, "id", "") in {"getattr", "hasattr", "isinstance"}
        for node in ast.walk(call.args[1])
    }
    names = {(path, n.value) for path, n in asked if isinstance(n, ast.Constant) and n.value}
    assert {(path, name) for path, name in names if name not in BY_NAME} == set()
    types = {(path, n.id) for path, n in asked if isinstance(n, ast.Name)}
    ours = {one for one in types if one[1].startswith("Private") or one[1].endswith("Mixin")}
    assert {name for _, name in ours} <= {"PrivateEstimatorMixin", "PrivateScorer"}
