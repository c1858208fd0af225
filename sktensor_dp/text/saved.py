"""What of a fitted vocabulary is saved."""

import copy
from types import SimpleNamespace
from typing import Any

import numpy as np

from sktensor_dp.model_files.fields import Flag, Numbers, Optional, Real, Words, require
from sktensor_dp.model_files.parameters import NUMBERS
from sktensor_dp.model_files.saving import SavedState


class Columns(Words):
    """A mapping of words to columns, as the words in the order of these."""

    def __init__(self) -> None:
        super().__init__(lambda words: {word: column for column, word in enumerate(words)}, "d")

    def write(self, value: Any, arrays: Any, where: str) -> list[str]:
        """Return the words of columns 0, 1, ..."""
        return super().write(sorted(value, key=value.get), arrays, where)


def _check(state: SimpleNamespace, estimator: Any) -> None:
    dtype = estimator.dtype
    # By name: numpy's own reading of a string does more than look it up.
    named = isinstance(dtype, type) or (isinstance(dtype, str) and dtype in NUMBERS)
    require(named, f"dtype must be one of {sorted(NUMBERS)}")
    frequencies = getattr(state, "document_frequencies_", None)
    learned = frequencies is not None and getattr(state, "threshold_", None) is not None
    require(learned != state.fixed_vocabulary_, "a vocabulary is learned, or given")
    # Refuses a pattern of words that is none; on a copy, which keeps what it notes.
    copy.copy(estimator).build_analyzer()


SAVED_VOCABULARY = SavedState(
    {
        "vocabulary_": Columns(), "fixed_vocabulary_": Flag(),
        "document_frequencies_": Optional(Numbers("d", 0.0, np.finfo(float).max)),
        "threshold_": Optional(Real(0, finite=False)),
    },
    _check,
    {},
)  # fmt: skip
