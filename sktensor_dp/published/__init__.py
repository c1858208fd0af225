"""The papers' algorithms as printed, each with a verdict on what it claims.

They are baselines. They charge no accountant and are not estimators: what the
library stands behind are the counterparts that each claim names.
"""

from sktensor_dp.published.agn_avn import PublishedTopics, agn, avn
from sktensor_dp.published.claim import Claim
from sktensor_dp.published.completion import (
    PublishedCompletion,
    gradient_perturbation,
    input_perturbation,
    output_perturbation,
)
from sktensor_dp.published.dp_tpm import dp_tpm
from sktensor_dp.published.power_method import (
    PublishedComponents,
    online_tensor_power_method,
    private_tensor_power_method,
)

__all__ = [
    "Claim",
    "PublishedCompletion",
    "PublishedComponents",
    "PublishedTopics",
    "agn",
    "avn",
    "dp_tpm",
    "gradient_perturbation",
    "input_perturbation",
    "online_tensor_power_method",
    "output_perturbation",
    "private_tensor_power_method",
]
