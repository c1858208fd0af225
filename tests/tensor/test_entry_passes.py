"""Passes over entries: sparse matrices against entries sorted by every mode."""

import numpy as np
import pytest

from sktensor_dp.tensor import matrix_passes
from sktensor_dp.tensor.entry_passes import _SortedPasses, passes_over
from sktensor_dp.tensor.matrix_passes import MatrixPasses
from sktensor_dp.tensor.sorted_entries import SortedEntries


def entries_of(rng, shape, n=400):
    coordinates = np.column_stack([rng.integers(0, length, n) for length in shape])
    coordinates[: n // 3, 0] = 1  # a long row; some rows stay empty
    return SortedEntries(coordinates, shape)


@pytest.mark.parametrize("shape", [(90, 30), (30, 90)])
@pytest.mark.parametrize("part", [32, 2**18])
@pytest.mark.parametrize("rough", [False, True])
def test_sparse_passes_are_those_of_sorted_entries(shape, part, rough, seed, monkeypatch):
    monkeypatch.setattr(matrix_passes, "_PART_ENTRIES", part)
    rng = np.random.default_rng(seed)
    entries = entries_of(rng, shape)
    ours, plain = passes_over(entries), _SortedPasses(entries)
    assert isinstance(ours, MatrixPasses)
    values = rng.standard_normal(entries.n_entries)
    factors = [rng.standard_normal((n, 3)) for n in shape]
    moments = [a[:, :, None] * a[:, None, :] + np.eye(3) for a in factors]
    # Sums of a few hundred terms of single precision, or of double.
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if rough else {"rtol": 1e-9, "atol": 1e-9}
    for mode in range(2):
        arranged = [passes.arrange(values)[mode] for passes in (ours, plain)]
        sums = [p.row_sums(v, mode) for p, v in zip((ours, plain), arranged, strict=True)]
        np.testing.assert_allclose(*sums, atol=1e-12)
        effects = rng.standard_normal(shape[1 - mode])
        at = [passes.at(effects, 1 - mode, mode) for passes in (ours, plain)]
        sums = [p.row_sums(v, mode) for p, v in zip((ours, plain), at, strict=True)]
        np.testing.assert_allclose(*sums, atol=1e-12)
        one, other = (
            passes.equations(mode, factors, targets, moments, rough=rough)
            for passes, targets in zip((ours, plain), arranged, strict=True)
        )
        np.testing.assert_allclose(one.gram, other.gram, **tolerance)
        np.testing.assert_allclose(one.design, other.design, **tolerance)
        np.testing.assert_allclose(one.moment, other.moment, atol=1e-9)


def test_orders_count_and_blocks_meet_every_row_once_a_block(seed):
    rng = np.random.default_rng(seed)
    entries = entries_of(rng, (20, 9, 4), 150)
    for mode in range(3):
        rows = entries.rows(mode)
        np.testing.assert_array_equal(entries.order(mode), np.argsort(rows, kind="stable"))
        for span, found, starts in entries.blocks(mode, 7):
            expected, first = np.unique(entries.sorted_column(mode, mode)[span], return_index=True)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(starts, first)
