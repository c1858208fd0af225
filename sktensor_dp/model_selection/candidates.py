"""Candidates of a search, drawn at random with replacement."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["checked_distributions", "draw_candidate", "secret_random_state"]

Distributions = Mapping[str, Any]


def checked_distributions(given: Any) -> list[Distributions]:
    """Distributions, of names to lists of values or objects with ``rvs``, as a list."""
    several = [given] if isinstance(given, Mapping) else given
    if not isinstance(several, Sequence) or not all(isinstance(one, Mapping) for one in several):
        raise TypeError(
            "param_distributions must be a dict, or a list of dicts, of lists of values or "
            f"distributions with rvs; got {type(given).__name__}."
        )
    if len(several) == 0:
        raise ValueError("param_distributions must have at least one dict, got an empty list.")
    for name, values in ((name, values) for one in several for name, values in one.items()):
        if hasattr(values, "rvs"):
            continue
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
            raise TypeError(
                f"param_distributions[{name!r}] must be a list of values or have an rvs method, "
                f"got {type(values).__name__}."
            )
        if len(values) == 0:
            raise ValueError(f"param_distributions[{name!r}] must not be empty.")
    return list(several)


def secret_random_state(bits: Sequence[int]) -> np.random.RandomState:
    """Generator of all that one trial draws besides noise, from secret bits of its own."""
    # What the winning trial drew is published; trials share no generator, so it tells
    # nothing of what others drew.
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(list(bits))))


def draw_candidate(
    distributions: Sequence[Distributions], rng: np.random.RandomState
) -> dict[str, Any]:
    """Draw a mapping evenly, and from it a value for every name, independently."""
    chosen = distributions[rng.randint(len(distributions))]
    return {
        name: values.rvs(random_state=rng)
        if hasattr(values, "rvs")
        else values[rng.randint(len(values))]
        for name, values in sorted(chosen.items())
    }
