"""Differentially private tensor methods as scikit-learn estimators."""

from sktensor_dp.completion import PrivateCPCompletion, PrivateTuckerCompletion
from sktensor_dp.exceptions import BudgetError, NotEnoughDataWarning, PrivacyLeakWarning
from sktensor_dp.power_method import PrivateTensorPowerMethod
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.noise import config_context, unsafe_seeded_noise
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.spectral_lda import PrivateSpectralLDA
from sktensor_dp.text import PrivateCountVectorizer

__version__ = "0.1.0"

__all__ = [
    "BudgetAccountant",
    "BudgetError",
    "NotEnoughDataWarning",
    "PrivacyLeakWarning",
    "PrivacyReport",
    "PrivateCPCompletion",
    "PrivateCountVectorizer",
    "PrivateSpectralLDA",
    "PrivateTensorPowerMethod",
    "PrivateTuckerCompletion",
    "config_context",
    "unsafe_seeded_noise",
]
