import numpy as np

from sktensor_dp.topics.start import varimax


def orthogonal(rng, k):
    return np.linalg.qr(rng.normal(size=(k, k)))[0]


def simple_structure(rng, d, k):
    """Each word loads on one column only, with signs that make columns skew positively."""
    loadings = np.zeros((d, k))
    loadings[np.arange(d), np.arange(d) % k] = rng.gamma(2.0, size=d)
    return loadings


def matched(found, truth):
    similarity = found.T @ truth
    order = np.abs(similarity).argmax(axis=0)
    return found[:, order], order


def test_rotated_simple_structure_is_recovered_with_signs(seed):
    rng = np.random.default_rng(seed)
    truth = simple_structure(rng, 60, 4)
    turned = truth @ orthogonal(rng, 4)
    found, order = matched(varimax(turned), truth)
    assert sorted(order) == list(range(4))
    # At simple structure the criterion is at its maximum; the stopping rule leaves 1e-6.
    np.testing.assert_allclose(found, truth, atol=1e-4 * truth.max())
    # What it was given is nowhere near.
    assert np.abs(matched(turned, truth)[0] - truth).max() > 0.1 * truth.max()


def test_result_is_a_rotation_of_the_same_subspace(seed):
    loadings = np.random.default_rng(seed).normal(size=(30, 5))
    rotated = varimax(loadings)
    np.testing.assert_allclose(rotated @ rotated.T, loadings @ loadings.T, atol=1e-10)
    assert ((rotated**3).sum(axis=0) >= 0).all()


def test_the_criterion_never_falls(seed):
    def variance_of_squares(loadings):
        return (loadings**2).var(axis=0).sum()

    loadings = np.random.default_rng(seed).standard_t(3, size=(40, 4))
    assert variance_of_squares(varimax(loadings)) > variance_of_squares(loadings)


def test_one_column_keeps_its_values():
    column = np.array([[-1.0], [-3.0], [0.5]])
    np.testing.assert_allclose(varimax(column), -column)


def test_zero_loadings_stay_zero():
    assert not varimax(np.zeros((6, 3))).any()
