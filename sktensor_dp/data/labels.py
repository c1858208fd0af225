"""Labels of persons (or other groups) of rows: read, compared exactly, numbered, normalised."""

import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterable
from itertools import count
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.checks.errors import call_unquoted
from sktensor_dp.checks.frames import as_numbers, series_like
from sktensor_dp.tensor.arrays import Integers

# 64-bit integers, or Python objects (strings, or larger integers). Strings of NumPy would take the
# room of the longest label each, and drop NULs at the end.
Labels = NDArray[Any]

EXPECTED = (
    "{name} must hold one label per row, all of them integers or all of them strings and none "
    "missing"
)
MALFORMED = (
    "{name} must hold labels without NUL characters and without blanks at either end: labels are "
    "compared exactly, and these would part one person in two. sktensor_dp.normalise_labels, or "
    "--normalise-labels in the command, strips blanks."
)
ONE_GROUP = (
    "groups must hold at least two different labels: one group alone is all of the data, and "
    "nothing could be learnt that protects it."
)
# Odd number near 2^64 over the golden ratio: multiplying by it spreads integers evenly (Knuth,
# volume 3).
SPREAD = np.uint64(0x9E3779B97F4A7C15)


def as_labels(groups: object, n_rows: int | None, name: str = "groups") -> Labels:
    """Validate labels, integers or strings, of rows; `n_rows` is None where it is not known."""
    labels = read_labels(groups, n_rows, name)
    for label in set(labels.tolist()) if are_texts(labels) else ():
        if "\0" in label or label != label.strip():
            raise ValueError(MALFORMED.format(name=name))
    return labels


def read_labels(groups: object, n_rows: int | None, name: str) -> Labels:
    """Labels of one kind from a column, an array or a list; ValueError for malformed ones."""
    # Errors show no label, and no number of rows, as the number of rows of a unit is private. NumPy
    # would turn a list with a missing label into text, with 'nan' as a label.
    expected = EXPECTED.format(name=name)
    if not isinstance(groups, np.ndarray):
        groups = as_numbers(groups, name)  # a column as an array, with texts or numbers as they are
    if np.ma.is_masked(groups):
        raise ValueError(f"{expected}.")  # an array would hold what lies behind the mask
    dtype: Any = None if hasattr(groups, "dtype") else object
    labels = call_unquoted(lambda: np.asarray(groups, dtype), name, lambda message: f"{expected}.")
    if labels.ndim != 1:
        raise ValueError(f"{expected}; got an array of {labels.ndim} dimensions.")
    if n_rows is not None and len(labels) != n_rows:
        raise ValueError(f"{expected}; its length is not the number of rows.")
    if not len(labels):
        return np.zeros(0, np.int64)  # a chunk without rows: no label is of a wrong kind
    checked = call_unquoted(lambda: _of_one_kind(labels), name)
    if checked is None:
        # Types of texts say how long the longest label is.
        kind = "" if labels.dtype.kind in "OST" else f"; got type {labels.dtype}"
        if labels.dtype.kind == "M" or hasattr(labels[0], "strftime"):
            kind += ". Write dates as text, by .dt.strftime('%Y-%m') for months"
        raise ValueError(f"{expected}{kind}.")
    return checked


def _of_one_kind(labels: NDArray[np.generic]) -> Labels | None:
    """Array of labels that are all integers, or all strings; None for other labels."""
    if labels.dtype.kind in "iu":
        return _integers(labels)
    if labels.dtype.kind not in "OTU":
        return None
    items = labels.tolist()
    kinds = set(map(type, items))
    if all(issubclass(kind, str) for kind in kinds):
        # Instances of subclasses of str are converted to plain strings: those alone decide which
        # labels are equal.
        return _objects(items if kinds == {str} else list(map(str.__str__, items)))
    if all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        return _integers(_objects(items if kinds == {int} else list(map(int, items))))
    return None


def _integers(labels: NDArray[np.generic]) -> Labels:
    """64-bit integers if all labels fit, else Python's integers."""
    limits = np.iinfo(np.int64)
    if limits.min <= int(labels.min()) and int(labels.max()) <= limits.max:
        return labels.astype(np.int64, copy=False)
    return labels.astype(object)


def _objects(items: list[object]) -> NDArray[np.object_]:
    """One-dimensional array of any items, also of sequences."""
    array = np.empty(len(items), object)
    array[:] = items
    return array


def are_texts(labels: Labels) -> bool:
    """True if labels are strings, False if they are integers."""
    return labels.dtype.kind == "U" or isinstance(next(iter(labels), 0), str)


def are_several(labels: Labels) -> bool:
    """Return True if rows have two different labels or more."""
    return bool((labels[1:] != labels[:-1]).any())


def distinct(labels: Labels) -> tuple[Labels, Integers]:
    """Distinct labels, sorted, and the index of each row's label among them, (n_rows,)."""
    return call_unquoted(lambda: _distinct(labels), "groups")


def _distinct(labels: Labels) -> tuple[Labels, Integers]:
    if labels.dtype.kind != "O":
        names, places = np.unique(labels, return_inverse=True)
        return names, places
    # Labels are hashed, as in Python's sets, and only the different ones are sorted.
    numbers: defaultdict[Any, int] = defaultdict(count().__next__)  # by first occurrence
    number_of_row = np.fromiter(map(numbers.__getitem__, labels.tolist()), np.intp, len(labels))
    different = list(numbers)
    order = sorted(range(len(different)), key=different.__getitem__)
    return _objects(different)[order], inverse_order(order)[number_of_row]


def inverse_order(order: object) -> Integers:
    """Rank of each item, from the order of items: the inverse of a permutation."""
    permutation = np.asarray(order, np.intp)
    ranks = np.empty_like(permutation)
    ranks[permutation] = np.arange(len(permutation))
    return ranks


def joined(parts: list[Labels]) -> Labels:
    """Labels of several chunks; ValueError if some are integers and some are strings."""
    # Parts without rows have labels of no type.
    parts = [part for part in parts if len(part)] or parts[:1]
    if len(set(map(are_texts, parts))) != 1:
        raise ValueError(f"{EXPECTED.format(name='groups')}, in all chunks alike.")
    return np.concatenate(parts)


def digests(labels: Labels) -> NDArray[np.uint64]:
    """Hash of each label, the same in every process and for every type of integers."""
    if are_texts(labels):
        return checksums(labels.tolist()).view(np.uint64)
    if labels.dtype.kind == "i":
        low_bits = labels.view(np.uint64)
    else:
        low_bits = np.array([label % 2**64 for label in labels.tolist()], np.uint64)
    # The high bits of a product, which depend on all bits of the label.
    return (low_bits * SPREAD) >> np.uint64(33)


def checksums(texts: Iterable[str]) -> NDArray[np.int64]:
    """Fixed checksum (CRC-32) of each text."""
    encoded = map(methodcaller("encode", "utf-8", "surrogatepass"), texts)
    return np.fromiter(map(zlib.crc32, encoded), np.int64)


def normalise_labels(labels: Any) -> Any:
    """Strip blanks from labels of persons, and merge those that differ in case or Unicode form.

    Fits compare labels exactly: "Zoe" and "zoe" are two persons to them, each protected by
    itself. Merging two persons into one is always safe for them, at the price of some accuracy.

    Parameters
    ----------
    labels : array-like of shape (n_rows,)
        Labels as ``groups`` of a fit takes them: strings or integers.

    Returns
    -------
    ndarray or Series of shape (n_rows,)
        Strings without outer blanks, folded to one case (``str.casefold``) and composed
        (Unicode's NFC); integers as they are. For a Series a Series, which keeps its name.

    Raises
    ------
    ValueError
        If labels are missing, or neither all strings nor all integers.

    Notes
    -----
    **Privacy.** Each label is changed by itself, so whatever is fitted to the result protects each
    of its labels. The result is raw data.

    Examples
    --------
    >>> from sktensor_dp import normalise_labels
    >>> normalise_labels(["Zoe", " zoe", "ZOE "]).tolist()
    ['zoe', 'zoe', 'zoe']
    """
    normalised = read_labels(labels, n_rows=None, name="labels")
    if len(normalised) and are_texts(normalised):
        forms: dict[str, str] = {}  # equal labels share one object, to save memory
        for label in set(normalised.tolist()):
            # Decompose first: composed and decomposed letters are then folded alike.
            folded = unicodedata.normalize("NFD", label).casefold()
            forms[label] = unicodedata.normalize("NFC", folded).strip()
        normalised = _objects(list(map(forms.__getitem__, normalised.tolist())))
    return series_like(labels, normalised) if hasattr(labels, "to_frame") else normalised
