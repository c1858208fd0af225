"""Neighbouring data sets on which an estimator gives away the most.

Estimators are recognised by their public parameters, as this package's boundary knows
none of them. Each pair moves the releases that get most of the budget by their whole
sensitivity, against a background that lets what is released reach a fitted attribute.
"""

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

__all__ = ["WorstCase", "worst_case"]


# Tokens of a document that is longer than any limit that is chosen by a histogram of norms.
LONG = 10**6


@dataclass(frozen=True, eq=False)
class WorstCase:
    """Two neighbouring data sets and what tells them apart.

    Attributes
    ----------
    data, neighbour : tuple
        Arguments of ``fit``.
    statistic : callable
        ``fitted estimator -> float``, larger on the neighbour.
    """

    data: tuple[Any, ...]
    neighbour: tuple[Any, ...]
    statistic: Callable[[Any], float]


def worst_case(estimator: Any, n_units: int | None = None) -> WorstCase:
    """Return neighbours that are as far apart as an estimator's releases allow.

    Parameters
    ----------
    estimator : estimator
        One of this package, or with the same parameters; it is not fitted.
    n_units : int, optional
        Documents or samples of the data sets, 1000 by default. A completion whose unit is
        one entry has one; with slices as units their number is that of its ``shape``.

    Returns
    -------
    WorstCase
        To be passed on to :func:`audit`.

    Raises
    ------
    ValueError
        If the estimator has none of the parameters that data sets are made for, or they
        leave data sets undetermined.

    Notes
    -----
    ====================================  ==================================================
    ``PrivateSpectralLDA``                documents of one word each, half of them of either
                                          word; one changes sides
    ``PrivateCountVectorizer``            documents of as many words as they may contribute,
                                          half of them of either set; one changes sides
    ``PrivateTensorPowerMethod``          samples at ``data_norm`` in one direction; one of
                                          them turns round: the last one that a ``"stream"``
                                          reads, where ``random_state`` is an int
    completion, unit one entry            one entry, from the lower bound to the upper one
    completion, unit a slice              units at the middle; one rates two rows as far
                                          apart as it may, and the other way round
    ====================================  ==================================================

    How much reaches the fitted attributes depends on the parameters too: the fewer
    components, iterations and refinements, the more. ``docs/audit.md`` has examples.

    Examples
    --------
    >>> from sktensor_dp import PrivateTensorPowerMethod
    >>> case = worst_case(PrivateTensorPowerMethod(1, data_norm=2.0), n_units=3)
    >>> case.neighbour[0][:, 0]
    array([ 2.,  2., -2.])
    """
    parameters = estimator.get_params()
    for name, build in BUILDERS.items():
        if name in parameters:
            return build(parameters, n_units)
    raise ValueError(
        f"estimator must have one of the parameters {list(BUILDERS)}, got a "
        f"{type(estimator).__name__}."
    )


def _documents(parameters: dict[str, Any], n_units: int | None) -> WorstCase:
    n_documents = n_units or 1000
    counts = np.zeros((n_documents, 2), dtype=np.int64)
    half = n_documents // 2 + 1
    counts[:half, 0] = counts[half:, 1] = LONG
    changed = counts.copy()
    changed[0] = counts[0, ::-1]

    def difference(fitted: Any) -> float:
        """Of the frequencies of the two words in the model: all moments have a part in it."""
        prior = fitted.topic_prior_ / fitted.topic_prior_.sum()
        frequencies = prior @ fitted.components_
        return float(frequencies[1] - frequencies[0])

    return WorstCase((counts,), (changed,), difference)


def _texts(parameters: dict[str, Any], n_units: int | None) -> WorstCase:
    n_texts, n_words = n_units or 1000, parameters["max_words_per_document"]
    sides = [" ".join(f"{letter}{i}" for i in range(n_words)) for letter in ("aa", "bb")]
    half = n_texts // 2 + 1
    texts = [sides[0]] * half + [sides[1]] * (n_texts - half)

    def difference(fitted: Any) -> float:
        names, found = fitted.get_feature_names_out(), fitted.document_frequencies_
        return float(sum(x if name[0] == "b" else -x for name, x in zip(names, found, strict=True)))

    return WorstCase((texts,), ([sides[1], *texts[1:]],), difference)


def _samples(parameters: dict[str, Any], n_units: int | None) -> WorstCase:
    if parameters["data_norm"] is None:
        raise ValueError("data_norm must be given: samples are made of that length.")
    n_samples = n_units or 1000
    samples = np.zeros((n_samples, 2))
    samples[:, 0] = parameters["data_norm"]
    changed = samples.copy()
    last = n_samples - 1
    seed = parameters["random_state"]
    if parameters["perturbation"] == "stream" and isinstance(seed, numbers.Integral):
        # A weight is read off the last batches, and fits deal rows out in this order.
        last = int(check_random_state(seed).permutation(n_samples)[-1])
    changed[last] *= -1

    def minus_moment(fitted: Any) -> float:
        """The third moment along the samples' direction, as far as it was found."""
        return -float(np.sum(fitted.weights_ * fitted.components_[:, 0] ** 3))

    return WorstCase((samples,), (changed,), minus_moment)


def _values(parameters: dict[str, Any], n_units: int | None) -> WorstCase:
    if parameters["bounds"] is None:
        raise ValueError("bounds must be given: values are made of both.")
    if parameters["privacy_unit"] == "slice":
        return _slices(parameters)
    low, high = (np.array([float(end)]) for end in parameters["bounds"])
    shape = parameters["shape"]
    entry = np.zeros((1, 2 if shape is None else len(shape)), dtype=np.intp)
    return WorstCase((entry, low), (entry, high), lambda fitted: float(fitted.predict(entry)[0]))


def _slices(parameters: dict[str, Any]) -> WorstCase:
    low, high = map(float, parameters["bounds"])
    unit_mode, shape = parameters["unit_mode"], parameters["shape"]
    shared = 0 if unit_mode else 1
    if shape is None or shape[shared] < 2:
        raise ValueError(
            f"shape must be given, with two rows or more in mode {shared}; got {shape!r}."
        )
    number = shape[unit_mode]
    entries = np.zeros((2 * number, len(shape)), dtype=np.intp)
    entries[:, unit_mode] = np.repeat(np.arange(number), 2)
    entries[:, shared] = np.tile(np.arange(2), number)
    values = np.full(2 * number, math.fsum((low / 2, high / 2)))
    changed = values.copy()
    values[:2], changed[:2] = (high, low), (low, high)

    def difference(fitted: Any) -> float:
        effects = fitted.biases_[shared]
        return float(effects[1] - effects[0])

    return WorstCase((entries, values), (entries, changed), difference)


# By the parameter that tells an estimator's kind of data.
BUILDERS: dict[str, Callable[[dict[str, Any], int | None], WorstCase]] = {
    "doc_topic_prior": _documents,
    "max_words_per_document": _texts,
    "data_norm": _samples,
    "bounds": _values,
}
