"""Persons fold in their own entries where single entries are protected."""

import numpy as np
import pytest
from small_completions import INF, MODELS, PERTURBATIONS, build, table

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
all_models = pytest.mark.parametrize("model", MODELS)


@all_models
@pytest.mark.parametrize("shape", [(30, 8), (30, 8, 6)], ids=str)
@pytest.mark.parametrize("perturbation", [*PERTURBATIONS, "auto"])
def test_persons_fold_in_where_entries_are_protected(perturbation, shape, model):
    """Persons that the fit never saw are told from each other by their own entries."""
    X, y, _ = table((40, *shape[1:]))
    known = X[:, 0] < 30
    options = {"perturbation": perturbation, "epsilon": INF, "shape": shape}
    fitted = build(model, **options).fit(X[known], y[known])
    own = fitted.fold_in(X[~known], y[~known])
    np.testing.assert_array_equal(own.units, np.arange(30, 40))
    error = np.mean((own.predict(X[~known]) - y[~known]) ** 2)
    assert error < 0.9 * np.mean((fitted.predict(X[~known]) - y[~known]) ** 2)
    assert np.isfinite(fitted.fold_in([[0, *[50] * (len(shape) - 1)]], [1.0]).parameters).all()


@all_models
def test_without_noise_to_fold_in_is_to_predict(model):
    """Rows of the fit's own persons, found again from their entries and the other factors."""
    X, y, _ = table((40, 8, 6))
    y = np.clip(y, -4, 4)
    fitted = build(model, epsilon=INF).fit(X, y)
    found = fitted.fold_in(X, y).predict(X)
    # Ridges of the two differ, and slopes are a unit's own; errors of either are alike.
    spread = np.mean((fitted.predict(X) - y) ** 2)
    assert np.mean((found - y) ** 2) < 1.1 * spread + 1e-6
