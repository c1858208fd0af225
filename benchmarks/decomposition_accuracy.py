"""Accuracy of the orthogonal decompositions under isotropic symmetric noise.

Prints the root-mean-square distance |v - v_hat| of matched components, averaged
over trials, with its standard error, and the time per decomposition.

    python benchmarks/decomposition_accuracy.py --dim 10 --components 10 --trials 100
"""

import argparse
import time

import numpy as np
from scipy.optimize import linear_sum_assignment

from sktensor_dp.tensor import (
    orthogonal_decomposition,
    robust_tensor_power_method,
    symmetric_outer_sum,
)
from sktensor_dp.tensor.power_method import simultaneous_power_iteration
from sktensor_dp.tensor.symmetric import coordinates_to_symmetric, n_unique

METHODS = {
    "robust": robust_tensor_power_method,
    "simultaneous": simultaneous_power_iteration,
    "both": orthogonal_decomposition,
}
SCALES = (0.03, 0.1, 0.2, 0.3)


def noisy_tensor(dim, n_components, scale, rng):
    vectors = np.linalg.qr(rng.standard_normal((dim, n_components)))[0].T
    weights = np.linspace(1.0, 3.0, n_components)
    noise = coordinates_to_symmetric(rng.standard_normal(n_unique(dim, 3)), dim, 3)
    return vectors, symmetric_outer_sum(weights, vectors) + scale * noise


def matched_distance(vectors, estimates):
    squared = 2.0 - 2.0 * vectors @ estimates.T
    return np.sqrt(np.mean(squared[linear_sum_assignment(squared)]))


def run(dim, n_components, trials):
    print(f"dim {dim}, {n_components} components, weights 1 to 3, {trials} trials")
    for scale in SCALES:
        for name, method in METHODS.items():
            errors, start = [], time.perf_counter()
            for trial in range(trials):
                rng = np.random.default_rng([trial, dim, n_components])
                vectors, tensor = noisy_tensor(dim, n_components, scale, rng)
                estimates = method(tensor, n_components, random_state=trial)[1]
                errors.append(matched_distance(vectors, estimates))
            milliseconds = 1e3 * (time.perf_counter() - start) / trials
            spread = np.std(errors) / np.sqrt(trials)
            print(
                f"  noise {scale:4.2f}  {name:12s} error {np.mean(errors):.4f} "
                f"+- {spread:.4f}  {milliseconds:6.1f} ms"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dim", type=int, default=10)
    parser.add_argument("--components", type=int, default=10)
    parser.add_argument("--trials", type=int, default=100)
    options = parser.parse_args()
    run(options.dim, options.components, options.trials)


if __name__ == "__main__":
    main()
