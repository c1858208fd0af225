import numpy as np
import pytest

from sktensor_dp.topics.moments import project_rows


@pytest.mark.parametrize("size", [1, 2, 7, 300])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_projection_satisfies_the_optimality_conditions(seed, size, scale):
    values = scale * np.random.default_rng(seed).normal(size=(50, size))
    projected = project_rows(values)
    assert (projected >= 0).all()
    # Rounding of values - threshold is relative to the values.
    slack = 1e-12 * max(scale, 1.0) * size
    np.testing.assert_allclose(projected.sum(axis=1), 1, atol=slack)
    # Karush, Kuhn, Tucker: the shift is the same where positive, and not less elsewhere.
    shift = values - projected
    threshold = np.where(projected > 0, shift, -np.inf).max(axis=1, keepdims=True)
    kept = projected > 0
    assert np.abs(np.where(kept, shift - threshold, 0)).max() <= slack
    assert (np.where(kept, 0, values - threshold) <= slack).all()


def test_points_of_the_simplex_stay(seed):
    points = np.random.default_rng(seed).dirichlet(np.full(9, 0.3), size=40)
    np.testing.assert_allclose(project_rows(points), points, atol=1e-14)


def test_no_other_point_is_nearer(seed):
    rng = np.random.default_rng(seed)
    value = rng.normal(size=(1, 5))
    nearest = np.linalg.norm(project_rows(value) - value)
    others = rng.dirichlet(np.ones(5), size=2000)
    assert nearest <= np.linalg.norm(others - value, axis=1).min()


def test_rows_do_not_touch_each_other_and_input_stays():
    values = np.array([[3.0, 0.0, 0.0], [-5.0, -5.0, -5.0], [0.2, 0.3, 0.9]])
    kept = values.copy()
    whole = project_rows(values)
    np.testing.assert_array_equal(values, kept)
    for row in range(3):
        np.testing.assert_array_equal(whole[row], project_rows(values[row : row + 1])[0])
    np.testing.assert_allclose(whole[1], 1 / 3)


def test_rows_of_large_numbers_are_projected():
    rows = np.array([[1e17, 9e16, -1e17], [-1e20, -1e20, -3e20]])
    np.testing.assert_array_equal(project_rows(rows), [[1, 0, 0], [0.5, 0.5, 0]])
