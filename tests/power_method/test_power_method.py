"""What released components say of samples: projections, scores, reconstructions."""

import numpy as np
import pytest
import scipy.sparse as sp
from small_samples import directions, model, orthonormal_rows

from sktensor_dp import PrivateTensorPowerMethod
from sktensor_dp.tensor import symmetric_outer_sum


def test_projections_and_score():
    X = directions(20_000, 6, 3, np.random.default_rng(0))[0]
    fitted, X = model(epsilon=5.0).fit(X), X[:40]
    np.testing.assert_allclose(np.linalg.norm(fitted.components_, axis=1), 1.0)
    np.testing.assert_allclose(fitted.transform(X), X @ fitted.components_.T)
    T = symmetric_outer_sum(np.full(len(X), 1 / len(X)), X)
    found = symmetric_outer_sum(fitted.weights_, fitted.components_)
    gain = np.sum(T**2) - np.sum((T - found) ** 2)
    for rows in (X, sp.csr_array(X)):
        assert fitted.score(rows) == pytest.approx(gain)


def test_projections_lead_back():
    rng = np.random.default_rng(0)
    for components in (orthonormal_rows(3, 6, rng), rng.normal(size=(3, 6))):
        fitted = PrivateTensorPowerMethod(3)
        fitted.components_, fitted.n_features_in_, fitted._n_features_out = components, 6, 3
        inside, any_ = rng.normal(size=(5, 3)) @ components, rng.normal(size=(5, 6))
        np.testing.assert_allclose(fitted.inverse_transform(fitted.transform(inside)), inside)
        shown = fitted.inverse_transform(fitted.transform(any_))
        # The shortest sample with these projections.
        np.testing.assert_allclose(fitted.transform(shown), fitted.transform(any_))
        assert (np.linalg.norm(shown, axis=1) < np.linalg.norm(any_, axis=1)).all()
    with pytest.raises(ValueError, match="3 columns, one per component; got 2"):
        fitted.inverse_transform(np.ones((2, 2)))
