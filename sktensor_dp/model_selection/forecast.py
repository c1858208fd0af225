"""Forecast, from public numbers alone, of what a search can tell apart."""

import math
from dataclasses import dataclass

from sktensor_dp.checks.display import counted
from sktensor_dp.model_selection.costs import TrialCosts
from sktensor_dp.queries.scores import HeldOutScores

# Part of implied bounds in which scores of models lie that learn: values deviate by a quarter of
# their range, and words are predicted no worse than if all were equally likely.
LEARNING = {
    "neg_mean_squared_error": 1 / 16,
    "neg_mean_absolute_error": 1 / 4,
    "log_likelihood_per_token": 1 / 2,
}
# Part of this in which numbers of topics or components differ: components have .08 of the variance
# of film ratings, and ten topics .04 of the log-likelihood of newsgroups.
SPREAD = 0.05
# The larger of two scores that are so many deviations of noise apart wins 19 times in 20.
APART = 1.645 * math.sqrt(2)


@dataclass(frozen=True)
class SearchForecast:
    """Noise of a search's scores, beside the spread that scores of candidates have.

    Attributes
    ----------
    fit_epsilon : float
        Epsilon of a fit in a trial, at the search's delta.
    n_fitted, n_scored : int
        Units that a trial fits to, and that each of its scores is a mean over.
    score_sigma : float
        Standard deviation of the noise of a trial's score.
    spread : float
        Typical distance of scores where numbers of topics or components are searched over.
    """

    fit_epsilon: float
    n_fitted: int
    n_scored: int
    score_sigma: float
    spread: float

    @classmethod
    def of(
        cls, costs: TrialCosts, delta: float, n_units: int, split: tuple[int | None, float],
        bounds: tuple[float, float], neighbours: str, part: float,
    ) -> "SearchForecast":  # fmt: skip
        """Forecast for `n_units` and a `split` (cv, test_size); `part` of the bounds is in use."""
        n_folds, test_size = split
        n_scored = max(round(n_units * test_size) if n_folds is None else n_units // n_folds, 1)
        query = HeldOutScores(lambda X, y: y, *bounds)
        moved = query.sensitivity("l1" if delta == 0 else "l2", neighbours) / n_scored
        by_cost = math.sqrt(2) / costs.score.epsilon if delta == 0 else 1 / costs.score.mu
        sigma = moved * by_cost / math.sqrt(n_folds or 1)
        return cls(
            costs.fit.epsilon_at(delta), n_units - n_scored, n_scored, sigma,
            SPREAD * part * (bounds[1] - bounds[0]),
        )  # fmt: skip

    @property
    def told_apart(self) -> float:
        """Distance of two candidates' scores from which the better one wins 19 times in 20."""
        return APART * self.score_sigma

    @property
    def is_noise(self) -> bool:
        """True where scores of candidates typically are too near to be told apart."""
        return self.told_apart > self.spread

    def __str__(self) -> str:
        verdict = (
            "noise decides. Choose on public data, or search with more units, a larger epsilon, "
            "fewer trials or tighter score_bounds"
            if self.is_noise
            else "told apart"
        )
        return (
            f"Each trial fits {counted(self.n_fitted, 'unit')} at epsilon {self.fit_epsilon:.3g} "
            f"and scores {self.n_scored:,}. Of two candidates the better one wins 19 times in 20 "
            f"if their scores differ by {self.told_apart:.2g}; numbers of topics or components "
            f"typically differ by {self.spread:.2g}: {verdict}."
        )
