"""Passes over entries: sparse matrices against entries sorted by every mode."""

import numpy as np
import pytest

from sktensor_dp.tensor.entry_passes import (
    FibrePasses,
    MatrixPasses,
    SortedPasses,
    fibre_mode,
    passes_over,
)
from sktensor_dp.tensor.normal_equations import packed_products
from sktensor_dp.tensor.sorted_entries import SortedEntries


def entries_of(rng, shape, n=400):
    coordinates = np.column_stack([rng.integers(0, length, n) for length in shape])
    coordinates[: n // 3, 0] = 1  # a long row; some rows stay empty
    return SortedEntries(coordinates, shape)


@pytest.mark.parametrize("shape", [(90, 30), (30, 90)])
@pytest.mark.parametrize("cache", [64, 2**19])
@pytest.mark.parametrize("rough", [False, True])
def test_sparse_passes_are_those_of_sorted_entries(shape, cache, rough, seed, cache_of):
    cache_of(cache)
    rng = np.random.default_rng(seed)
    entries = entries_of(rng, shape)
    ours, plain = passes_over(entries), SortedPasses(entries)
    assert isinstance(ours, MatrixPasses)
    values = rng.standard_normal(entries.n_entries)
    factors = [rng.standard_normal((n, 3)) for n in shape]
    moments = [packed_products(a) + np.eye(3)[np.triu_indices(3)] for a in factors]
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
        np.testing.assert_allclose(one.moment, other.moment, **tolerance)


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


# Modes, and how many entries: of fibres along each mode.
FIBRED = {(7, 9, 40): 2, (50, 6, 5): 0, (5, 30, 6): 1, (4, 3, 5, 40): 3}


@pytest.mark.parametrize("shape", FIBRED)
@pytest.mark.parametrize("rank", [0, 3, 7])
def test_passes_along_fibres_are_those_of_sorted_entries(shape, rank, seed):
    rng = np.random.default_rng(seed)
    # Some rows stay empty, and some entries occur twice.
    entries = entries_of(rng, tuple(n - 1 for n in shape), 900)
    entries = SortedEntries(entries.coordinates, shape)
    ours, plain = passes_over(entries), SortedPasses(entries)
    assert isinstance(ours, FibrePasses)
    assert fibre_mode(entries) == FIBRED[shape]
    values, mean = rng.standard_normal(900), rng.standard_normal()
    factors = [rng.standard_normal((n, rank)) for n in shape]
    moments = [packed_products(a) + np.eye(rank)[np.triu_indices(rank)] for a in factors]
    biases = [rng.standard_normal(n) for n in shape]
    arranged = ours.arrange(values), plain.arrange(values)
    # Sums of 900 products of a few numbers of size 1 to 5.
    close = {"rtol": 1e-9, "atol": 1e-9}
    for mode in range(len(shape)):
        for of in range(len(shape)):
            at = [p.at(biases[of], of, mode) for p in (ours, plain)]
            sums = [p.row_sums(v, mode) for p, v in zip((ours, plain), at, strict=True)]
            np.testing.assert_allclose(*sums, **close)
        targets = [v[mode] - mean for v in arranged]
        for given, passes in zip(targets, (ours, plain), strict=True):
            for k in entries.others(mode):
                given -= passes.at(biases[k], k, mode)
        found = [ours.gathered(mode, arranged[0][mode], mean, biases, factors, moments)]
        if rank:
            equal = ours.equations(mode, factors, targets[0], moments, rough=False)
            found.append((found[0][0], found[0][1], equal))
            wanted = plain.equations(mode, factors, targets[1], moments, rough=False)
        for sums, square, equations in found:
            np.testing.assert_allclose(sums, plain.row_sums(targets[1], mode), **close)
            assert square == pytest.approx(float(targets[1] @ targets[1]), rel=1e-9)
            for part in ("gram", "moment", "design") if rank else ():
                one, other = getattr(equations, part), getattr(wanted, part)
                np.testing.assert_allclose(one, other, **close)


def test_what_lies_along_fibres_is_formed_anew_once_it_has_changed(seed):
    rng = np.random.default_rng(seed)
    entries = entries_of(rng, (6, 7, 30), 600)
    passes = passes_over(entries)
    assert isinstance(passes, FibrePasses)
    factors = [rng.standard_normal((n, 2)) for n in entries.shape]
    biases = [np.zeros(n) for n in entries.shape]
    moments = [packed_products(a) for a in factors]
    values = passes.arrange(rng.standard_normal(600))
    for changed in (None, "values", "factors", "biases"):
        if changed == "values":
            values = passes.arrange(rng.standard_normal(600))
        if changed == "factors":
            factors[2] = rng.standard_normal((30, 2))
        if changed == "biases":
            biases[2] = rng.standard_normal(30)
        for mode in (0, 1):
            state = mode, values[mode], 0.5, biases, factors, moments
            one, other = passes.gathered(*state), FibrePasses(entries, 2).gathered(*state)
            np.testing.assert_array_equal(one[0], other[0])
            np.testing.assert_array_equal(one[2].moment, other[2].moment)


def test_few_entries_a_fibre_are_sorted_by_every_mode(seed):
    rng = np.random.default_rng(seed)
    # 490 pairs at most in any two modes with all of 2000: four entries each.
    assert fibre_mode(entries_of(rng, (25, 25, 25), 2000)) is None
    assert isinstance(passes_over(entries_of(rng, (25, 25, 25), 2000)), SortedPasses)
    # No number holds that many fibres.
    assert fibre_mode(entries_of(rng, (2**22, 2**22, 2**22, 2**22), 30)) is None


def test_fibres_are_counted_where_there_may_be_many_of_them(seed):
    """More fibres than are marked in a table: they are sorted, and as many."""
    rng = np.random.default_rng(seed)
    fibres = rng.integers(0, 300, (40, 2))
    X = np.array([(*fibre, k) for fibre in fibres for k in range(20)])
    assert fibre_mode(SortedEntries(X, (300, 300, 20))) == 2
    assert fibre_mode(SortedEntries(X[:, [2, 0, 1]], (20, 300, 300))) == 0
