"""Errors and warnings that users may want to catch by name."""

from typing import Any


class BudgetError(ValueError):
    """A release would cost more than the budget has left; nothing was computed or charged."""


class LedgerError(BudgetError):
    """The ledger cannot be read or written, so nothing may be released."""


class ModelFileError(ValueError):
    """A file does not hold a model that can be loaded; nothing of it was used."""


class NotEnoughDataError(ValueError):
    """Public numbers, or values released before, show that nothing useful can be released.

    Attributes
    ----------
    check : InputCheck or None
        What :func:`check_inputs` released before it raised this, such as its ``fractions``.
    privacy_report_ : PrivacyReport
        Report of what was paid before, as all errors after a charge have it.
    """

    check: Any = None


class StatementError(ValueError):
    """A privacy statement cannot be read, or does not add up; each reason on a line of its own."""


class PrivacyLeakWarning(RuntimeWarning):
    """Something chosen by the caller weakens or voids the privacy guarantee."""


class UnsoundClaimWarning(PrivacyLeakWarning):
    """A published algorithm was run whose privacy claim does not hold."""


class UnprotectedScoreWarning(UserWarning):
    """A score is computed from rows without noise; issued once in a process."""


class NotEnoughDataWarning(UserWarning):
    """Too little data for the model asked for; judged from released and public values only."""


class DoubtfulParameterWarning(UserWarning):
    """A parameter, such as bounds or names, may not be meant; judged from released values only."""
