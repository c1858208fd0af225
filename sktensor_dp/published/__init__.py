"""The papers' algorithms as printed, each with a verdict on what it claims.

They are baselines. They charge no accountant and are not estimators: what the
library stands behind are the counterparts that each claim names.
"""

from sktensor_dp.published.agn_avn import PublishedTopics, agn, avn
from sktensor_dp.published.claim import Claim

__all__ = ["Claim", "PublishedTopics", "agn", "avn"]
