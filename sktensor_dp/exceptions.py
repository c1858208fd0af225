"""Errors and warnings that users may want to catch by name."""

__all__ = ["BudgetError", "NotEnoughDataWarning", "PrivacyLeakWarning"]


class BudgetError(ValueError):
    """A release would cost more than the budget has left; nothing was read or charged."""


class PrivacyLeakWarning(RuntimeWarning):
    """Something chosen by the caller weakens or voids the privacy guarantee."""


class NotEnoughDataWarning(UserWarning):
    """What was released is too noisy for what was asked of it (said from released values only)."""
