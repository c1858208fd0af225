"""Public frequencies of words, in the order of the columns of counts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.queries.error_sanitising import read
from sktensor_dp.tensor.arrays import Floats

# Of the least frequency that is given, for words that have none.
UNSEEN = 0.5
# Below it a share of the largest is taken for it: products of frequencies do not vanish.
LEAST = 1e-12


def expected_frequencies(
    given: Mapping[str, float] | ArrayLike, n_features: int, names: Any
) -> Floats:
    """Positive frequencies of sum 1 for each column, or ValueError.

    A mapping is by names of columns. A word without a frequency gets half of the least one.
    """
    if isinstance(given, Mapping):
        if names is None:
            raise ValueError(
                "word_frequencies must be an array in the order of columns where X has no names of "
                "columns; got a mapping. Pass a data frame, or "
                "[frequencies.get(word, 0) for word in vectorizer.get_feature_names_out()]."
            )
        given = [given.get(str(name), 0.0) for name in names]
    values = read(lambda: np.asarray(given, dtype=np.float64), "word_frequencies")
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
    least = max(UNSEEN * float(values[values > 0].min()), LEAST)
    values = np.where(values > 0, np.maximum(values, LEAST), least)
    return np.asarray(values / values.sum())
