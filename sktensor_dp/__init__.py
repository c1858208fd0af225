"""Differentially private tensor methods as scikit-learn estimators."""

import sktensor_dp._former_paths  # noqa: F401
from sktensor_dp.completion import PrivateCPCompletion, PrivateTuckerCompletion
from sktensor_dp.exceptions import (
    BudgetError,
    LedgerError,
    ModelFileError,
    NotEnoughDataError,
    NotEnoughDataWarning,
    PrivacyLeakWarning,
    StatementError,
    UnsoundClaimWarning,
)
from sktensor_dp.model_selection import PrivateSearchCV, make_private_scorer
from sktensor_dp.power_method import PrivateTensorPowerMethod
from sktensor_dp.privacy.accountant import BudgetAccountant
from sktensor_dp.privacy.noise import config_context, unsafe_seeded_noise
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.spectral_lda import PrivateSpectralLDA
from sktensor_dp.text import PrivateCountVectorizer

__version__ = "0.2.0"

__all__ = [
    "BudgetAccountant",
    "BudgetError",
    "LedgerError",
    "ModelFileError",
    "NotEnoughDataError",
    "NotEnoughDataWarning",
    "PrivacyLeakWarning",
    "PrivacyReport",
    "PrivateCPCompletion",
    "PrivateCountVectorizer",
    "PrivateSearchCV",
    "PrivateSpectralLDA",
    "PrivateTensorPowerMethod",
    "PrivateTuckerCompletion",
    "StatementError",
    "UnsoundClaimWarning",
    "config_context",
    "make_private_scorer",
    "unsafe_seeded_noise",
]
