"""Rows of a table of axes in which every pair (or triple) of values occurs together."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product

import numpy as np

Row = dict[str, str]


def covering(
    axes: Mapping[str, Sequence[str]],
    possible: Callable[[Row], bool],
    strength: int = 2,
    seed: int = 0,
) -> list[Row]:
    """Greedy covering of all `possible` combinations of `strength` values; part rows may be asked.

    Each row begins with a combination that none has yet, and takes for each further axis the value
    that adds most; the order of axes, and ties, come from the seed.
    """
    rng, names = np.random.default_rng(seed), list(axes)
    strength = min(strength, len(names))
    missing = {
        frozenset(zip(chosen, values, strict=True)): None
        for chosen in combinations(names, strength)
        for values in product(*(axes[name] for name in chosen))
    }
    rows = []
    while missing:
        first = dict(next(iter(missing)))
        row = _completed(first, axes, possible, missing, strength, rng)
        if row is None:
            del missing[frozenset(first.items())]
            continue
        for part in combinations(row.items(), strength):
            missing.pop(frozenset(part), None)
        rows.append({name: row[name] for name in names})
    return rows


def _completed(row, axes, possible, missing, strength, rng):
    """A row with all axes, or None where there is none."""
    if not possible(row):
        return None
    left = [name for name in axes if name not in row]
    if not left:
        return row
    name = left[rng.integers(len(left))]
    values = [axes[name][place] for place in rng.permutation(len(axes[name]))]
    parts = list(combinations(row.items(), strength - 1))

    def added(value):
        own = (name, value)
        return sum(frozenset((*part, own)) in missing for part in parts)

    for value in sorted(values, key=added, reverse=True):
        found = _completed({**row, name: value}, axes, possible, missing, strength, rng)
        if found is not None:
            return found
    return None
