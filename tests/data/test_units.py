"""Units of several rows: means against loops, labels, their order, and caps on rows."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sktensor_dp import normalise_labels
from sktensor_dp.data.labels import as_labels, digests, distinct
from sktensor_dp.data.samples import SampleChunks
from sktensor_dp.data.sums import ROWS_AT_ONCE
from sktensor_dp.data.units import Units, in_order


def some_units(rng):
    sizes = rng.integers(1, 6, int(rng.integers(1, 30)))
    return Units(np.append(0, np.cumsum(sizes)))


def slices(units):
    return [slice(*ends) for ends in zip(units.starts[:-1], units.starts[1:], strict=True)]


def test_means_sums_and_shares_are_those_of_loops(seed):
    rng = np.random.default_rng(seed)
    for units in (Units.single(9), *(some_units(rng) for _ in range(10))):
        n_rows = int(units.starts[-1])
        values, X = rng.standard_normal(n_rows), rng.poisson(0.5, (n_rows, 4))
        flags, factors = rng.random(n_rows) < 0.3, rng.random(units.n)
        parts = slices(units)
        assert units.n == len(parts)
        np.testing.assert_allclose(units.means(values), [values[p].mean() for p in parts])
        found = units.sums(sp.csr_matrix(X, dtype=float))
        np.testing.assert_array_equal(found.toarray(), [X[p].sum(axis=0) for p in parts])
        np.testing.assert_array_equal(units.any(flags), [flags[p].any() for p in parts])
        weighted = units.row_weights(factors) * values
        expected = [f * values[p].mean() for f, p in zip(factors, parts, strict=True)]
        np.testing.assert_allclose([weighted[p].sum() for p in parts], expected, rtol=1e-12)
        if units.n == n_rows:  # single rows are units without a rounding
            np.testing.assert_array_equal(units.means(values), values)
            np.testing.assert_array_equal(units.row_weights(factors), factors)


# Labels


def kinds_of(numbers):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    words = [f"w{number:03d}" for number in numbers]
    return {
        "list": list(numbers), "tuple": tuple(numbers), "int8": np.array(numbers, np.int8),
        "uint64": np.array(numbers, np.uint64), "objects": np.array(numbers, object),
        "numpy integers": [np.int32(number) for number in numbers],
        "Series": pandas.Series(numbers), "Int64": pandas.Series(numbers, dtype="Int64"),
        "categories": pandas.Series(numbers, dtype="category"), "polars": polars.Series(numbers),
        "not masked": np.ma.array(numbers), "words": words, "array of words": np.array(words),
        "objects of words": np.array(words, object), "Series of words": pandas.Series(words),
        "string": pandas.Series(words, dtype="string"), "polars words": polars.Series(words),
        "categories of words": pandas.Series(words, dtype="category"),
        "beyond 53 bits": [2**53 + number for number in numbers],
        "beyond 63 bits": np.array([2**63 + number for number in numbers], np.uint64),
        "on both sides of 63 bits": [2**63 - 5 + number for number in numbers],
        "beyond 64 bits": [2**70 + number for number in numbers],
        "negative": [number - 2**64 for number in numbers],
        "UInt64": pandas.Series([2**63 + number for number in numbers], dtype="UInt64"),
        "a long word": [word + "x" * 10**5 * (word == words[0]) for word in words],
        "lone surrogates": [f"\ud800{number}" for number in numbers],
    }  # fmt: skip


def test_labels_of_every_kind_make_the_same_groups(seed):
    numbers = np.random.default_rng(seed).integers(0, 9, 40).tolist()
    _, expected = np.unique(numbers, return_inverse=True)
    for labels in kinds_of(numbers).values():
        found = as_labels(labels, 40)
        names, places = distinct(found)
        np.testing.assert_array_equal(places, expected)
        assert len(names) == len(set(np.asarray(labels, object).tolist()))
        # In a partition of workers as in another: by the label alone, of whatever type.
        np.testing.assert_array_equal(digests(found), digests(names)[places])
        alone = [digests(as_labels([label], 1)) for label in list(labels)]
        np.testing.assert_array_equal(digests(found), np.concatenate(alone))


@pytest.mark.parametrize("label", ["\0", "x\0", "x\0y", " x", "x ", "\tx", "x\n", "x\u3000", " "])
def test_a_malformed_label_is_refused_whatever_others_are(label):
    for others in ([], ["x"], ["other"] * 9):
        with pytest.raises(ValueError, match=r"without NUL .*normalise_labels") as caught:
            as_labels([*others, label], len(others) + 1)
        assert not re.search(r"\d|other", str(caught.value))
        assert caught.value.__cause__ is caught.value.__context__ is None


def test_normalised_labels_merge_spellings_and_nothing_else():
    spellings = ["Zo\u00eb", " zoe\u0308\t", "ZO\u00cb", "zo\u00eb\u3000"]
    assert set(normalise_labels(spellings)) == {"zo\u00eb"}
    assert normalise_labels(["zoe", "z oe", "stra\u00dfe", "STRASSE"]).tolist() == [
        "zoe", "z oe", "strasse", "strasse"
    ]  # fmt: skip
    assert normalise_labels([2**70, -1]).tolist() == [2**70, -1]
    for column in (pd.Series(spellings, [7, 5, 3, 1], name="author"), pl.Series("a", spellings)):
        series = normalise_labels(column)  # a budget compares its name
        assert (series.name, {*series.to_list()}) == (column.name, {"zo\u00eb"})
    assert [*normalise_labels(pd.Series([4, 2], [7, 5])).index] == [7, 5]
    with pytest.raises(ValueError, match="labels must hold one label per row"):
        normalise_labels(["x", None])


@given(st.lists(st.text(), min_size=1))
def test_normalised_labels_are_their_own_form_and_taken_by_fits(labels):
    once = normalise_labels([label.replace("\0", "") for label in labels])
    np.testing.assert_array_equal(normalise_labels(once), once)
    np.testing.assert_array_equal(as_labels(once, len(labels)), once)


def test_units_lie_in_the_order_of_labels_and_rows_in_their_own(seed):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(rng.permutation(50)[:12], rng.integers(1, 5, 12)))
    X = np.arange(len(labels), dtype=float)[:, None]
    (chunk,) = SampleChunks(X, *X.shape, groups=labels)
    rows = chunk.X[:, 0].astype(int)
    for part, label in zip(slices(chunk.units), np.unique(labels), strict=True):
        np.testing.assert_array_equal(rows[part], np.flatnonzero(labels == label))


def test_rows_that_lie_in_order_are_not_copied():
    order, units = in_order(np.array([0, 0, 2, 5]))
    assert order is None
    np.testing.assert_array_equal(units.starts, [0, 2, 3, 4])


def test_chunks_hold_whole_units_and_few_rows(seed):
    """Or one unit with more than are added up one after the other."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6000, 12)
    sizes[rng.integers(12)] = ROWS_AT_ONCE + int(rng.integers(-1, 3))
    labels = np.repeat(np.arange(12), sizes)
    chunks = list(SampleChunks(np.zeros((len(labels), 1)), len(labels), 1, groups=labels))
    np.testing.assert_array_equal(np.concatenate([c.units.sizes for c in chunks]), sizes)
    for chunk in chunks:
        assert chunk.X.shape[0] == chunk.units.starts[-1]
        assert chunk.X.shape[0] <= ROWS_AT_ONCE or chunk.units.n == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([(np.ones((2, 1)), [1, 2]), np.ones((1, 1))], "Every chunk must be a pair"),
        ([np.ones((1, 1)), (np.ones((2, 1)), [1, 2])], "Every chunk must be a pair"),
        ([(np.ones((2, 1)), [1, 2]), (np.ones((1, 1)), ["a"])], "in all chunks alike"),
        ([(np.ones((2, 1)), [7, 8]), (np.ones((1, 1)), [7])], "All rows of a group must be in one"),
        ([(np.ones((2, 1)), [1, 2, 3])], "its length is not the number of rows"),
        ([(np.ones((2, 1)), [1, 2])], "2 groups in all; n_samples is 3"),
        ([(np.ones((2, 7)), [1, 2])], "^A chunk has 7 features; n_features is 1"),
        ([(np.ones(7), [1, 2])], None),
    ],
)
def test_a_source_of_other_groups_is_refused_without_a_number_of_rows(source, message):
    with pytest.raises(ValueError, match=message) as caught:
        list(SampleChunks(source, 3, 1))
    assert "shape" not in str(caught.value)


@pytest.mark.parametrize(
    "later",
    [
        [(np.ones((3, 1)), [1, 2, 3])],
        [(np.ones((2, 1)), [1, 2]), (np.ones((2, 1)), [1, 3])],
        [np.ones((2, 1))],
        [(np.ones((3, 1)), [1, 3, 1])],  # as many groups
    ],
)
def test_a_source_that_changes_is_refused(later):
    first = [(np.ones((3, 1)), [1, 2, 1])]

    class Changing:
        passes = iter([first, later])

        def __iter__(self):
            return iter(next(self.passes))

    chunks = SampleChunks(Changing(), 2, 1)
    assert len(list(chunks)) == 1
    said = r"other groups than|Every chunk must|in one chunk"
    with pytest.raises(ValueError, match=said):
        list(chunks)
