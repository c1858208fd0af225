"""Neighbouring data sets on which an estimator gives away the most.

Estimators tell them by a hook, as this package's boundary knows none of them. Each pair
moves the releases that get most of the budget by their whole sensitivity, against a
background that lets what is released reach a fitted attribute.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


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
        One of this package, or another that has the hook ``_worst_case``; it is not fitted.
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
        If the estimator has no such hook, or its parameters leave data sets undetermined.

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

    With ``neighbours="add_remove"`` the unit that would change leaves.

    How much reaches the fitted attributes depends on the parameters too: the fewer
    components, iterations and refinements, the more. ``docs/audit.md`` has examples.

    Examples
    --------
    >>> from sktensor_dp import PrivateTensorPowerMethod
    >>> case = worst_case(PrivateTensorPowerMethod(1, data_norm=2.0), n_units=3)
    >>> case.neighbour[0][:, 0]
    array([ 2.,  2., -2.])
    """
    asked = getattr(estimator, "_worst_case", None)
    found = None if asked is None else asked(n_units)
    if found is None:
        raise ValueError(
            "estimator must tell its worst neighbours, by the hook _worst_case of "
            f"PrivateEstimatorMixin; got a {type(estimator).__name__}, which does not."
        )
    return WorstCase(*found)
