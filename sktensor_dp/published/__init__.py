"""The papers' algorithms as printed, each with a verdict on what it claims.

They are baselines that charge no accountant. Every algorithm returns a result with a
:class:`Claim`, and warns with ``UnsoundClaimWarning`` if that does not hold.
"""

from sktensor_dp.published.claims import Claim, claims
from sktensor_dp.published.completion import (
    PublishedCompletion,
    gradient_perturbation,
    input_perturbation,
    output_perturbation,
)
from sktensor_dp.published.power_method import (
    PublishedComponents,
    online_tensor_power_method,
    private_tensor_power_method,
    robust_tensor_power_method,
)
from sktensor_dp.published.single_topic import (
    PublishedTopics,
    WhitenedMoments,
    agn,
    agn_of_words,
    avn,
    avn_of_words,
    dp_tpm,
)
from sktensor_dp.published.spectral_lda import dp_spectral_lda

__all__ = [
    "Claim",
    "PublishedCompletion",
    "PublishedComponents",
    "PublishedTopics",
    "WhitenedMoments",
    "agn",
    "agn_of_words",
    "avn",
    "avn_of_words",
    "claims",
    "dp_spectral_lda",
    "dp_tpm",
    "gradient_perturbation",
    "input_perturbation",
    "online_tensor_power_method",
    "output_perturbation",
    "private_tensor_power_method",
    "robust_tensor_power_method",
]
