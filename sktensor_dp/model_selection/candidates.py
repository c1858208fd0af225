"""Candidates of a search, drawn at random with replacement, and the one that was kept."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.estimator.documented import Documented
from sktensor_dp.model_files.fitted_state import FittedStateMixin
from sktensor_dp.model_selection.shown import ShownSearch
from sktensor_dp.privacy.payable import Payable
from sktensor_dp.queries.reading import call_foreign

Distributions = Mapping[str, Any]


def secret_random_state(bits: Sequence[int]) -> np.random.RandomState:
    """Generator of all that one trial draws besides noise, from secret bits of its own."""
    # What the winning trial drew is published; trials share no generator, so it tells
    # nothing of what others drew.
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(list(bits))))


def draw_candidate(
    distributions: Sequence[Distributions], rng: np.random.RandomState
) -> dict[str, Any]:
    """Draw a mapping evenly, and from it a value for every name, independently."""
    chosen = distributions[rng.randint(len(distributions))]
    return {
        name: values.rvs(random_state=rng)
        if hasattr(values, "rvs")
        else values[rng.randint(len(values))]
        for name, values in sorted(chosen.items())
    }


def _model_has(name: str) -> Callable[[Any], bool]:
    def check(search: "BestModel") -> bool:  # or an AttributeError of the model's own
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return check


class BestModel(
    ShownSearch, Documented, Payable, FittedStateMixin, MetaEstimatorMixin, BaseEstimator
):
    """Methods that a fitted search hands on to its best model."""

    estimator: Any
    fit: Any
    best_estimator_: Any

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"{type(self).__name__} has no n_features_in_ before fit.")
        return int(self.best_estimator_.n_features_in_)

    @available_if(_model_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predictions of the best model; see its own method."""
        check_is_fitted(self)
        return call_foreign(lambda: self.best_estimator_.predict(X), "predict")

    @available_if(_model_has("transform"))
    def transform(self, X: Any) -> Any:
        """What the best model makes of `X`; see its own method."""
        check_is_fitted(self)
        return call_foreign(lambda: self.best_estimator_.transform(X), "transform")

    @available_if(_model_has("transform"))
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Search, and return what the best model makes of `X`."""
        with self._all_or_nothing():
            return self.fit(X, y, **fit_params).transform(X)

    @available_if(_model_has("score_samples"))
    def score_samples(self, X: Any) -> Any:
        """Score of every row by the best model; see its own method."""
        check_is_fitted(self)
        return call_foreign(lambda: self.best_estimator_.score_samples(X), "score_samples")

    @available_if(_model_has("score"))
    def score(self, X: Any, y: Any = None) -> float:
        """Score of the best model, by its own method and without noise."""
        check_is_fitted(self)
        passed = (X,) if y is None else (X, y)
        return float(call_foreign(lambda: self.best_estimator_.score(*passed), "score"))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = own.estimator_type
        tags.regressor_tags, tags.classifier_tags = own.regressor_tags, own.classifier_tags
        tags.target_tags, tags.input_tags = own.target_tags, own.input_tags
        tags.transformer_tags = own.transformer_tags
        tags.non_deterministic = True
        return tags
