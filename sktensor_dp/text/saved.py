"""Serialisation schema of a fitted vocabulary."""

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.model_files.container import require
from sktensor_dp.model_files.parameters import NUMBERS
from sktensor_dp.model_files.values import ABSENT, SavedState

Floats = NDArray[np.float64]


@dataclass(kw_only=True)
class SavedVocabulary(SavedState):
    """Words in the order of their columns, and what was released of them."""

    layout = {"words": "d", "document_frequencies_": "d+", "threshold_": "+"}  # noqa: RUF012

    words: NDArray[np.object_]
    fixed_vocabulary_: bool
    document_frequencies_: Floats = ABSENT
    threshold_: float = ABSENT

    @classmethod
    def of(cls, estimator: Any, **rebuilt: Any) -> Self:
        """State of a fitted vectorizer."""
        columns = vars(estimator).get("vocabulary_", {})
        return super().of(estimator, words=sorted(columns, key=columns.get))

    def attributes(self, estimator: Any) -> dict[str, Any]:
        """Fitted attributes, where the vocabulary is learned or given."""
        dtype = estimator.dtype
        # By name: numpy's own reading of a string does more than look it up.
        named = isinstance(dtype, type) or (isinstance(dtype, str) and dtype in NUMBERS)
        require(named, f"dtype must be one of {sorted(NUMBERS)}")
        learned = ABSENT is not self.threshold_ and ABSENT is not self.document_frequencies_
        require(learned != self.fixed_vocabulary_, "a vocabulary is learned, or given")
        # Refuses a pattern of words that is none; on a copy, which keeps what it notes.
        copy.copy(estimator).build_analyzer()
        found = super().attributes(estimator)
        words = found.pop("words").tolist()
        return {**found, "vocabulary_": {word: column for column, word in enumerate(words)}}
