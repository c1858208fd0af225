"""Forecasts, from public numbers alone, of the noise that a fit would add."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from sktensor_dp.checks.display import Table, TableDisplay, counted
from sktensor_dp.privacy.mechanisms import sigma_of
from sktensor_dp.privacy.plan import COUNT, PrivacyCost, ReleasePlan
from sktensor_dp.queries.query import Query

HEAD = ("release", "sigma", "noise", "signal", "ratio")
MOST_UNITS = 10**9
VERDICTS = ("enough", "may be enough", "likely too few", "too few")
# No forecast advises a larger epsilon: it protects next to nothing.
LARGEST_ADVISED = 10.0


def sigma_of_mean(query: Query, cost: PrivacyCost, n_units: float, neighbours: str) -> float:
    """Deviation of the noise of a query's mean over `n_units`, but for rounding."""
    law = query.laws[cost.epsilon > 0]  # the first one is for a cost in mu
    return sigma_of(law, query.sensitivity(law.norm, neighbours), cost) / n_units


def least_epsilon(reached: Callable[[float], bool]) -> float | None:
    """Least epsilon of three digits, from .01 to 10, with ``reached(epsilon)``; or None."""
    # .0100 to .0999, .100 to .999, 1.00 to 9.99, and LARGEST_ADVISED.
    n_epsilons = 3 * 900 + 1

    def epsilon(number: int) -> float:
        decade, step = divmod(number, 900)
        return round((100 + step) * 10.0 ** (decade - 4), 4)

    number = bisect_left(range(n_epsilons), True, key=lambda number: reached(epsilon(number)))
    return epsilon(number) if number < n_epsilons else None


def least_number(
    reached: Callable[[int], bool], least: int = 1, most: int = MOST_UNITS
) -> int | None:
    """Least number, from `least` to `most`, with ``reached(number)``; or None."""
    # Doubled first: most answers are far below `most`.
    low = high = least
    while high > most or not reached(high):
        if high >= most:
            return None
        low, high = high + 1, min(2 * high, most)
    return low + bisect_left(range(low, high), True, key=reached)


class InvertibleForecast(TableDisplay):
    """Mixin of forecasts that can be asked for the least epsilon, or least data, for a target."""

    _question: "Question | None"

    def _again(self, epsilon: float | None = None, **numbers: object) -> Self:
        """Forecast of the same fit at another epsilon, or for other `numbers` of its question."""
        other = {} if epsilon is None else {"epsilon": epsilon}
        forecast: Self = self._asked().forecast(other, numbers)
        return forecast

    def _asked(self) -> "Question":
        """Question that this forecast answers."""
        if self._question is None:
            raise ValueError("This forecast does not come from forecast() of an estimator.")
        return self._question


@dataclass(frozen=True)
class Question:
    """Parameters of an estimator and public numbers that a forecast was made from."""

    kind: Callable[..., Any]
    parameters: dict[str, Any]
    numbers: dict[str, Any]

    @classmethod
    def of(cls, model: Any, **numbers: Any) -> "Question":
        """Question of a `model`, without what it was fitted to and its accountant."""
        return cls(type(model), {**model.get_params(deep=False), "accountant": None}, numbers)

    def forecast(self, parameters: dict[str, Any], numbers: dict[str, object]) -> Any:
        """Forecast of the question with other `parameters` and `numbers`."""
        model = self.kind(**{**self.parameters, **parameters})
        return model.forecast(**{**self.numbers, **numbers})


@dataclass(frozen=True)
class ReleaseForecast:
    """Expected noise of one release, beside the signal that it must not hide.

    Attributes
    ----------
    name, sigma : str, float
        Name in the catalogue, and standard deviation of the noise along a coordinate.
    noise, signal : float
        Size of the noise, and of the part of the answer that the fit has to see: the operator norm
        of second moments (half of it for topics), the Frobenius norm of third ones, the length of
        the shift of a group's mean, else a coordinate.
    """

    name: str
    sigma: float
    noise: float
    signal: float

    @property
    def ratio(self) -> float:
        """Signal-to-noise ratio; infinite without noise."""
        return self.signal / self.noise if self.noise > 0 else math.inf


@dataclass(frozen=True, repr=False)
class Forecast(InvertibleForecast):
    """Noise of each release, and the number of samples that would be enough.

    Attributes
    ----------
    releases : tuple of ReleaseForecast
        One per release of the plan.
    n_samples, n_components : int
        Samples and components asked about.
    count_sigma : float or None
        Standard deviation of the noise of the number of samples, where that is private.
    law : str
        Sentence on the components that samples are assumed to have.

    Examples
    --------
    >>> from sktensor_dp import PrivateSpectralLDA
    >>> forecast = PrivateSpectralLDA(5, epsilon=1.0).forecast(3000, 2000)
    >>> forecast.verdict
    'may be enough'
    >>> forecast.n_for("enough"), forecast.epsilon_for("enough")
    (6359, 2.27)
    """

    releases: tuple[ReleaseForecast, ...]
    n_samples: int
    n_components: int
    count_sigma: float | None = field(default=None, kw_only=True)
    law: str = field(default="", kw_only=True, repr=False)
    _question: Question | None = field(default=None, kw_only=True, repr=False, compare=False)

    unit: ClassVar[str] = "sample"
    component: ClassVar[str] = "component"  # what one of `n_components` is called
    # Verdicts, each with its least ratio of available to needed samples; a smaller ratio is "too
    # few". On drawn mixtures and directions nine of ten fits agree with the verdict.
    verdicts: ClassVar[tuple[tuple[str, float], ...]] = (
        ("enough", 2.0),
        ("may be enough", 1.0),
        ("likely too few", 0.75),
    )

    @property
    def n_samples_needed(self) -> float:
        """Number of samples from which equally likely components stand out in each release."""
        least = min(release.ratio for release in self.releases)
        return max(math.ceil(self.n_samples / least), self.n_components)

    @property
    def verdict(self) -> str:
        """``"enough"``, ``"may be enough"``, ``"likely too few"`` or ``"too few"``.

        Nine of ten fits turn out as the word says: with enough data four fifths of the components
        are found, with too little half of them at most.
        """
        ratio = self.n_samples / self.n_samples_needed
        return next((word for word, least in self.verdicts if ratio >= least), "too few")

    @property
    def verdict_is_for(self) -> str:
        """Words that follow the verdict: its subject, or its condition; often none."""
        return ""

    @property
    def enough(self) -> bool:
        """True where the verdict on `n_samples` is ``"enough"``."""
        return self.verdict == "enough"

    def epsilon_for(self, verdict: str = "enough") -> float | None:
        """Find the least epsilon for a verdict, with as many samples as were asked about.

        Parameters
        ----------
        verdict : str, default="enough"
            A verdict but ``"too few"``, as the property `verdict` gives it.

        Returns
        -------
        float or None
            From .01 to 10, to three digits; None if 10 is not enough. Costs no privacy.
        """
        reached = self._test_of(verdict)
        return least_epsilon(lambda epsilon: reached(self._again(epsilon=epsilon)))

    def n_for(self, verdict: str = "enough") -> int | None:
        """Find the least number of samples for a verdict, at the estimator's epsilon.

        Parameters
        ----------
        verdict : str, default="enough"
            As for :meth:`epsilon_for`.

        Returns
        -------
        int or None
            At most a billion; None if that is not enough. Costs no privacy.
        """
        reached = self._test_of(verdict)
        return least_number(lambda n: reached(self._again(n_samples=n)))

    def _test_of(self, verdict: str) -> Callable[[Self], bool]:
        """Test of whether a forecast is at least as good as the `verdict`."""
        if verdict not in VERDICTS[:-1]:
            known = ", ".join(map(repr, VERDICTS[:-1]))
            raise ValueError(f"verdict must be one of {known}, got {verdict!r}.")
        return lambda other: VERDICTS.index(other.verdict) <= VERDICTS.index(verdict)

    @property
    def assumptions(self) -> list[str]:
        """Sentences on what is assumed of the data."""
        return [self.law] if self.law else []

    @property
    def _sizes(self) -> str:
        """Sizes asked about, in words."""
        return counted(self.n_samples, self.unit)

    @property
    def _from(self) -> str:
        """Number of samples from which on components are likely to be found, in words."""
        components = counted(self.n_components, self.component)
        return f"all of {components} are likely from about {self.n_samples_needed:,} on"

    def _table(self) -> Table:
        """Noise and signal of each release, with the verdict and what it assumes."""
        needed = "no number would be enough"
        if math.isfinite(self.n_samples_needed):
            needed = self._from
        title = f"{self._sizes}: {self.verdict}{self.verdict_is_for}; {needed}."
        rows = [
            [row.name, *map("{:.3g}".format, (row.sigma, row.noise, row.signal, row.ratio))]
            for row in self.releases
        ]
        return Table(title, HEAD, rows, self._assumed(), HEAD[:1])

    def _assumed(self) -> list[str]:
        """Assumptions of the forecast, a sentence each, for its printed table."""
        if self.count_sigma is None:
            return self.assumptions
        return [
            *self.assumptions,
            f"{self.n_samples:,} is taken for the number that would be released: the true one "
            f"with noise of {self.count_sigma:.3g}.",
        ]


def counted_releases(
    plan: ReleasePlan, pure: bool, neighbours: str
) -> tuple[ReleasePlan, float | None]:
    """Add a noisy count of a private number of units to a plan; return both it and the deviation.

    The deviation is that of the count's noise; for a public number it is None.
    """
    if neighbours != "add_remove":
        return plan, None
    plan = plan.with_count()
    cost = plan.cost_of(COUNT)
    # Laplace or Gaussian noise at the sensitivity 1.
    return plan, math.sqrt(2) / cost.epsilon if pure else 1 / cost.mu
