"""Forecasts, from public numbers alone, of what scores, a search and its trials can show."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sktensor_dp.checks.display import counted
from sktensor_dp.estimator.forecast import sigma_of_mean
from sktensor_dp.model_selection.pipeline_steps import parameters_in_words
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.queries.held_out import HeldOutScores

# The larger of two scores that are so many deviations of noise apart wins 19 times in 20.
APART = 1.645 * math.sqrt(2)


def sigma_of_score(
    cost: PrivacyCost, n_scored: int, bounds: tuple[float, float], neighbours: str
) -> float:
    """Deviation of the noise of a mean score over `n_scored` units."""
    return sigma_of_mean(HeldOutScores(lambda X, y: y, *bounds), cost, n_scored, neighbours)


@dataclass(frozen=True)
class ScoreForecast:
    """Noise of a score that is released.

    Attributes
    ----------
    n_scored : int
        Units that the score is a mean over.
    score_sigma, width : float
        Standard deviation of the score's noise, and width of its bounds.
    """

    n_scored: int
    score_sigma: float
    width: float

    @property
    def told_apart(self) -> float:
        """Distance of two candidates' scores from which the better one wins 19 times in 20."""
        return APART * self.score_sigma

    @property
    def is_noise(self) -> bool:
        """True if noise hides the difference of any two scores within their bounds."""
        return self.told_apart > self.width

    def __str__(self) -> str:
        noise = " Noise decides: score more units, with tighter bounds or a larger epsilon."
        return (
            f"A mean over {counted(self.n_scored, 'unit')} has noise of deviation "
            f"{self.score_sigma:.2g}, and of two models the better one wins 19 times in 20 if "
            f"their scores differ by {self.told_apart:.2g}, of a range of {self.width:.3g}."
            f"{noise * self.is_noise}"
        )


@dataclass(frozen=True)
class SearchForecast(ScoreForecast):
    """Noise of a search's scores, chances of its number of trials, and what a trial can show.

    Attributes
    ----------
    n_scored : int
        Units that the score of a trial is a mean over.
    score_sigma, width : float
        Standard deviation of the noise of a trial's score, and width of the score's bounds.
    fit_epsilon : float
        Epsilon of a fit in a trial, at the search's delta.
    n_fitted : int
        Units that a trial fits to.
    stop : float
        Probability that a trial is the last one.
    verdicts : tuple of (dict, str)
        Candidates, with the ``verdict`` of the estimator's own forecast on a trial's fit; for a
        completion, whether it finds components, if asked for any. Empty where there is none, or
        the number of columns or the shape is unknown; of many candidates some.
    assumed : tuple of str
        Sentences on what these forecasts assume of the data.
    """

    fit_epsilon: float
    n_fitted: int
    stop: float
    verdicts: tuple[tuple[Mapping[str, object], str], ...]
    assumed: tuple[str, ...]

    @property
    def shows_nothing(self) -> bool:
        """True where each trial's own forecast calls its data too few, or sees no components."""
        verdicts = {verdict for _, verdict in self.verdicts}
        return bool(verdicts) and verdicts <= {"likely too few", "too few", "likely no components"}

    def __str__(self) -> str:
        sentences = [
            f"Each trial fits {counted(self.n_fitted, 'unit')} at epsilon {self.fit_epsilon:.3g} "
            f"and scores {self.n_scored:,}.",
            f"Of two candidates the better one wins 19 times in 20 if their scores differ by "
            f"{self.told_apart:.2g}, of a range of {self.width:.3g}; half as wide score_bounds "
            "halve that, and what is beyond them is cut.",
            f"With a chance of {self.stop:.0%} there is one trial alone.",
        ]
        for verdict in dict.fromkeys(verdict for _, verdict in self.verdicts):
            sentences.append(f"Forecast of a trial's fit: {verdict} for {self._named(verdict)}.")
        sentences += self.assumed
        if self.is_noise or self.shows_nothing:
            why = "Noise decides" if self.is_noise else "No trial shows what it is asked for"
            other = ", tighter score_bounds" if self.is_noise else ", other forecast_options"
            sentences.append(
                f"{why}: choose on public data, or search with more units{other}, a larger "
                "epsilon or fewer trials."
            )
        return " ".join(sentences)

    def _named(self, verdict: str) -> str:
        """Candidates of a verdict, by their parameters."""
        candidates = []
        for params, verdict_of in self.verdicts:
            if verdict_of == verdict:
                candidates.append(parameters_in_words(params))
        return "; ".join(candidates)
