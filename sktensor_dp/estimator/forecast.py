"""Forecasts, from public numbers alone, of the noise that a fit would add."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

from sktensor_dp.privacy.plan import COUNT, ReleasePlan
from sktensor_dp.privacy.tables import Shown, Table

HEAD = ("release", "sigma", "noise", "signal", "ratio")


@dataclass(frozen=True)
class ReleaseForecast:
    """Expected noise of one release, beside the signal that it must not hide.

    Attributes
    ----------
    name : str
        Name in the catalogue.
    sigma : float
        Standard deviation of the noise along a coordinate.
    noise : float
        Size of the noise in the norm that matters: operator norm for the second
        moment, Frobenius norm for the third, one coordinate otherwise.
    signal : float
        Size, in the same norm, of the part of the answer that the fit has to see.
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
class Forecast(Shown):
    """Noise of each release, and the number of samples that would be enough.

    Attributes
    ----------
    releases : tuple of ReleaseForecast
        One per release of the plan.
    n_samples : int
        Samples asked about.
    n_samples_needed : int
        Samples from which ``n_components`` equally likely components stand out from the
        noise of the release with the lowest ratio of signal to noise.
    n_components : int
        Components asked about.
    count_sigma : float or None
        Standard deviation of the noise of the number of samples, where that is private and
        a fit would release it; ``n_samples`` then stands for the released number.
    """

    releases: tuple[ReleaseForecast, ...]
    n_samples: int
    n_samples_needed: int
    n_components: int
    count_sigma: float | None = field(default=None, kw_only=True)

    _page = "tuning.html"
    unit: ClassVar[str] = "samples"
    # Verdicts, each from so many times the samples needed; below the last, "too few".
    verdicts: ClassVar[tuple[tuple[str, float], ...]] = (("enough", 1.0),)

    @property
    def verdict(self) -> str:
        """``"enough"`` or ``"too few"``; of topics also ``"may be enough"``, ``"likely too few"``.

        Nine of ten fits turn out as the word says.
        """
        ratio = self.n_samples / self._typically_needed()
        return next((said for said, least in self.verdicts if ratio >= least), "too few")

    @property
    def enough(self) -> bool:
        """True where the verdict on `n_samples` is ``"enough"``."""
        return self.verdict == "enough"

    def _typically_needed(self) -> float:
        """Number of samples that the factors of `verdicts` multiply."""
        return float(self.n_samples_needed)

    def _table(self) -> Table:
        said = (
            f"{self.n_samples} {self.unit}: {self.verdict}; the least that {self.n_components} "
            f"components need is about {self.n_samples_needed}."
        )
        rows = [
            [r.name, *(f"{number:.3g}" for number in (r.sigma, r.noise, r.signal, r.ratio))]
            for r in self.releases
        ]
        return Table(said, HEAD, rows, self._assumed(), HEAD[:1])

    def _assumed(self) -> list[str]:
        """Assumptions of the forecast, a sentence each, for its printed table."""
        if self.count_sigma is None:
            return []
        return [
            f"{self.n_samples} is taken for the number that would be released: the true one "
            f"with noise of {self.count_sigma:.3g}."
        ]


def counted_releases(
    plan: ReleasePlan, pure: bool, neighbours: str
) -> tuple[ReleasePlan, float | None]:
    """Plan with a noisy count of units first, and the deviation of its noise, for "add_remove".
    For other `neighbours` the plan itself and None. `pure` is True for Laplace noise.
    """
    if neighbours != "add_remove":
        return plan, None
    plan = plan.counted()
    cost = plan.cost_of(COUNT)
    return plan, math.sqrt(2) / cost.epsilon if pure else 1 / cost.mu
