"""Forecasts, from public numbers alone, of what scores, a search and its trials can show."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sktensor_dp.checks.display import Table, TableDisplay, counted, plain
from sktensor_dp.estimator.forecast import sigma_of_mean
from sktensor_dp.model_selection.pipeline_steps import parameters_in_words
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.queries.held_out import HeldOutScores

# The larger of two scores that are so many deviations of noise apart wins 19 times in 20.
APART = 1.645 * math.sqrt(2)
HEAD = ("of trials", "expected")


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


@dataclass(frozen=True, repr=False)
class SearchForecast(TableDisplay, ScoreForecast):
    """Noise of a search's scores, chances of its number of trials, and what a trial can show.

    Attributes
    ----------
    n_scored : int
        Units that the score of a trial is a mean over.
    score_sigma, width : float
        Standard deviation of the noise of a trial's score, and width of the score's bounds.
    epsilon, delta : float
        Charge of the whole search.
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
        Sentences on what these forecasts assume of the data, with the candidates they are for.
    """

    epsilon: float
    delta: float
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

    def _table(self) -> Table:
        """Charge, trials, least difference of scores, and candidates by their verdict."""
        units = counted(self.n_fitted + self.n_scored, "unit")
        delta = f" at delta {plain(self.delta)}" if self.delta else ""
        rows = [
            ("trials", f"{1 / self.stop:.3g} on average, in {self.stop:.0%} of searches one alone"),
            ("fitted units", f"{self.n_fitted:,}, at epsilon {self.fit_epsilon:.3g}"),
            ("scored units", f"{self.n_scored:,}, with noise of deviation {self.score_sigma:.2g}"),
            ("told apart", f"in 19 of 20, if {self.told_apart:.2g} apart, of a range of "
                           f"{self.width:.3g}"),
        ]  # fmt: skip
        for verdict in dict.fromkeys(verdict for _, verdict in self.verdicts):
            said = [parameters_in_words(one) for one, of_it in self.verdicts if of_it == verdict]
            rows += zip([verdict, *[""] * (len(said) - 1)], said, strict=True)
        notes = [
            "Told apart: the better of two candidates wins. Half as wide score_bounds halve the "
            "noise, and cut what is beyond them."
        ]
        if self.is_noise or self.shows_nothing:
            why = "Noise decides" if self.is_noise else "No trial shows what it is asked for"
            other = ", tighter score_bounds" if self.is_noise else ", other forecast_options"
            notes.append(
                f"{why}: choose on public data, or search with more units{other}, a larger "
                "epsilon or fewer trials."
            )
        title = f"Search of {units}, charged once: epsilon {self.epsilon:.4g}{delta}."
        return Table(title, HEAD, rows, [*notes, *self.assumed], HEAD)
