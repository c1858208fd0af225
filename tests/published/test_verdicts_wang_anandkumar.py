"""Verdicts on Wang & Anandkumar: sensitivities by enumeration, slips by an example of each."""

import itertools
import math

import numpy as np
import pytest
from plain_moments import all_documents, cube, triple_moment


def apply(T, u):
    return np.einsum("ijk,j,k->i", T, u, u)


def value(T, u):
    return float(np.einsum("ijk,i,j,k", T, u, u, u))


def neighbour(entry, dim):
    """Definition 4.2: the sum over six orders of one entry."""
    T = np.zeros((dim,) * 3)
    for order in itertools.permutations(entry):
        T[order] += 1
    return T


def steps(T, u, n_steps):
    for _ in range(n_steps):
        u = apply(T, u)
        u = u / np.linalg.norm(u)
    return u


def test_power_iterations_without_noise_tell_neighbours_apart():
    """Algorithms 1 and 2 are functions of the data: two neighbours, two outputs, always."""
    rng = np.random.default_rng(0)
    start = np.ones(3) / math.sqrt(3)
    T = cube(np.array([2.0, 0, 0])) + cube(np.array([0, 1.0, 0]))
    outputs = [steps(x, start, 5) for x in (T, T + neighbour((0, 1, 2), 3))]
    assert np.linalg.norm(outputs[0] - outputs[1]) > 1e-3
    samples = rng.standard_normal((50, 3))
    other = samples.copy()
    other[0] = -other[0]
    means = [(x.T @ (x @ start) ** 2) / 50 for x in (samples, other)]
    assert np.linalg.norm(means[0] - means[1]) > 1e-3


def test_deflation_by_the_unnormalised_iterate_leaves_the_component():
    """Algorithm 2, step 7: xi with u-tilde for u takes away too much or too little."""
    v, size = np.array([1.0, 0, 0]), 3.0
    T = size * cube(v)
    u = np.array([0.6, 0.8, 0])
    unnormalised = apply(T, u)  # the sums of the step before, from which u was made
    after = unnormalised / np.linalg.norm(unnormalised)
    mended = apply(T, after) - size * (v @ after) ** 2 * v
    printed = apply(T, after) - size * (v @ unnormalised) ** 2 * v
    np.testing.assert_allclose(mended, 0, atol=1e-12)
    assert np.linalg.norm(printed) > 0.1


def test_the_eigenvalue_of_algorithm_2_is_one_iterate_behind():
    T = 2 * cube(np.array([1.0, 0, 0])) + cube(np.array([0, 1.0, 0]))
    u = np.array([0.6, 0.7, 0.2])
    before = u / np.linalg.norm(u)
    unnormalised = apply(T, before)
    after = unnormalised / np.linalg.norm(unnormalised)
    # The lagged value costs nothing: it is u_t' u-tilde.
    assert before @ unnormalised == pytest.approx(value(T, before))
    assert abs(value(T, before) - value(T, after)) > 0.1


def vectors(seed, dim, n):
    """Directions of every degree of concentration, and corners of the cube."""
    rng = np.random.default_rng(seed)
    spiked = rng.standard_normal((n, dim)) ** rng.choice([1, 3, 5], size=(n, 1))
    corners = rng.choice([-1.0, 0.0, 1.0], size=(n, dim))
    corners[:, 0] = 1
    U = np.vstack([spiked, corners])
    return U / np.linalg.norm(U, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("entry", "exact"),
    [((0, 0, 0), 6.0), ((0, 0, 1), math.sqrt(20)), ((0, 1, 2), 2 * math.sqrt(3))],
)
def test_entry_bounds_hold_and_are_attained(entry, exact, seed):
    difference = neighbour(entry, 4)
    largest = 0.0
    for u in vectors([seed, 3], 4, 1500):
        top = np.abs(u).max()
        norm = np.linalg.norm(apply(difference, u))
        assert norm <= exact * top**2 * (1 + 1e-12) <= 6 * top**2 * (1 + 1e-12)
        assert abs(value(difference, u)) <= 6 * top**3 * (1 + 1e-12)
        largest = max(largest, norm / top**2)
    assert largest == pytest.approx(exact)
    flat = np.ones(4) / 2
    assert abs(value(difference, flat)) == pytest.approx(6 * 0.5**3)


def test_document_bounds_hold_and_are_nearly_attained(seed):
    """|.(I, u, u)| of two documents: below 2 |u|_inf^2, sqrt(26) / 3 at most in the search."""
    moments = [triple_moment(x) for x in [*all_documents(4), *all_documents(4, 5)]]
    largest = 0.0
    for u in vectors([seed, 4], 4, 150):
        top = np.abs(u).max()
        answers = np.array([apply(M, u) for M in moments])
        values = answers @ u
        gaps = np.linalg.norm(answers[:, None] - answers[None], axis=2)
        assert gaps.max() <= math.sqrt(26) / 3 * top**2 + 1e-9 <= 2 * top**2
        assert np.ptp(values) <= 2 * top**3 + 1e-9
        largest = max(largest, gaps.max() / top**2)
    assert largest == pytest.approx(math.sqrt(26) / 3)


def test_batched_starts_share_one_sensitivity(seed):
    """S = max over words of the root of a sum of fourth powers; sixth powers for the values."""
    rng = np.random.default_rng([seed, 5])
    moments = [triple_moment(x) for x in all_documents(5)]
    for _ in range(20):
        U = vectors(rng.integers(1_000_000), 5, 4)
        answers = np.array([[apply(M, u) for u in U] for M in moments])
        gaps = np.linalg.norm(answers[:, None] - answers[None], axis=(2, 3))
        assert gaps.max() <= 2 * math.sqrt((U**4).sum(axis=0).max()) + 1e-9
        values = np.einsum("nli,li->nl", answers, U)
        gaps = np.linalg.norm(values[:, None] - values[None], axis=2)
        assert gaps.max() <= 2 * math.sqrt((U**6).sum(axis=0).max()) + 1e-9
        # Less than the starts one by one, each with noise of its own.
        one_by_one = np.linalg.norm(np.abs(U).max(axis=1) ** 2)
        assert math.sqrt((U**4).sum(axis=0).max()) <= one_by_one + 1e-12


def test_general_samples_move_a_cube_by_two(seed):
    rng = np.random.default_rng([seed, 6])
    for _ in range(200):
        x, y, u = (v / np.linalg.norm(v) for v in rng.standard_normal((3, 5)))
        assert np.linalg.norm((x @ u) ** 2 * x - (y @ u) ** 2 * y) <= 2
    assert np.linalg.norm(cube(x) - cube(-x)) == pytest.approx(2)
