"""Sorted entries, passes over them and their normal equations, against dense sums."""

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp.tensor.arrays import of_same_shape
from sktensor_dp.tensor.entry_passes import (
    FibrePasses,
    MatrixPasses,
    SortedPasses,
    fibre_mode,
    passes_over,
)
from sktensor_dp.tensor.normal_equations import (
    normal_equations,
    packed_products,
    solve_rows,
    unpack_rows,
)
from sktensor_dp.tensor.sorted_entries import (
    SortedEntries,
    cp_values,
    khatri_rao_rows,
    kronecker_rows,
    tucker_values,
)

SHAPES = [(7, 5), (40, 30), (6, 5, 4), (4, 3, 5, 2)]


@pytest.fixture(params=SHAPES, ids=str)
def problem(request, seed):
    rng = np.random.default_rng([seed, len(request.param)])
    shape = request.param
    n = 60
    # Drawn with replacement: equal coordinates count as often as they occur.
    coordinates = np.column_stack([rng.integers(0, length - 1, n) for length in shape])
    factors = [rng.standard_normal((length, 3)) for length in shape]
    return SortedEntries(coordinates, shape), factors, rng.standard_normal(n), rng


@pytest.fixture(params=[7 * 32, 2**19], ids=["small blocks", "one block"])
def block_size(request, cache_of):
    cache_of(request.param)


def designs(entries, factors, mode):
    """Products of the other modes' rows, entry by entry."""
    rows = [
        np.prod([factors[k][c[k]] for k in range(entries.n_modes) if k != mode], axis=0)
        for c in entries.coordinates
    ]
    return np.array(rows)


def by_row(entries, mode, terms):
    sums = np.zeros((entries.shape[mode], *terms.shape[1:]))
    for coordinate, term in zip(entries.coordinates, terms, strict=True):
        sums[coordinate[mode]] += term
    return sums


def equations(entries, mode, factors, values, second_moments=None):
    """Normal equations, with second moments of rows that are known unless they are given."""
    moments = [packed_products(a) for a in factors] if second_moments is None else second_moments
    passes, targets = SortedPasses(entries), entries.sort(values, mode)
    return passes.equations(mode, factors, targets, moments, rough=False)


def full(found):
    return unpack_rows(found.gram, found.moment.shape[1])


@pytest.mark.usefixtures("block_size")
def test_normal_equations_are_sums_over_rows(problem):
    entries, factors, values, _ = problem
    for mode in range(entries.n_modes):
        z = designs(entries, factors, mode)
        found = equations(entries, mode, factors, values)
        np.testing.assert_allclose(
            full(found), by_row(entries, mode, z[:, :, None] * z[:, None, :]), atol=1e-12
        )
        np.testing.assert_allclose(
            found.moment, by_row(entries, mode, z * values[:, None]), atol=1e-12
        )
        np.testing.assert_allclose(found.design, by_row(entries, mode, z), atol=1e-12)


@pytest.mark.usefixtures("block_size")
def test_second_moments_replace_products(problem):
    entries, factors, values, rng = problem
    spread = [
        np.einsum("nij,nkj->nik", B, B)
        for B in (rng.standard_normal((len(a), 3, 3)) for a in factors)
    ]
    moments = [a[:, :, None] * a[:, None, :] + S for a, S in zip(factors, spread, strict=True)]
    packed = [S[:, *np.triu_indices(3)] for S in moments]
    for mode in range(entries.n_modes):
        others = [k for k in range(entries.n_modes) if k != mode]
        products = np.prod([moments[k][entries.coordinates[:, k]] for k in others], axis=0)
        found = equations(entries, mode, factors, values, packed)
        np.testing.assert_allclose(full(found), by_row(entries, mode, products), atol=1e-10)


@pytest.mark.usefixtures("block_size")
def test_any_design_can_be_accumulated(problem):
    entries, _, values, rng = problem
    z = rng.standard_normal((entries.n_entries, 2))
    for mode in range(entries.n_modes):
        ordered = np.column_stack([entries.sort(column, mode) for column in z.T])
        targets = entries.sort(values, mode)
        found = normal_equations(entries, mode, lambda span, o=ordered: o[span].T, targets)
        np.testing.assert_allclose(
            full(found), by_row(entries, mode, z[:, :, None] * z[:, None, :]), atol=1e-12
        )


def test_sums_and_counts(problem):
    entries, _, values, _ = problem
    for mode in range(entries.n_modes):
        expected = by_row(entries, mode, values)
        np.testing.assert_allclose(entries.row_sums(values, mode), expected, atol=1e-12)
        found = entries.sorted_row_sums(entries.sort(values, mode), mode)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        counts = by_row(entries, mode, np.ones(len(values)))
        np.testing.assert_array_equal(entries.counts[mode], counts)
        assert entries.counts[mode][-1] == 0  # a row never seen is there
        np.testing.assert_array_equal(np.diff(entries.row_pointers(mode)), counts)
        sorted_rows = entries.sorted_coordinates(mode)[mode]
        assert (np.diff(sorted_rows) >= 0).all()


def test_values_of_models(problem, cache_of):
    entries, factors, _, rng = problem
    cache_of(100)
    weights = rng.standard_normal(3)
    expected = [
        np.sum(weights * np.prod([a[i] for a, i in zip(factors, c, strict=True)], axis=0))
        for c in entries.coordinates
    ]
    np.testing.assert_allclose(
        cp_values(factors, entries.coordinates, weights), expected, atol=1e-12
    )
    np.testing.assert_allclose(
        khatri_rao_rows(factors, entries.coordinates) @ weights, expected, atol=1e-12
    )
    sizes = [3, 1, 2, 2][: entries.n_modes]
    core = rng.standard_normal(sizes)
    parts = [a[:, :r] for a, r in zip(factors, sizes, strict=True)]
    dense = core
    for mode, part in enumerate(parts):
        dense = np.moveaxis(np.tensordot(part, dense, axes=(1, mode)), 0, mode)
    values = tucker_values(core, parts, entries.coordinates)
    np.testing.assert_allclose(values, dense[tuple(entries.coordinates.T)], atol=1e-12)
    np.testing.assert_allclose(
        kronecker_rows(parts, entries.coordinates) @ core.reshape(-1), values, atol=1e-12
    )


def test_rows_solve_the_joint_ridge_regression(problem):
    entries, factors, values, _ = problem
    found = equations(entries, 0, factors, values)
    counts = entries.counts[0].astype(float)
    ridge = np.array([0.5, 1.0, 2.0])
    biases, rows, _ = solve_rows(found, counts, entries.row_sums(values, 0), 0.3, ridge)
    z = designs(entries, factors, 0)
    for row in range(entries.shape[0]):
        own = entries.coordinates[:, 0] == row
        Z = np.column_stack([np.ones(own.sum()), z[own]])
        expected = np.linalg.solve(Z.T @ Z + np.diag([0.3, *ridge]), Z.T @ values[own])
        np.testing.assert_allclose([biases[row], *rows[row]], expected, atol=1e-9)
    without, rows, _ = solve_rows(found, counts, entries.row_sums(values, 0), None, ridge)
    own = entries.coordinates[:, 0] == entries.coordinates[0, 0]
    expected = np.linalg.solve(z[own].T @ z[own] + np.diag(ridge), z[own].T @ values[own])
    np.testing.assert_allclose(rows[entries.coordinates[0, 0]], expected, atol=1e-9)
    assert not without.any()


@pytest.mark.parametrize(
    ("coordinates", "shape", "message"),
    [
        ([[0.0, 1.0]], (2, 2), "integers"),
        ([[0, 2]], (2, 2), "below shape"),
        ([[0, -1]], (2, 2), "at least 0"),
        ([[0, 1, 1]], (2, 2), "shape"),
        (np.zeros((0, 2), int), (2, 2), "at least one row"),
        ([[0]], (2,), "two or more"),
    ],
)
def test_wrong_coordinates(coordinates, shape, message):
    with pytest.raises(ValueError, match=message):
        SortedEntries(coordinates, shape)


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


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_they_are_those_of_a_constructor(kind, index, seed):
    rng = np.random.default_rng(seed)
    X = kind(sp.random(20, 9, 0.4, "csr", random_state=rng))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    before = [X.data.copy(), X.indices.copy(), X.indptr.copy()]
    chosen = rng.random(X.nnz) < 0.5
    ends = np.concatenate([[0], np.cumsum(chosen)])[X.indptr]
    layout = X.data[chosen].astype(np.float32), X.indices[chosen], ends
    for found, expected in [
        (of_same_shape(X, *layout), kind(layout, X.shape)),
        (of_same_shape(X, 2 * X.data), 2 * X),
    ]:
        assert type(found) is type(expected)
        assert found.dtype == expected.dtype
        assert found.indices.dtype == found.indptr.dtype == index
        found.check_format(full_check=True)
        assert found.has_canonical_format
        assert np.array_equal(found.toarray(), expected.toarray())
        assert np.array_equal((found.T @ np.ones(20)), expected.T @ np.ones(20))
        assert np.array_equal(found[::-1].toarray(), expected.toarray()[::-1])
    for own, was in zip([X.data, X.indices, X.indptr], before, strict=True):
        assert np.array_equal(own, was)
