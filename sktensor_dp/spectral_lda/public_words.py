"""Public frequencies of words and public topics, in the order of the columns of counts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sktensor_dp.checks.errors import call_unquoted
from sktensor_dp.checks.frames import is_table, named_columns
from sktensor_dp.tensor.arrays import Floats

# Least frequency relative to the largest, so that products of frequencies do not underflow.
LEAST = 1e-12


def expected_frequencies(
    given: Mapping[str, float] | ArrayLike, n_features: int, names: Any
) -> Floats:
    """Convert public word frequencies to an array (n_features,) of positive numbers with sum 1.

    A mapping is looked up by the `names` of columns. A word without a frequency gets half of the
    least. ValueError if the shape or a number is wrong.
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


NAME = "public_components"


class DataFrame:
    """Constraint: a data frame in memory, of any library."""

    def accepts(self, value: object) -> bool:
        """True if the value has named columns and is in memory."""
        return is_table(value)

    def __str__(self) -> str:
        return "a data frame"


def public_topics(
    given: Mapping[str, ArrayLike] | ArrayLike, most: int, n_features: int, names: Any
) -> Floats:
    """Convert public topics to an array (n_topics, n_features) of distributions over the columns.

    A data frame or mapping is looked up by the `names` of columns; a word that it lacks is 0 in all
    topics. ValueError if there are more than `most` topics, or a shape or a number is wrong.
    """
    if (by_word := _by_word(given)) is not None:
        if names is None:
            raise ValueError(
                f"{NAME} must be an array in the order of columns where X has no names of columns; "
                "got topics by word. Pass X as a data frame, or "
                "topics.reindex(columns=vectorizer.get_feature_names_out(), "
                "fill_value=0).to_numpy()."
            )
        words, columns = by_word
        places = {word: place for place, word in enumerate(words)}
        # The last row is for words that the topics lack.
        padded = np.vstack([columns, np.zeros((1, columns.shape[1]))])
        given = padded[[places.get(str(name), -1) for name in names]].T
    values = call_unquoted(lambda: np.asarray(given, dtype=np.float64), NAME)
    if values.ndim != 2 or values.shape[1] != n_features:
        raise ValueError(
            f"{NAME} must have a row for each topic and a number in it for each of the "
            f"{n_features} columns; got shape {values.shape}."
        )
    if not 1 <= len(values) <= most:
        raise ValueError(
            f"{NAME} must have at least one topic, and at most as many as n_components and "
            f"columns, {most}; got {len(values)}."
        )
    if not (np.isfinite(values).all() and (values >= 0).all() and values.any(axis=1).all()):
        raise ValueError(
            f"{NAME} must be finite numbers >= 0, with a positive one in every topic, of a word "
            "that is among the columns."
        )
    # First by the maximum: sums of large numbers would overflow.
    values = values / values.max(axis=1, keepdims=True)
    return np.asarray(values / values.sum(axis=1, keepdims=True))


def check_public_topics(given: Any, most: int) -> None:
    """Raise ValueError for public topics that are wrong whatever the columns are."""
    # Only errors are wanted of the topics.
    if (by_word := _by_word(given)) is not None:
        public_topics(given, most, len(by_word[0]), by_word[0])
    else:
        shape = call_unquoted(lambda: np.shape(given), NAME)
        public_topics(given, most, shape[-1] if shape else 0, names=None)


def frequencies_of_topics(topics: Floats) -> Floats:
    """Expected word frequencies: the mean of the topics, at least a tenth of an even share."""
    least_relative = 0.1  # to an even share
    expected = np.maximum(topics.mean(axis=0), least_relative / topics.shape[1])
    return np.asarray(expected / expected.sum())


def _by_word(given: object) -> tuple[list[str], Floats] | None:
    """Words of a mapping or data frame and their values (n_words, n_topics); None for others."""
    if is_table(given):
        named = named_columns(given, NAME)
    elif isinstance(given, Mapping):
        named = list(given.items())
    else:
        return None
    columns = call_unquoted(lambda: np.asarray([one for _, one in named], dtype=np.float64), NAME)
    if columns.ndim != 2:
        raise ValueError(
            f"{NAME} must map each word to a list of its probabilities, one for each topic; got "
            f"values of shape {columns.shape[1:]}."
        )
    words = [str(word) for word, _ in named]
    if len(set(words)) < len(words):
        raise ValueError(f"{NAME} must have every word once; some of its columns are equal.")
    return words, columns
