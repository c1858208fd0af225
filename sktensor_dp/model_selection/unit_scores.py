"""Scores of one number per unit: what their means are called in scikit-learn, and bounds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from sktensor_dp.estimator.hooks import Hooks
from sktensor_dp.estimator.parameters import Number, shown
from sktensor_dp.model_selection.unit_rows import (
    answers,
    each_row,
    entries,
    n_rows,
    numbers,
    one_row,
)
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.queries.query import SCORE
from sktensor_dp.queries.scores import HeldOutChunk, HeldOutScores

Floats = NDArray[np.float64]
WordCounter = Callable[[Any], Any]
# Of (estimator, X, y), and how many words raw documents have, where X holds such.
UnitScore = Callable[[Any, Any, Any, WordCounter | None], Any]

# Log-likelihood per token is clipped at twice that of evenly likely words.
WORST_TOKEN = 2.0
# Probability that scores of texts give to each word that a vocabulary does not have, a public
# number: about that of one of the rarer words of a language. A vocabulary that is small pays it
# often. Such scores are clipped at its logarithm.
UNKNOWN_WORD = 1e-5


def _neg_squared_error(estimator: Any, X: Any, y: Any, words: Any) -> Floats:
    return -np.square(_residuals(estimator, X, y))


def _neg_absolute_error(estimator: Any, X: Any, y: Any, words: Any) -> Floats:
    return -np.abs(_residuals(estimator, X, y))


def _accuracy(estimator: Any, X: Any, y: Any, words: Any) -> Floats:
    # Pair by pair: in one array a label of another type would change that of all.
    found, refused = _predictions(estimator, X)
    pairs = zip(found.tolist(), entries(y), strict=True)
    return _scored(np.array([_same(one, true) for one, true in pairs], dtype=np.float64), refused)


def _log_likelihood(estimator: Any, X: Any, y: Any, words: Any) -> Any:
    return _scored(*_answers(estimator, estimator.score_samples, X))


def _log_likelihood_per_token(estimator: Any, X: Any, y: Any, words: Any) -> Any:
    model = getattr(estimator, "best_estimator_", estimator)
    return _scored(*_answers(model, lambda rows: _per_token(model, rows, words), X))


def _per_token(model: Any, X: Any, words: WordCounter | None) -> Floats:
    """Log-likelihood per token; of texts also of tokens that the vocabulary does not have."""
    if words is None:
        counts = model[:-1].transform(X) if isinstance(model, Pipeline) else X
        tokens, likelihood = _row_sums(counts), model.score_samples(X)
    else:
        before, vectorizer, after = _at_vocabulary(model)
        texts = _through(before, X)
        counts, tokens = vectorizer.transform(texts), words(texts)
        likelihood = after[-1].score_samples(_through(after[:-1], counts))
        unknown = np.maximum(tokens - _row_sums(counts), 0.0)
        likelihood = likelihood + unknown * math.log(UNKNOWN_WORD)
    return np.asarray(likelihood, dtype=np.float64) / np.maximum(tokens, 1.0)


def word_counter(estimator: Any) -> WordCounter | None:
    """How many words texts have, where an estimator counts those of a vocabulary of its own."""
    _, vectorizer, after = _at_vocabulary(estimator)
    return hooks_of(vectorizer)._word_counter() if after else None


def _at_vocabulary(estimator: Any) -> tuple[list[Any], Any, list[Any]]:
    """The step that counts words, those before and those after it; None if there is none."""
    steps = _flat(getattr(estimator, "best_estimator_", estimator))
    for place, step in enumerate(steps):
        if hooks_of(step)._word_counter() is not None:
            return steps[:place], step, steps[place + 1 :]
    return steps, None, []


def _flat(model: Any) -> list[Any]:
    """Steps of a pipeline, and of those in it."""
    if isinstance(model, Pipeline):
        return [inner for _, step in model.steps for inner in _flat(step)]
    return [] if model is None or model == "passthrough" else [model]


def _through(steps: Sequence[Any], X: Any) -> Any:
    for step in steps:
        X = step.transform(X)
    return X


def _row_sums(counts: Any) -> Floats:
    return np.asarray(sp.csr_matrix(counts, dtype=np.float64).sum(axis=1)).ravel()


SCORES: dict[str, UnitScore] = {
    "neg_mean_squared_error": _neg_squared_error,
    "neg_mean_absolute_error": _neg_absolute_error,
    "accuracy": _accuracy,
    "log_likelihood": _log_likelihood,
    "log_likelihood_per_token": _log_likelihood_per_token,
}
# Of those that compare numbers: the least, for targets and predictions so far apart.
LEAST: dict[str, Callable[[float], float]] = {
    "neg_mean_squared_error": lambda gap: -(gap**2),
    "neg_mean_absolute_error": lambda gap: -gap,
}


@dataclass(frozen=True, eq=False)
class UnitScores:
    """A score of a fitted model as a function of units alone, by name or row by row."""

    scoring: str | Callable[..., Any]
    estimator: Any
    words: WordCounter | None = None

    def __call__(self, X: Any, y: Any) -> Any:
        """One number for each unit."""
        if isinstance(self.scoring, str):
            return SCORES[self.scoring](self.estimator, X, y, self.words)
        score, model = self.scoring, self.estimator
        found = each_row(
            lambda row: (
                score(model, one_row(X, row))
                if y is None
                else score(model, one_row(X, row), one_row(y, row))
            ),
            n_rows(X),
        )
        return numbers(found.tolist())


@dataclass(frozen=True, eq=False)
class UnitMetric:
    """The same of a metric of predictions, made for all rows at once where that is safe."""

    metric: Callable[[Any, Any], Any]
    estimator: Any

    def __call__(self, X: Any, y: Any) -> Any:
        """One number for each unit."""
        found, refused = _answers(self.estimator, self.estimator.predict, X)
        # An object array of answers one by one is told apart by none of their types.
        part = (lambda row: [found[row]]) if found.dtype.kind == "O" else (lambda row: found[[row]])
        scores = each_row(
            lambda row: self.metric(one_row(y, row), np.asarray(part(row))), len(found)
        )
        return _scored(scores, refused)


def check_answers(scoring: Any, estimator: Any, X: Any, name: str) -> None:
    """Refuse, by the model and the number of columns alone, what could score no row."""
    if callable(scoring) and not hasattr(estimator, "predict"):
        raise ValueError(
            f"{name} needs an estimator with predict; {type(estimator).__name__} has none."
        )
    compared = isinstance(scoring, str) and scoring in LEAST
    if compared and np.asarray(getattr(estimator, "classes_", 0.0)).dtype.kind in "US":
        raise ValueError(
            f"predict must return numbers for {name}={scoring!r}; that of this "
            f"{type(estimator).__name__} returns texts."
        )
    shape: tuple[int, ...] = getattr(X, "shape", ())
    wanted = getattr(estimator, "n_features_in_", None)
    own = isinstance(estimator, Hooks) and isinstance(wanted, int)
    if own and len(shape) == 2 and shape[1] != wanted:
        raise ValueError(
            f"X has {shape[1]} features, but {type(estimator).__name__} is expecting {wanted} "
            "features as input."
        )


def hooks_of(step: Any) -> Hooks:
    """Who answers for a model: itself, or defaults for one that is public."""
    return step if isinstance(step, Hooks) else Hooks()


def checked_score_bounds(
    given: Sequence[float] | None,
    scoring: str | Callable[..., Any],
    step: Any,
    name: str,
    *,
    texts: bool = False,
) -> tuple[float, float]:
    """Public (low, high) of a score: those given, or those that the model implies."""
    bounds = given if given is not None else _implied_bounds(scoring, step, texts)
    if bounds is None:
        raise ValueError(
            f"{name} must be given: the public (low, high) that the score of a unit is clipped "
            "to. The noise is in proportion to their distance."
        )
    if not _is_range(bounds):
        raise ValueError(
            f"{name} must be two finite numbers, low < high, of size {SCORE[1]:g} at most and at "
            f"least {SCORE[0]:g} apart; got {shown(bounds)}."
        )
    return float(bounds[0]), float(bounds[1])


def release_score(
    query: HeldOutScores,
    chunks: HeldOutChunk,
    plan: ReleasePlan,
    *,
    spender: str,
    unit: str,
    accountant: BudgetAccountant | None,
    neighbours: str,
) -> tuple[float, PrivacyReport]:
    """Charge a plan, and release a mean over units; their number first, where it is private."""
    counted = neighbours == "add_remove"
    with DataCurator(
        chunks, plan.before_count() if counted else plan, spender=spender, unit=unit,
        accountant=accountant, neighbours=neighbours,
    ) as curator:  # fmt: skip
        if counted:
            curator.count()
            curator.go_on(plan)
        noisy = float(curator.release("held_out_scores", query)[0])
        return noisy + query.middle, curator.report()


def _is_range(bounds: Any) -> bool:
    if isinstance(bounds, str) or not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
        return False
    if not all(Number(-SCORE[1], SCORE[1]).accepts(bound) for bound in bounds):
        return False
    return float(bounds[1]) - float(bounds[0]) >= SCORE[0]


def _implied_bounds(scoring: Any, step: Any, texts: bool) -> tuple[float, float] | None:
    if scoring == "accuracy":
        return 0.0, 1.0
    if scoring == "log_likelihood_per_token" and texts:
        return math.log(UNKNOWN_WORD), 0.0
    if scoring == "log_likelihood_per_token" and hasattr(step, "n_features_in_"):
        return -WORST_TOKEN * math.log(max(step.n_features_in_, 2)), 0.0
    targets = hooks_of(step)._target_range()
    if isinstance(scoring, str) and scoring in LEAST and targets is not None:
        return LEAST[scoring](float(targets[1]) - float(targets[0])), 0.0
    return None


def _residuals(estimator: Any, X: Any, y: Any) -> Floats:
    found, refused = _predictions(estimator, X)
    return _scored(numbers(entries(y)) - numbers(found.tolist()), refused)


def _predictions(estimator: Any, X: Any) -> tuple[Any, NDArray[np.bool_]]:
    """One for each row; a column of them is taken for it, as scikit-learn does."""
    found, refused = _answers(estimator, estimator.predict, X)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise ValueError(
            f"predict must return one value per row, got an array of {found.ndim} dimensions."
        )
    if found.shape != refused.shape:
        raise ValueError("predict must return one value per row.")  # their number may be private
    return found, refused


def _scored(scores: Any, refused: NDArray[np.bool_]) -> Any:
    """Scores as numbers; NaN where there is none, or where the model refused the row."""
    if scores.ndim == 1 and scores.dtype.kind in "OUS":
        scores = numbers(scores.tolist())
    elif scores.dtype.kind == "c":
        # One such number makes all of the array complex.
        scores = np.where(scores.imag == 0, scores.real, math.nan)
    if scores.shape != refused.shape or not refused.any():
        return scores
    return np.where(refused, math.nan, scores)


def _answers(
    estimator: Any, question: Callable[[Any], Any], X: Any
) -> tuple[Any, NDArray[np.bool_]]:
    texts = _takes_texts(estimator)
    if texts and getattr(X, "ndim", 0) == 1:  # an array or a column of documents
        X = list(X)
    return answers(question, X, documents=isinstance(X, list | tuple) and texts)


def _takes_texts(estimator: Any) -> bool:
    model = getattr(estimator, "best_estimator_", estimator)
    first = model.steps[0][1] if isinstance(model, Pipeline) else model
    try:
        return bool(get_tags(first).input_tags.string)
    except Exception:  # no estimator of scikit-learn's kind
        return False


def _same(found: Any, true: Any) -> bool:
    try:
        return bool(found == true)
    except Exception:  # whatever an object of any class does
        return False
