"""Differentially private tensor methods as scikit-learn estimators."""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from sktensor_dp.exceptions import (
    BudgetError,
    DoubtfulParameterWarning,
    LedgerError,
    ModelFileError,
    NotEnoughDataError,
    NotEnoughDataWarning,
    PrivacyLeakWarning,
    StatementError,
    UnprotectedScoreWarning,
    UnsoundClaimWarning,
)

if TYPE_CHECKING:
    from sktensor_dp.completion import (
        PrivateCPCompletion,
        PrivateTuckerCompletion,
        RowIndex,
        UnitParameters,
    )
    from sktensor_dp.data.labels import normalise_labels
    from sktensor_dp.gaussian_mixture import PrivateGaussianMixture
    from sktensor_dp.model_selection import (
        PrivateKFold,
        PrivateSearchCV,
        make_private_scorer,
        scale_by_ranges,
    )
    from sktensor_dp.power_method import PrivateTensorPowerMethod
    from sktensor_dp.privacy.accountant import BudgetAccountant
    from sktensor_dp.privacy.report import PrivacyReport
    from sktensor_dp.privacy.statement import load_statement
    from sktensor_dp.privacy.unsafe import unsafe_recorded_releases, unsafe_seeded_noise
    from sktensor_dp.private_check import check_inputs
    from sktensor_dp.spectral_lda import PrivateSpectralLDA
    from sktensor_dp.text import PrivateCountVectorizer
else:
    # Modules are imported when a name is first used: fits of topics do not load completions.
    _HOMES = {
        "BudgetAccountant": "privacy.accountant",
        "PrivacyReport": "privacy.report",
        "PrivateCPCompletion": "completion",
        "PrivateCountVectorizer": "text",
        "PrivateGaussianMixture": "gaussian_mixture",
        "PrivateKFold": "model_selection",
        "PrivateSearchCV": "model_selection",
        "PrivateSpectralLDA": "spectral_lda",
        "PrivateTensorPowerMethod": "power_method",
        "PrivateTuckerCompletion": "completion",
        "RowIndex": "completion",
        "UnitParameters": "completion",
        "check_inputs": "private_check",
        "load_statement": "privacy.statement",
        "make_private_scorer": "model_selection",
        "normalise_labels": "data.labels",
        "scale_by_ranges": "model_selection",
        "unsafe_recorded_releases": "privacy.unsafe",
        "unsafe_seeded_noise": "privacy.unsafe",
    }

    def __getattr__(name: str) -> object:
        if name in _HOMES:
            found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
            globals()[name] = found  # the next time it is here
            return found
        if name.startswith("_") or find_spec(f"{__name__}.{name}") is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOMES, *(room.name for room in iter_modules(__path__))})


__version__ = "0.1.0"

__all__ = [
    "BudgetAccountant",
    "BudgetError",
    "DoubtfulParameterWarning",
    "LedgerError",
    "ModelFileError",
    "NotEnoughDataError",
    "NotEnoughDataWarning",
    "PrivacyLeakWarning",
    "PrivacyReport",
    "PrivateCPCompletion",
    "PrivateCountVectorizer",
    "PrivateGaussianMixture",
    "PrivateKFold",
    "PrivateSearchCV",
    "PrivateSpectralLDA",
    "PrivateTensorPowerMethod",
    "PrivateTuckerCompletion",
    "RowIndex",
    "StatementError",
    "UnitParameters",
    "UnprotectedScoreWarning",
    "UnsoundClaimWarning",
    "check_inputs",
    "load_statement",
    "make_private_scorer",
    "normalise_labels",
    "scale_by_ranges",
    "unsafe_recorded_releases",
    "unsafe_seeded_noise",
]
