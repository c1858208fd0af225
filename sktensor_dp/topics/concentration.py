"""Estimate how evenly documents mix topics: the largest concentration that moments do not reject.

Moments of documents that mix topics are also moments of documents that have one topic each, of
topics that are blurred towards the word frequencies. A concentration that is too small is
therefore always explained. One that is too large asks for topics with negative probabilities, and
what topics leave of the moments jumps.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sktensor_dp.tensor.arrays import Floats

# The concentration that is assumed where moments reject none.
USUAL = 1.0
# Documents count as having one topic each below the first; beyond the second all are alike.
LEAST_CONCENTRATION, LARGEST_CONCENTRATION = 0.1, 20.0
# Ratio of two concentrations between which the bisection ends.
RATIO = 1.05


@dataclass(frozen=True, eq=False)
class ExplainedTopics:
    """Topics that explain released moments at a concentration."""

    topics: Floats  # (k, d): rows are distributions
    weights: Floats  # (k,): their shares
    concentration: float
    misfit: float  # what they leave of the moments


def largest_not_rejected(
    explain: Callable[[ExplainedTopics, float], ExplainedTopics],
    single: ExplainedTopics,
    most: float,
) -> ExplainedTopics | None:
    """Find the largest concentration at which topics leave little of the moments.

    Parameters
    ----------
    explain : callable
        Fit topics at a concentration, from others.
    single : ExplainedTopics
        Fit at concentration 0, which explains all that topics can.
    most : float
        Misfit from which a concentration is rejected.

    Returns
    -------
    ExplainedTopics or None
        The fit; None if nothing is rejected.
    """
    if explain(single, LARGEST_CONCENTRATION).misfit <= most:
        return None
    found = explain(single, LEAST_CONCENTRATION)
    if found.misfit > most:
        return single
    high = LARGEST_CONCENTRATION
    while high > RATIO * found.concentration:
        tried = explain(found, (high * found.concentration) ** 0.5)
        if tried.misfit <= most:
            found = tried
        else:
            high = tried.concentration
    return found


def expected_topics(concentration: float, length: float) -> float:
    """Expected number of topics of a document of so many tokens, of which there are many."""
    later = np.arange(1, max(int(length), 1))
    return 1 + float((concentration / (concentration + later)).sum())
