"""Sorted entries, passes over them and their normal equations, against dense sums."""

import math
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp.tensor import entry_passes
from sktensor_dp.tensor import normal_equations as normal_equations_module
from sktensor_dp.tensor.arrays import of_same_shape
from sktensor_dp.tensor.entry_passes import EntryPasses
from sktensor_dp.tensor.normal_equations import (
    core_equations,
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

SHAPES = [(5, 7), (40, 30), (6, 6), (6, 5, 4), (4, 3, 5, 2)]


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
def block_size(request, cache_of, monkeypatch):
    cache_of(request.param)
    monkeypatch.setattr(entry_passes, "_NUMBERS", request.param)


def designs(entries, factors, mode):
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
    passes = EntryPasses(entries)
    return passes.equations(mode, factors, passes.arrange(values), moments)


def full(found):
    return unpack_rows(found.gram, found.moment.shape[1])


@pytest.mark.usefixtures("block_size")
def test_normal_equations_are_sums_over_rows(problem):
    entries, factors, values, _ = problem
    for mode in range(entries.n_modes):
        fibres, others = entries.fibres(mode), [factors[k] for k in entries.others(mode)]
        kronecker = kronecker_rows(others, entries.coordinates[:, entries.others(mode)])
        targets = values[fibres.order]
        for found, z in (
            (equations(entries, mode, factors, values), designs(entries, factors, mode)),
            (normal_equations(fibres, others, targets), kronecker),
        ):
            expected = by_row(entries, mode, z[:, :, None] * z[:, None, :])
            np.testing.assert_allclose(full(found), expected, atol=1e-12)
            expected = by_row(entries, mode, z * values[:, None])
            np.testing.assert_allclose(found.moment, expected, atol=1e-12)
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
def test_equations_of_a_core_form_a_product_of_rows_for_each_fibre(problem, monkeypatch):
    entries, factors, values, _ = problem
    formed = []

    def counted(chosen, coordinates):
        formed.append(len(coordinates))
        return kronecker_rows(chosen, coordinates)

    monkeypatch.setattr(normal_equations_module, "kronecker_rows", counted)
    parts = [a[:, : 1 + k % 3] for k, a in enumerate(factors)]
    z = kronecker_rows(parts, entries.coordinates)
    for found, expected in zip(
        core_equations(entries, parts, values), (z.T @ z, z.T @ values, z.sum(axis=0)), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-11)
    assert sum(formed) in [len(entries.fibres(mode)) for mode in range(entries.n_modes)]


def test_sums_and_counts(problem):
    entries, _, values, _ = problem
    for mode in range(entries.n_modes):
        expected = by_row(entries, mode, values)
        np.testing.assert_allclose(entries.row_sums(values, mode), expected, atol=1e-12)
        counts = by_row(entries, mode, np.ones(len(values)))
        np.testing.assert_array_equal(entries.counts[mode], counts)
        assert entries.counts[mode][-1] == 0  # a row never seen is there
        np.testing.assert_array_equal(np.diff(entries.row_pointers(mode)), counts)
        sorted_rows = entries.sorted_column(mode, mode)
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


def test_values_in_the_order_of_fibres_belong_to_the_same_entries(problem):
    entries, _, values, rng = problem
    passes = EntryPasses(entries)
    arranged = passes.arrange(values)
    for mode, n in enumerate(entries.shape):
        found = passes.row_sums(arranged, mode)
        np.testing.assert_allclose(found, by_row(entries, mode, values), atol=1e-12)
        numbers = rng.standard_normal(n)
        expected = values * numbers[entries.rows(mode)]
        np.testing.assert_array_equal(
            np.sort(arranged * passes.at(numbers, mode)), np.sort(expected)
        )


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_other_values_make_another_matrix_of_the_same_kind(kind, index, seed):
    X = kind(sp.random(20, 9, 0.4, "csr", random_state=seed))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    before, found, expected = X.data.copy(), of_same_shape(X, 2 * X.data), 2 * X
    assert type(found) is type(expected)
    assert found.indices.dtype == found.indptr.dtype == index
    found.check_format(full_check=True)
    assert found.has_canonical_format
    assert np.array_equal(found[::-1].toarray(), expected.toarray()[::-1])
    assert np.array_equal(X.data, before)


@pytest.mark.usefixtures("block_size")
def test_equations_of_tucker_models_are_expectations(problem):
    entries, factors, values, rng = problem
    factors = [a[:, : 1 + k % 3] for k, a in enumerate(factors)]
    n, ranks = entries.n_modes, [a.shape[1] for a in factors]
    core, size = rng.standard_normal(ranks), math.prod(ranks)
    # Second moments are those of a few equally likely draws of each row, and of the core.
    draws = [a + rng.standard_normal((4, *a.shape)) for a in factors]
    cores = core + rng.standard_normal((2, *ranks))
    second = [np.mean([packed_products(a) for a in drawn], axis=0) for drawn in draws]
    flat = cores.reshape(2, size)
    pairs = np.arange(2 * n).reshape(2, n).T.ravel()
    of_core = (flat.T @ flat / 2).reshape(ranks * 2).transpose(pairs)
    of_core = of_core.reshape([rank**2 for rank in ranks])
    passes = EntryPasses(entries)
    arranged = passes.arrange(values)
    for mode in range(n):
        found = passes.tucker_equations(mode, factors, arranged, second, core, of_core)
        others = list(entries.others(mode))
        expected = 0.0
        for chosen in product(range(4), repeat=len(others)):
            rows = [draws[k][i] for k, i in zip(others, chosen, strict=True)]
            kronecker = kronecker_rows(rows, entries.coordinates[:, others])
            for one in cores:
                z = kronecker @ np.moveaxis(one, mode, -1).reshape(-1, ranks[mode])
                expected += by_row(entries, mode, z[:, :, None] * z[:, None, :])
        np.testing.assert_allclose(full(found), expected / 2 / 4 ** len(others), atol=1e-9)
        z = kronecker_rows([factors[k] for k in others], entries.coordinates[:, others])
        z = z @ np.moveaxis(core, mode, -1).reshape(-1, ranks[mode])
        np.testing.assert_allclose(found.design, by_row(entries, mode, z), atol=1e-10)
        moment = by_row(entries, mode, z * values[:, None])
        np.testing.assert_allclose(found.moment, moment, atol=1e-10)
    z = kronecker_rows(factors, entries.coordinates)
    np.testing.assert_allclose(passes.core_sums(factors, arranged).ravel(), values @ z, atol=1e-10)
