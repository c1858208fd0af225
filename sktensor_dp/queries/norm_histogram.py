"""Query for a histogram of norms: of samples, or of what a unit adds to sums of counts."""

from dataclasses import dataclass
from typing import Any

from sktensor_dp.queries.clips import Clip, Norm, unit_factors
from sktensor_dp.queries.laws import GAUSSIAN, LAPLACE
from sktensor_dp.queries.query import NormBins
from sktensor_dp.tensor.arrays import Floats


@dataclass(frozen=True, eq=False)
class NormHistogram(NormBins):
    """Histogram by `norm`, after `clips`, of units with a document of at least `min_tokens`."""

    # It reads chunks of counts; and of samples, texts and shares, without clips and tokens.
    name, family = "norm_histogram", "counts"
    description = "share of units in each bin of a norm, from which a clip is chosen"
    laws = (GAUSSIAN, LAPLACE)

    norm: Norm
    edges: Floats
    clips: tuple[Clip, ...] = ()
    min_tokens: int = 0

    def total(self, chunk: Any) -> Floats:
        """Number of units of `chunk` in each bin, of shape (n_edges - 1,)."""
        norms = self.norm.of(chunk)
        if self.clips:
            norms = unit_factors(chunk, self.clips) * norms
        if self.min_tokens > 0:
            norms = norms[chunk.units.any(chunk.lengths >= self.min_tokens)]
        return self.histogram(norms)
