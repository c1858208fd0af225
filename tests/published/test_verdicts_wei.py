"""Verdicts on Wei et al.: ratios of densities, an attack, and a stochastic descent of its own."""

import math

import numpy as np
import pytest
from scipy.stats import beta


def laplace_log_density(at, centre, scale):
    return float(np.sum(-np.abs(at - centre) / scale - math.log(2 * scale)))


def test_laplace_noise_with_a_public_range_holds(seed):
    """No two tensors that differ in one value within the range have a ratio above e^epsilon."""
    rng = np.random.default_rng([seed, 1])
    low, high, epsilon = -1.0, 3.0, 1.0
    scale, largest = (high - low) / epsilon, 0.0
    for _ in range(300):
        first = rng.choice([low, high, *rng.uniform(low, high, 2)], size=4)
        second = first.copy()
        second[0] = rng.choice([low, high, rng.uniform(low, high)])
        at = first + rng.laplace(scale=scale, size=4)
        ratio = laplace_log_density(at, first, scale) - laplace_log_density(at, second, scale)
        assert ratio <= epsilon + 1e-12
        largest = max(largest, ratio)
    assert largest > 0.9 * epsilon


# Values of two neighbours after the scaling, the scales of their noise, and the log ratio of
# densities at the first, where e^1 is claimed.
APART = {
    # One value is 1 or less, the others are 0: the noise of all follows the one.
    "range, one other": ([0.48, 0], [1, 0], 0.48, 1.0, math.log(7.3)),
    "range, one other, smaller": ([0.25, 0], [1, 0], 0.25, 1.0, math.log(33.9)),
    "range, five others": ([0.217, *[0] * 5], [1, *[0] * 5], 0.217, 1.0, math.log(2.1e4)),
    # A row of two: (4, 5) becomes (-1, 1) or (0, 1), and (4, 3) becomes (1, -1) or (1, 0).
    "bi-scaling": ([-1, 1], [1, -1], 2.0, 2.0, 2.0),
    "minimum and maximum": ([0, 1], [1, 0], 1.0, 1.0, 2.0),
}


@pytest.mark.parametrize("case", APART)
def test_a_range_of_the_values_themselves_tells_neighbours_apart(case):
    first, second, scale, other, ratio = APART[case]
    at = np.array(first, float)
    found = laplace_log_density(at, at, scale) - laplace_log_density(at, np.array(second), other)
    assert found == pytest.approx(ratio, abs=0.03)
    assert found > 1


def algorithm_2(x, n_steps, rng, n_runs, epsilon=1.0, clip=1.0, rate=0.05, start=0.5):
    """Algorithm 2 on a tensor of one entry, rank 1, many runs at once; lambda = 0."""
    a, b, c = start * rng.standard_normal((3, n_runs))
    for _ in range(n_steps):
        a = a - rate * 2 * (a * b * c - x) * b * c
        b = b - rate * 2 * (a * b * c - x) * a * c
        gradient = 2 * (a * b * c - x) * a * b
        gradient = gradient / np.maximum(1, np.abs(gradient) / clip)
        # Density exp(-epsilon |n| / 2 m) in one dimension is Laplace's.
        c = c - rate * (gradient + rng.laplace(scale=2 * clip / epsilon, size=n_runs))
        # The print has no guard against runs that diverge; those say nothing here.
        a, b = np.clip(a, -1e3, 1e3), np.clip(b, -1e3, 1e3)
    return a, b, c


def test_exact_updates_give_the_value_away_at_a_known_start():
    """One step of A: no noise has been added yet, so that epsilon is infinite."""
    outputs = []
    for x in (1.0, -1.0):
        rng = np.random.default_rng(5)
        outputs.append([algorithm_2(x, 1, rng, 1)[0] for _ in range(2)])
    a = np.array(outputs)[:, 0, 0]
    assert abs(a[0] - a[1]) > 1e-3


def test_an_attack_finds_more_than_epsilon_from_a_secret_start():
    """The product of what is released has the sign of the value, most of the time."""
    n_runs, confidence = 4000, 0.99
    rng = np.random.default_rng(7)
    hits = [int((np.prod(algorithm_2(x, 100, rng, n_runs), axis=0) > 0).sum()) for x in (1.0, -1.0)]
    # Clopper-Pearson, both ends: epsilon is at least the log of a ratio of rates.
    true_rate = beta.ppf((1 - confidence) / 2, hits[0], n_runs - hits[0] + 1)
    false_rate = beta.ppf((1 + confidence) / 2, hits[1] + 1, n_runs - hits[1])
    assert math.log(true_rate / false_rate) > 1.9


def test_epsilon_spent_at_every_step_adds_up():
    """Noise for epsilon at each of T steps on the same value: ratios multiply."""
    n_steps, epsilon, clip = 20, 1.0, 1.0
    scale = 2 * clip / epsilon
    # Gradients at the two ends of the clip, as of values that pull either way.
    outputs = np.full(n_steps, clip)
    ratio = laplace_log_density(outputs, clip, scale) - laplace_log_density(outputs, -clip, scale)
    assert ratio == pytest.approx(n_steps * epsilon)


def test_two_tensors_have_no_common_optimum():
    """(6) and (7) are argued at a C that minimises both objectives, which differ by their data."""
    z, x, y = np.array([1.0, 2.0]), np.array([1.0, 1.0]), np.array([3.0, 1.0])
    minimisers = [z @ values / (z @ z) for values in (x, y)]
    assert abs(minimisers[0] - minimisers[1]) > 0.3


def descend(T, start, order, rate, n_passes):
    """Steps 2 to 11 of Algorithm 2 without noise: rank 1, lambda = 0, one entry at a time."""
    a, b, c = (list(x) for x in start)
    largest = 0.0
    for _ in range(n_passes):
        for i, j, k in order:
            x = T[i, j, k]
            a[i] -= rate * 2 * (a[i] * b[j] * c[k] - x) * b[j] * c[k]
            b[j] -= rate * 2 * (a[i] * b[j] * c[k] - x) * a[i] * c[k]
            gradient = 2 * (a[i] * b[j] * c[k] - x) * a[i] * b[j]
            largest = max(largest, abs(gradient))
            c[k] -= rate * gradient
    return np.array(c), largest


def test_output_moves_by_more_than_two_tau_l_eta():
    """Ten passes of a non-convex descent; L is the largest gradient that it met."""
    side, rate, tau = 20, 0.02, 10
    rng = np.random.default_rng(1)
    # Two slices, each of rank 1, compete for the one component: near a tie one value decides.
    signs = np.sign(rng.standard_normal((4, side)))
    start = [0.3 * rng.standard_normal(n) for n in (side, side, 2)]
    order = [tuple(x) for x in rng.permutation(np.argwhere(np.ones((side, side, 2))))]
    ratios = []
    for strength in (0.612, 0.619, 0.626):
        T = np.stack([np.outer(*signs[:2]), strength * np.outer(*signs[2:])], axis=2)
        neighbour = T.copy()
        neighbour[0, 0, 0] *= -1
        found = [descend(x, start, order, rate, tau) for x in (T, neighbour)]
        moved = np.linalg.norm(found[0][0] - found[1][0])
        ratios.append(moved / (2 * tau * rate * max(x[1] for x in found)))
    assert max(ratios) > 3


def test_a_users_values_together_have_no_bound():
    """epsilon is for one value: a slice of n values has n times it, and its row is released."""
    n_values, epsilon, width = 50, 1.0, 4.0
    scale = width / epsilon
    at = np.zeros(n_values)
    ratio = laplace_log_density(at, 0.0, scale) - laplace_log_density(at, width, scale)
    assert ratio == pytest.approx(n_values * epsilon)
    # Rows a_i of Algorithms 2 and 3, the user's own, are solved from the values exactly.
    Z = np.random.default_rng(9).standard_normal((n_values, 3))
    rows = [np.linalg.lstsq(Z, values, rcond=None)[0] for values in (np.ones(n_values), -Z[:, 0])]
    assert np.linalg.norm(rows[0] - rows[1]) > 0.5
