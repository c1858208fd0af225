"""Public frequencies of words, in the order of the columns of counts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.checks.errors import call_unquoted
from sktensor_dp.tensor.arrays import Floats

# Least frequency relative to the largest, so that products of frequencies do not underflow.
LEAST = 1e-12


def public_frequencies(
    given: Mapping[str, float] | ArrayLike, n_features: int, names: Any
) -> Floats:
    """Convert public word frequencies to an array (n_features,) of positive numbers with sum 1.

    A mapping is looked up by the `names` of columns. A word without a frequency gets about half
    of the least. ValueError if the shape or a number is wrong.
    """
    # Frequency of words without a given one, relative to the least given.
    unseen = 0.5
    if isinstance(given, Mapping):
        if names is None:
            raise ValueError(
                "word_frequencies must be an array in the order of columns where X has no names of "
                "columns; got a mapping. Pass a data frame, or "
                "[frequencies.get(word, 0) for word in vectorizer.get_feature_names_out()]."
            )
        given = [given.get(str(name), 0.0) for name in names]
    values = call_unquoted(lambda: np.asarray(given, dtype=np.float64), "word_frequencies")
    if values.shape != (n_features,):
        raise ValueError(
            f"word_frequencies must have one number for each of the {n_features} columns, in an "
            f"array of shape ({n_features},); got shape {values.shape}."
        )
    positive = values[values > 0]
    if not (np.isfinite(values).all() and (values >= 0).all() and positive.size):
        raise ValueError(
            "word_frequencies must be finite numbers >= 0, and at least one of them positive, of a "
            "word that is among the columns."
        )
    values = np.clip(values / positive.max(), 0.0, 1.0)
    least = max(unseen * float(values[values > 0].min()), LEAST)
    values = np.where(values > 0, np.maximum(values, LEAST), least)
    return np.asarray(values / values.sum())
