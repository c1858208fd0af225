"""Fitted estimators in files: what each declares as saved, and how it is written and read."""

from sktensor_dp.model_files.saving import ModelFileMixin, SavedState

__all__ = ["ModelFileMixin", "SavedState"]
