"""Counting words that are split already, against scikit-learn's counts."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from sktensor_dp.queries.text import WordCounts
from sktensor_dp.text.documents import count_words


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.int8])
def test_counts_are_those_of_count_vectorizer(binary, dtype, seed):
    rng = np.random.default_rng(seed)
    words = np.array([f"w{i}" for i in range(12)])
    documents = [list(map(str, rng.choice(words, n))) for n in rng.integers(0, 20, 50)]
    documents[3] = documents[-1] = []
    columns = {str(word): column for column, word in enumerate(words[:8])}
    expected = CountVectorizer(
        analyzer=list, vocabulary=columns, lowercase=False, binary=binary, dtype=dtype
    ).transform(documents)
    found = count_words(WordCounts.of(documents), columns, binary=binary, dtype=dtype)
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert found.indices.dtype == expected.indices.dtype
    assert found.has_canonical_format
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))


def test_documents_without_words_have_empty_rows():
    found = count_words(WordCounts.of([[], []]), {"cat": 0}, binary=False, dtype=np.int64)
    assert found.shape == (2, 1)
    assert found.nnz == 0
