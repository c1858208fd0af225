"""Tucker completion: exact recovery, form, and zero where there is only noise."""

import numpy as np
import pytest
from small_tensors import everything

from sktensor_dp.tensor.sorted_entries import SortedEntries, tucker_values
from sktensor_dp.tensor.tucker_completion import complete_tucker

PROBLEMS = [
    ((40, 30), (2, 2)),
    ((30, 20, 15), (3, 2, 2)),
    ((14, 12, 10, 8), (2, 2, 2, 2)),
]


def tucker_problem(seed, shape, ranks, share=0.5):
    """Values of unit variance at all coordinates, with biases, and those observed."""
    rng = np.random.default_rng([seed, *shape])
    where = everything(shape)
    factors = [
        np.linalg.qr(rng.standard_normal((n, r)))[0] for n, r in zip(shape, ranks, strict=True)
    ]
    values = tucker_values(rng.standard_normal(ranks), factors, where)
    biases = 0.5 * sum(rng.standard_normal(n)[where[:, m]] for m, n in enumerate(shape))
    values = values / values.std() + biases + 2.0
    chosen = rng.choice(len(where), round(share * len(where)), replace=False)
    return where, values, chosen, rng


@pytest.mark.parametrize(("shape", "ranks"), PROBLEMS, ids=str)
def test_exact_values_are_recovered(seed, shape, ranks):
    where, values, chosen, _ = tucker_problem(seed, shape, ranks)
    entries = SortedEntries(where[chosen], shape)
    model = complete_tucker(entries, values[chosen], ranks, max_iter=300, random_state=seed)
    error = np.linalg.norm(model.predict(where) - values) / np.linalg.norm(values - values.mean())
    assert error < 1e-3
    for n, r, factor in zip(shape, ranks, model.factors, strict=True):
        assert factor.shape == (n, r)
        np.testing.assert_allclose(factor.T @ factor, np.eye(r), atol=1e-10)
    # All-orthogonal, slices by decreasing norm.
    for mode, r in enumerate(ranks):
        unfolded = np.moveaxis(model.core, mode, 0).reshape(r, -1)
        gram = unfolded @ unfolded.T
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-9 * np.trace(gram))
        assert (np.diff(np.diag(gram)) <= 0).all()


def test_noise_is_averaged(seed):
    shape, ranks, sigma = (30, 30, 30), (2, 2, 2), 0.5
    where, values, chosen, rng = tucker_problem(seed, shape, ranks)
    noisy = values[chosen] + sigma * rng.standard_normal(len(chosen))
    model = complete_tucker(SortedEntries(where[chosen], shape), noisy, ranks)
    error = np.sqrt(np.mean((model.predict(where) - values) ** 2))
    # 279 parameters from 13500 values: sigma sqrt(279 / 13500) = .072; the mean errs by 1.
    assert error < 0.1
    # Relative standard deviation sqrt(2 / 13500) = .012, times five.
    assert model.noise_variance == pytest.approx(sigma**2, rel=0.06)


@pytest.mark.parametrize("shape", [(60, 40), (30, 25, 20)], ids=str)
def test_pure_noise_leaves_no_core(seed, shape):
    rng = np.random.default_rng([seed, *shape])
    where = everything(shape)
    values = 3.0 + rng.standard_normal(len(where))
    ranks = (2,) * len(shape)
    model = complete_tucker(SortedEntries(where, shape), values, ranks, random_state=seed)
    assert not model.core.any()
    # What is left of the biases: at most sqrt(100 / 2400) = .2, sqrt(75 / 15000) = .07.
    assert np.sqrt(np.mean((model.predict(where) - 3.0) ** 2)) < 0.2
    assert model.noise_variance == pytest.approx(1.0, rel=0.2)


def test_a_known_noise_level_removes_the_core():
    where, values, chosen, _ = tucker_problem(0, (15, 12, 10), (2, 2, 2))
    entries = SortedEntries(where[chosen], (15, 12, 10))
    kept = complete_tucker(entries, values[chosen], (2, 2, 2))
    assert kept.core.any()
    removed = complete_tucker(entries, values[chosen], (2, 2, 2), noise_variance=100.0)
    assert not removed.core.any()


def test_rows_never_seen_get_the_bias_part(seed):
    where, values, chosen, _ = tucker_problem(seed, (15, 12, 10), (2, 2, 2), 0.7)
    chosen = chosen[where[chosen, 0] != 4]
    model = complete_tucker(SortedEntries(where[chosen], (15, 12, 10)), values[chosen], (2, 2, 2))
    assert model.core.any()
    assert model.biases[0][4] == 0
    expected = model.mean + model.biases[1][3] + model.biases[2][7]
    np.testing.assert_allclose(model.predict([[4, 3, 7]]), expected, atol=1e-9)


def test_without_biases(seed):
    shape, ranks = (20, 18, 16), (2, 2, 2)
    where, values, chosen, rng = tucker_problem(seed, shape, ranks)
    factors = [np.linalg.qr(rng.standard_normal((n, 2)))[0] for n in shape]
    values = tucker_values(100 * rng.standard_normal(ranks), factors, where)
    entries = SortedEntries(where[chosen], shape)
    model = complete_tucker(entries, values[chosen], ranks, biases=False, max_iter=300)
    assert not any(b.any() for b in model.biases)
    assert np.linalg.norm(model.predict(where) - values) < 1e-3 * np.linalg.norm(values)


def test_additive_and_constant_values():
    where = everything((5, 4))
    entries = SortedEntries(where, (5, 4))
    constant = complete_tucker(entries, np.full(20, 7.0), (2, 2))
    np.testing.assert_allclose(constant.predict(where), 7.0)
    assert not constant.core.any()


@pytest.mark.parametrize("ranks", [(1,), (0, 1), (3, 1)])
def test_wrong_ranks(ranks):
    with pytest.raises(ValueError, match="ranks"):
        complete_tucker(SortedEntries([[0, 0], [1, 1]], (2, 2)), [1.0, 2.0], ranks)
