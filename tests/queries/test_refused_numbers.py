"""Public numbers and data of tensors that queries cannot bound are refused by what is wrong."""

import math
from dataclasses import replace

import numpy as np
import pytest

from sktensor_dp.data.entries import EntryChunks, IndexSet
from sktensor_dp.data.person_entries import PersonChunks
from sktensor_dp.queries.entries import EntryPairs, RowSums
from sktensor_dp.queries.gradients import Jacobian, RidgeBlock
from sktensor_dp.queries.person_entries import (
    MOST_CELLS,
    ReleasedEffects,
    SharedFactorSums,
    SharedRowSums,
)
from sktensor_dp.tensor.shared_parameters import SharedEffects

SHAPE, N = (5, 7, 3), 60
X = np.column_stack([np.arange(N) % n for n in SHAPE])
PLACES, CELLS = IndexSet(X, SHAPE), IndexSet(X[:, :2], SHAPE[:2])
SLICES, NONE = PersonChunks(X, np.zeros(N), SHAPE, 0, (-1.0, 1.0)), np.zeros((1, 2), np.intp)
PAIRS = EntryPairs(CELLS, np.zeros(N), np.ones(5), 1.0, 1.0)


def effects(*shape):
    return tuple(SharedEffects(np.zeros(n), np.ones(n), np.zeros(n), 1.0) for n in shape)


def factor_sums(shared, rank=2):
    components = np.ones((math.prod(shared), rank))
    about = ReleasedEffects(effects(*shared), 0.0, 1.0)
    return SharedFactorSums((5, *shared), about, components, 1.0)


ROWS = SharedRowSums(1, SHAPE, ReleasedEffects(effects(*SHAPE[1:]), 0.0, 1.0), 1.0)


def about(*of, level=0.0):
    return replace(ROWS, about=ReleasedEffects(of, level, 1.0))


def of_range(limits, values=1):
    return EntryChunks(NONE[:values], np.zeros(values), (1, 1), limits)


FACTORS, MANY = factor_sums(SHAPE[1:]), np.ones((3, 2))
FIRST, SECOND = effects(*SHAPE[1:])
WRONG = [
    (lambda: RidgeBlock(PLACES, 0, MANY, 1.0, 2.0), "a row for each of the 60"),
    (lambda: RidgeBlock(PLACES, 0, np.full((N, 2), np.inf), 1.0, 2.0), "rows must hold numbers of"),
    (lambda: RidgeBlock(PLACES, 0, np.ones((N, 2)), -1.0, 2.0), "regularization must hold numbers"),
    (lambda: RowSums(PLACES, np.ones((N, 2)), 2.0), r"shape \(60, 3\)"),
    (lambda: RowSums(PLACES, np.zeros((N, 3)), 2.0), "not all be 0"),
    (lambda: Jacobian(PLACES, [np.ones((n, 2)) for n in SHAPE], np.ones((2, 2))), "core must have"),
    (lambda: Jacobian(PLACES, [np.ones((4, 2))] * 3), "factors must have .* rows"),
    (lambda: replace(PAIRS, predictions=np.zeros(3)), "predictions must have shape"),
    (lambda: replace(PAIRS, weights=np.full(5, 1.5)), "weights must hold"),
    (lambda: replace(PAIRS, weights=np.full(6, 0.5)), "weights must have shape"),
    (lambda: replace(PAIRS, scale=0.0), "the scale"),
    (lambda: replace(PAIRS, index_set=PLACES), "2 modes of a matrix"),
    (lambda: replace(ROWS, scale=0.0), "scale must be from"),
    (lambda: replace(ROWS, scale=math.nan), "scale must be from"),
    (lambda: about(FIRST, SECOND, level=math.inf), "within 1e\\+20 scales"),
    (lambda: about(FIRST, replace(SECOND, means=np.full(3, np.nan))), "within 1e\\+20 scales"),
    (lambda: about(FIRST, replace(SECOND, variances=-np.ones(3))), "variances of released"),
    (lambda: replace(ROWS, order=3), "order must be"),
    (lambda: replace(ROWS, row_weights=np.ones(6)), "row_weights must be 7 numbers"),
    (lambda: replace(ROWS, row_weights=np.full(7, 1.1)), "row_weights must be 7 numbers"),
    (lambda: replace(ROWS, row_weights=np.full(7, 0.5), order=1), "numbers from 1 to 1"),
    # The units' own mode is never released.
    (lambda: replace(ROWS, mode=0).total(SLICES), "another one than the units"),
    # A part that is too short would fail only where a unit has entries in its last rows.
    (lambda: about(FIRST).total(SLICES), "those of the shared modes"),
    *((lambda part=part: about(FIRST, replace(SECOND, **{part: np.ones(2)})).total(SLICES),
       "those of the shared modes") for part in ("means", "variances", "popularity")),
    (lambda: replace(FACTORS, components=np.ones((22, 2))), "one row per cell of a unit, 21 by"),
    (lambda: replace(FACTORS, components=np.full((21, 2), 1e21)), "within 1e\\+20 scales"),
    (lambda: replace(FACTORS, about=replace(FACTORS.about, noise_variance=0.0)),
     "noise_variance must be from"),
    (lambda: factor_sums((MOST_CELLS + 1,)), "at most 16384; got 16385"),
    (lambda: factor_sums((3, 7)).total(SLICES), "shape must be that of the data"),
    *((lambda limits=limits: of_range(limits), "bounds must") for limits in (
        (1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.inf), (-1.7e308, 1.7e308))),
    # Where their number is public.
    (lambda: of_range((0.0, 1.0), 0), "at least one"),
    (lambda: PersonChunks(X, np.zeros(N), SHAPE, 3, (0.0, 1.0)), r"unit_mode must be one of 0..2"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "message"), WRONG)
def test_what_cannot_be_bounded_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
