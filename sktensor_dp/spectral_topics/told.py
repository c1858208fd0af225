"""What EM steps on releases told so far."""

from dataclasses import dataclass, replace

from sktensor_dp.privacy.curator import Noisy
from sktensor_dp.spectral_topics.released import FittedTopics
from sktensor_dp.tensor.arrays import Floats

# Such a part of what a step tells are the topics that it was given: documents are read by them.
# Without it, noise is larger, and topics do not have to go all of their way step by step. On texts
# parts of .3 and .5 are equally good, and better than none.
ECHO = 0.3


@dataclass(frozen=True, eq=False)
class Told:
    """What steps told so far."""

    scales: Floats | float  # (d,): what counts of each word were divided by
    # (k, d): running mean of the expected counts of all steps, divided so, and its noise
    mean: Floats
    variance: float
    given: Floats  # the same mean of the shares of words and topics that steps were given
    rates: tuple[float, ...]  # what each step counted in the running means when it came

    def after(self, noisy: Noisy, fitted: FittedTopics, rate: float) -> "Told":
        """The same after one more step, on these topics."""
        given = fitted.weights[:, None] * fitted.topics
        return replace(
            self,
            mean=(1 - rate) * self.mean + rate * noisy.value,
            variance=(1 - rate) ** 2 * self.variance + (rate * noisy.sigma) ** 2,
            given=(1 - rate) * self.given + rate * given,
            rates=(*self.rates, rate),
        )

    def words(self) -> tuple[Floats, Floats | float]:
        """Frequencies of words, of which no topic decides anything, and the noise in them."""
        counts = self.scales * self.mean
        total = max(float(counts.sum()), 1e-9)
        sigma = self.scales * (len(counts) * self.variance) ** 0.5
        return counts.sum(axis=0) / total, sigma / total

    def without_echo(self) -> tuple[Floats, float | Floats]:
        """Expected counts less the part that steps were given, and the deviation of their noise."""
        counts: Floats = self.scales * self.mean
        if self.variance == 0:
            return counts, 0.0
        echo = ECHO * float(counts.sum()) * self.given
        return (counts - echo) / (1 - ECHO), self.scales * self.variance**0.5 / (1 - ECHO)
