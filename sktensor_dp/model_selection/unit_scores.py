"""Scores of one number per unit: what their means are called in scikit-learn, and bounds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from sktensor_dp.estimator.parameters import Number
from sktensor_dp.statistics.public_numbers import SCORE

__all__ = ["SCORES", "UnitScores", "check_scoring", "checked_score_bounds", "default_score"]

Floats = NDArray[np.float64]
UnitScore = Callable[[Any, Any, Any], Any]

# Log-likelihood per token is clipped at twice that of evenly likely words.
WORST_TOKEN = 2.0


def _neg_squared_error(estimator: Any, X: Any, y: Any) -> Floats:
    return -np.square(_residuals(estimator, X, y))


def _neg_absolute_error(estimator: Any, X: Any, y: Any) -> Floats:
    return -np.abs(_residuals(estimator, X, y))


def _accuracy(estimator: Any, X: Any, y: Any) -> Floats:
    return np.asarray(np.asarray(estimator.predict(X)) == np.asarray(y), dtype=np.float64)


def _log_likelihood(estimator: Any, X: Any, y: Any) -> Floats:
    return np.asarray(estimator.score_samples(X), dtype=np.float64)


def _log_likelihood_per_token(estimator: Any, X: Any, y: Any) -> Floats:
    counts = estimator[:-1].transform(X) if isinstance(estimator, Pipeline) else X
    counts = sp.csr_matrix(counts, dtype=np.float64)
    tokens = np.asarray(counts.sum(axis=1)).ravel()
    return _log_likelihood(estimator, X, y) / np.maximum(tokens, 1.0)


SCORES: dict[str, UnitScore] = {
    "neg_mean_squared_error": _neg_squared_error,
    "neg_mean_absolute_error": _neg_absolute_error,
    "accuracy": _accuracy,
    "log_likelihood": _log_likelihood,
    "log_likelihood_per_token": _log_likelihood_per_token,
}


@dataclass(frozen=True, eq=False)
class UnitScores:
    """A score of a fitted model as a function of units alone.

    Parameters
    ----------
    scoring : str or callable
        A name of ``SCORES``, or ``(estimator, X, y) -> array of shape (n_units,)``, called
        without ``y`` where there is none.
    estimator : object
        The model; public.
    """

    scoring: str | Callable[..., Any]
    estimator: Any

    def __call__(self, X: Any, y: Any) -> Any:
        """One number for each unit."""
        if isinstance(self.scoring, str):
            return SCORES[self.scoring](self.estimator, X, y)
        return self.scoring(self.estimator, X) if y is None else self.scoring(self.estimator, X, y)


def check_scoring(scoring: Any, name: str) -> None:
    """Refuse what is neither a callable nor the name of a score.

    Raises
    ------
    ValueError
        Naming the parameter.
    """
    if not callable(scoring) and scoring not in SCORES:
        raise ValueError(
            f"{name} must be a callable that returns one number per row, or one of "
            f"{sorted(SCORES)}; got {scoring!r}."
        )


def default_score(step: Any, is_regressor: bool) -> str:
    """Name of the score of a private estimator that is a mean over units.

    Raises
    ------
    ValueError
        If it has none.

    Examples
    --------
    >>> from sktensor_dp import PrivateSpectralLDA
    >>> default_score(PrivateSpectralLDA(), False)
    'log_likelihood_per_token'
    """
    if is_regressor:
        return "neg_mean_squared_error"
    if not hasattr(step, "score_samples"):
        raise ValueError(f"scoring must be given: {type(step).__name__} has no default.")
    documents = hasattr(step, "doc_topic_prior") or getattr(step, "moment", "") == "single_topic"
    return "log_likelihood_per_token" if documents else "log_likelihood"


def checked_score_bounds(
    given: Sequence[float] | None, scoring: str | Callable[..., Any], step: Any, name: str
) -> tuple[float, float]:
    """Public bounds of a score: those given, or those that its estimator implies.

    Parameters
    ----------
    given : pair of float or None
        As the caller gave them.
    scoring : str or callable
        The score.
    step : object
        The fitted estimator that is scored; a public property of it may imply bounds.
    name : str
        What the parameter is called.

    Returns
    -------
    tuple of float
        Low and high.

    Raises
    ------
    ValueError
        If they are not two finite numbers, the first smaller, or none are known.

    Examples
    --------
    >>> checked_score_bounds(None, "accuracy", None, "bounds")
    (0.0, 1.0)
    """
    bounds = given if given is not None else _implied_bounds(scoring, step)
    if bounds is None:
        raise ValueError(
            f"{name} must be given: the public (low, high) that the score of a unit is clipped "
            "to. The noise is in proportion to their distance."
        )
    if not _is_range(bounds):
        raise ValueError(
            f"{name} must be two finite numbers, low < high, of size {SCORE[1]:g} at most and at "
            f"least {SCORE[0]:g} apart; got {bounds!r}."
        )
    return float(bounds[0]), float(bounds[1])


def _is_range(bounds: Any) -> bool:
    if isinstance(bounds, str) or not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
        return False
    if not all(Number(-SCORE[1], SCORE[1]).accepts(bound) for bound in bounds):
        return False
    return float(bounds[1]) - float(bounds[0]) >= SCORE[0]


def _implied_bounds(scoring: Any, step: Any) -> tuple[float, float] | None:
    if scoring == "accuracy":
        return 0.0, 1.0
    if scoring == "log_likelihood_per_token" and hasattr(step, "n_features_in_"):
        return -WORST_TOKEN * math.log(max(step.n_features_in_, 2)), 0.0
    bounds = getattr(step, "bounds", None)
    if isinstance(scoring, str) and bounds is not None:
        width = float(bounds[1]) - float(bounds[0])
        return {
            "neg_mean_squared_error": (-(width**2), 0.0),
            "neg_mean_absolute_error": (-width, 0.0),
        }.get(scoring)
    return None


def _residuals(estimator: Any, X: Any, y: Any) -> Floats:
    # A column of targets is taken for one number each, as scikit-learn does.
    return np.ravel(y).astype(np.float64) - np.asarray(estimator.predict(X), dtype=np.float64)
