"""What a fit shows follows from its noisy answers, which one unit moves by their sensitivity."""

from itertools import permutations

import numpy as np
from cases import EXACT, MODELS, OF_GROUPS, SEARCHES, Case, Data, covered
from replaying import replay

LEAVES = 30  # row that leaves, or changes
# Noise was scaled for neighbours that rounding moves apart.
ROUNDING = 1 + 1e-6


def neighbour_of(case: Case, data: Data) -> Data:
    """Data in which one unit is another, or is not there."""
    rng = np.random.default_rng(7)
    groups, family = data.groups, case.of.family
    if family in ("slices", "matrices"):
        mode = case.of.options.get("unit_mode") or 0
        own, one = data.X[:, mode] == 3, data.X[:1].copy()
        one[0, mode] = 3
        return Data(np.vstack([data.X[~own], one]), np.append(data.y[~own], 900.0))
    if family == "entries":
        return Data(data.X, np.where(np.arange(len(data)) == 5, -900.0, data.y))
    if family == "tensors":
        T = data.X.copy()
        T[tuple(zip(*permutations(range(3)), strict=True))] += case.of.options["data_norm"]
        return Data(T)
    label = None if groups is None else groups[len(groups) // 2]
    own = np.arange(len(data)) == LEAVES if groups is None else groups == label
    if case["neighbours"] == "add_remove":
        keep = np.flatnonzero(~own)
        X = [data.X[place] for place in keep] if family == "texts" else data.X[keep]
        return Data(X, None, None if groups is None else groups[keep])
    if family == "texts":
        X = [f"strange {'dogs ' * 30} x{i}" if mine else text
             for i, (mine, text) in enumerate(zip(own, data.X, strict=True))]  # fmt: skip
        return Data(X, None, groups)
    far = rng.integers(0, 99, data.X.shape) if family == "counts" else 50 - data.X
    if groups is None:
        return Data(np.where(own[:, None], far, data.X))
    # Whose number of rows is another one, and at other places.
    rows = np.concatenate([np.flatnonzero(~own), np.repeat(np.flatnonzero(own), 2)])
    return Data(np.where(own[rows, None], far[rows], data.X[rows]), None, groups[rows])


def holds(case: Case) -> None:
    data = case.draw()
    other = neighbour_of(case, data)
    # Rows without groups, all but the one that leaves, keep their two secret coins each.
    alone = case["neighbours"] == "add_remove" and data.groups is None
    coins = [2 * LEAVES, 2 * LEAVES + 1]
    match = np.delete(np.arange(2 * len(data)), coins) if alone else None
    seen = replay(
        case.build, lambda model, data: case.fit(model, data), data, other, match=match
    )  # fmt: skip
    far = {name: gap for name, gap in seen.moved.items() if not gap <= ROUNDING}
    assert not far, f"true answers are {far} sensitivities apart"


def other(row):
    """Without noise nothing is hidden; which units a counted search draws is drawn for each."""
    counted = row.get("neighbours") == "add_remove"
    exact = row.get("model") in EXACT
    texts = row.get("model") in WORDS
    elsewhere = row.get("container", "array") not in (("list",) if texts else ("array", "chunks"))
    return (
        (row.get("model") in SEARCHES and counted) or row.get("payer") == "file"
        or exact or ("container" in row and "model" in row and elsewhere)
    )  # fmt: skip


WORDS = {name for name, model in MODELS.items() if model.family == "texts"}
AXES = ("container", *OF_GROUPS, "payer")
test_one_unit, test_one_unit_in_triples = covered(holds, AXES, leave_out=other)
