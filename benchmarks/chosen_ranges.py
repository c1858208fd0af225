"""Norms and ranges that a noisy histogram chooses, beside those that somebody knew.

Mixtures: 20,000 samples of three Gaussians of unit variance, 4 or 6 apart, in 8 dimensions, about
zero or three from it along each axis; the error is the mean distance of a mean from its estimate,
and a good public norm is the one that one sample in a hundred exceeds. Ratings: root mean square
error of held-out ratings at rank 10, for persons by fold_in; the first 5000 people of Jester.
Medians of noise seeds, which are `random_state` too. Bounds of shares of topics by group: 6000
people of 1 + Poisson(1) texts, and some who write far more, or all of one text; draws of the
histogram alone.

    python -m benchmarks chosen_ranges
    python -m benchmarks chosen_ranges --quick     three seeds, no goodbooks
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.pairwise import euclidean_distances

from benchmarks.ratings import RANK, Ratings, goodbooks, jester, movielens
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import NotEnoughDataWarning, PrivateCPCompletion, PrivateGaussianMixture
from sktensor_dp.privacy.answer import Answer
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.queries.query import bins_of
from sktensor_dp.spectral_lda import defaults
from sktensor_dp.spectral_lda.texts_per_person import EDGES

__all__ = ["run"]

N_SAMPLES, N_FEATURES, N_GROUPS, EPSILONS = 20_000, 8, 3, (1.0, 5.0)
COLUMNS = ["data", "epsilon", "error, known", "error, chosen", "ratio", "chosen"]
# Distance of the means of a mixture, and how far it is from zero along each axis.
BOUNDS = ["busy people", "at epsilon 2", "texts of each", "all hidden", "4 times too large"]
N_OTHERS, N_DRAWS = 6000, 4000  # people who write little, and draws of noise
BUSY = {"60": (60, 60), "30 to 90": (30, 90), "10 to 200": (10, 200)}  # texts of those who do not
MIXTURES = ((4.0, 0.0), (4.0, 3.0), (6.0, 0.0), (6.0, 3.0))


def mixture_errors(apart: float, shift: float, epsilon: float, seed: int) -> tuple[float, ...]:
    """Error with a good public norm, error with a chosen one, and the ratio of the norms."""
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.standard_normal((N_FEATURES, N_FEATURES)))[0]
    means = apart / np.sqrt(2) * frame[:N_GROUPS] + shift
    X = means[rng.integers(N_GROUPS, size=N_SAMPLES)]
    X = X + rng.standard_normal(X.shape)
    good = float(np.quantile(np.linalg.norm(X, axis=1), 0.99))
    found: list[float] = []
    norms: tuple[Any, ...] = (good, "auto")
    for norm in norms:
        model = PrivateGaussianMixture(N_GROUPS, data_norm=norm, epsilon=epsilon, random_state=seed)
        with reproducible_noise(seed):
            distances = euclidean_distances(means, model.fit(X).means_)
        # A mean that was not found is as far off as the nearest that was.
        pairs = distances[linear_sum_assignment(distances)]
        missing = np.sort(distances.min(axis=1))[len(pairs) :]
        found.append(float(np.append(pairs, missing).mean()))
    return (*found, model.data_norm_ / good)


def rating_errors(ratings: Ratings, unit: str, epsilon: float, seed: int) -> tuple[Any, ...]:
    """Error with known bounds, error with chosen ones, and these."""
    found: list[float] = []
    ranges: tuple[Any, ...] = (ratings.bounds, "auto")
    for bounds in ranges:
        model = PrivateCPCompletion(
            RANK, bounds=bounds, shape=ratings.shape, epsilon=epsilon, random_state=seed,
            unit_mode=0 if unit == "person" else None,
        )  # fmt: skip
        with reproducible_noise(seed):
            model.fit(ratings.X, ratings.y)
        own = model.fold_in(ratings.X, ratings.y) if unit == "person" else model
        found.append(ratings.error(own.predict(ratings.X_test)))
    return (*found, "{:g} to {:g}".format(*model.bounds_))


def bounds_of_texts(n_busy: int, texts: tuple[int, int], mu: float) -> tuple[float, float]:
    """Fractions of bounds that scale all busy people down, or are over 4 times too large."""
    rng, n_hidden, n_large = np.random.default_rng(0), 0, 0
    part = mu * np.sqrt(defaults.FRACTIONS["shares_by_group"]["norm_histogram"])
    n_draws, n_bins, n = N_DRAWS, len(EDGES) - 1, N_OTHERS + n_busy
    for _ in range(n_draws):
        busy = np.exp(rng.uniform(*np.log(texts), n_busy))
        people = np.append(1 + rng.poisson(float(n_busy > 0), N_OTHERS), busy)
        shares = np.bincount(bins_of(people, EDGES), minlength=n_bins) / n
        sensitivity = np.sqrt(2) / n
        sigma = sensitivity / part
        noisy = shares + sigma * rng.standard_normal(n_bins)
        bound = Answer(noisy, sigma, sensitivity, PrivacyCost(mu=part), n).last_edge(EDGES)
        n_hidden += n_busy > 0 and bound < busy.min()
        n_large += bound > 4 * people.max()
    return n_hidden / n_draws, n_large / n_draws


def busy_people(report: Report) -> None:
    """Measure how often the bound of shares by group hides people who write far more."""
    rows: list[list[Cell]] = []
    mu = gaussian_mu(2.0, 1e-6)
    for number in (0, 15, 20, 30, 45):
        for name, texts in BUSY.items() if number else [("1, as all", (1, 1))]:
            n_busy = round(number / mu)
            rows.append([f"{number} / mu", n_busy, name, *bounds_of_texts(n_busy, texts, mu)])
    report.table("bounds", BOUNDS, rows, file="busy_people", how=f"{N_DRAWS} draws")


def run(report: Report, data: Path) -> None:
    """Measure mixtures, bounds of texts, and the ratings that are there."""
    warnings.simplefilter("ignore", NotEnoughDataWarning)
    norms(report)
    busy_people(report)
    rows: list[list[Cell]] = []
    sets = {"ml-100k": movielens, "jester": jester, "goodbooks": goodbooks}
    for folder, make in sets.items():
        if not (data / folder).is_dir() or (report.quick and make is goodbooks):
            report.note(f"skipped: {folder}")
            continue
        ratings = make(data, 0, True)
        for unit in ("person", "rating"):
            for epsilon in EPSILONS:
                found = [rating_errors(ratings, unit, epsilon, seed) for seed in range(5)]
                known, chosen = (float(np.median(of)) for of in list(zip(*found, strict=True))[:2])
                ratio, name = chosen / known, f"{make.__name__}, {unit}"
                rows.append([name, epsilon, known, chosen, ratio, found[0][2]])
                if epsilon == 5:
                    report.bar(f"{name}, over known bounds", ratio, 1.02)
    how = "medians of seeds 0 to 4"
    report.table("ratings", COLUMNS, rows, file="chosen_ranges", group="ranges", how=how)


def norms(report: Report) -> None:
    """Measure mixtures."""
    rows: list[list[Cell]] = []
    n_seeds = 3 if report.quick else 9
    for apart, shift in MIXTURES:
        for epsilon in EPSILONS:
            runs = [mixture_errors(apart, shift, epsilon, seed) for seed in range(n_seeds)]
            known, chosen, norm = (float(np.median(of)) for of in zip(*runs, strict=True))
            name = f"{apart:g} apart, {'at' if shift == 0 else 'far from'} zero"
            rows.append([name, epsilon, known, chosen, chosen / known, f"{norm:.2f} times"])
            if epsilon == 1:
                report.bar(f"mixture {name}, over a good norm", chosen / known, 1.3)
    how = f"medians of seeds 0 to {n_seeds - 1}"
    report.table("means of mixtures", COLUMNS, rows, file="chosen_ranges", group="norms", how=how)
