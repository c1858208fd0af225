"""Statistics of rows in each Gaussian of a mixture: responsibilities, and clipped whitened rows."""

from typing import NamedTuple

import numpy as np

from sktensor_dp.mixtures.gaussians import log_odds, responsibilities
from sktensor_dp.tensor.arrays import Floats


class ClippedRows(NamedTuple):
    """Whitened rows of k Gaussians, clipped to a limit."""

    shares: Floats  # (n, k): responsibilities
    clipped: Floats  # (k, n, q)
    lengths: Floats  # (n, k): before the clip
    limit: float

    def sums(self, reach: float, row_weights: Floats) -> Floats:
        """Weighted sums (k, 1 + q + q * q) of responsibilities r, r y and r yy'.

        Rows y are clipped to the limit in yy', and to `reach` limits in r y.
        """
        k, _, q = self.clipped.shape
        shares, sums = self.shares * row_weights[:, None], np.empty((k, 1 + q + q * q))
        # `clipped` times this is clipped to `reach` limits.
        shares_in_shifts = shares * np.clip(self.lengths / self.limit, 1.0, reach)
        weighted = self.clipped * shares.T[:, :, None]
        sums[:, 0] = shares.sum(axis=0)
        sums[:, 1 : 1 + q] = (shares_in_shifts.T[:, None] @ self.clipped)[:, 0]
        sums[:, 1 + q :] = (weighted.swapaxes(1, 2) @ self.clipped).reshape(k, -1)
        return sums


def clipped_rows(whitened: Floats, log_scales: Floats, limit: float, slopes: Floats) -> ClippedRows:
    """Clip `whitened` rows (n, k, q), and find their responsibilities.

    `log_scales` (k,) are logarithms of weights times densities at means; `slopes` (k, q) as in
    `log_odds`.
    """
    lengths = np.sqrt(np.einsum("nkq,nkq->nk", whitened, whitened))
    clips = limit / np.maximum(lengths, limit)
    clipped = np.ascontiguousarray((whitened * clips[:, :, None]).swapaxes(0, 1))
    shares = responsibilities(log_scales + log_odds(whitened, slopes))
    return ClippedRows(shares, clipped, lengths, limit)
