"""What each tuned constant of mixtures is worth, one at a time.

Each is set to its neutral value in turn. The change of the log-likelihood of new samples behind
that of the law is in percent, with its standard error over three draws of laws of
``laws_of_mixtures``; positive numbers say that the constant helps. Constants of intervals are
judged by the interval score of 90% intervals that are given, in deviations of groups: their width,
and twenty times what they miss a mean by (Gneiting and Raftery, 2007).

    python -m benchmarks ablations_of_mixtures
    python -m benchmarks ablations_of_mixtures --quick
"""

import math
import warnings
from functools import partial

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtr
from scipy.stats import gamma

from benchmarks.ablations import TITLE, Ablation, changes, constant, shown
from benchmarks.laws_of_mixtures import NEW, RANGES, Lab, Law, patients
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateGaussianMixture, scale_by_ranges
from sktensor_dp.gaussian_mixture import defaults
from sktensor_dp.mixtures.gaussians import log_density

__all__ = ["ABLATIONS", "run"]

SEEDS = 3
# Laws and numbers of samples at which noise decides.
SETS = (
    (Law("stretched, d 4, k 3", 3, 4, 10.0), 5000),
    (Law("stretched, d 10, k 5", 5, 10, 10.0), 20_000),
    (Law("one cloud, d 5, asked for 4", 1, 5, 10.0, asked=4), 5000),
    (Law("few samples, round, d 10, k 5", 5, 10), 5000),
    (Law("few samples, stretched, d 8, k 3", 3, 8, 10.0), 3000),
    (Law("few samples, round, d 2, k 3", 3, 2), 2000),
    (Law("heavy tails (t 5), d 4, k 3, 6 apart", 3, 4, 10.0, 6.0, degrees=5.0), 20_000),
    (Law("alike in 3 wide columns, d 5, k 3, 6 apart", 3, 5, apart=6.0, n_wide=3), 10_000),
    (Law("overlapping (2.5 apart), d 5, k 4, asked for 6", 4, 5, 10.0, 2.5, asked=6), 20_000),
)
EQUAL = dict.fromkeys(defaults.FRACTIONS, 1 / len(defaults.FRACTIONS))
ABLATIONS: tuple[Ablation, ...] = (
    Ablation("FRACTIONS equal", (), {"gaussian_mixture.defaults.FRACTIONS": EQUAL}),
    constant("gaussian_mixture.OFFSET", 1.0),
    constant("gaussian_mixture.SPARE", 0),
    constant("gaussian_mixture.SPHERES", 1),
    constant("gaussian_mixture.SPHERE_STEPS", 1),
    constant("gaussian_mixture.ROWS_A_STEP", math.inf),
    constant("gaussian_mixture.QUANTILE", 0.999),
    constant("mixtures.NOISE_OF_SQUARES", 0.0),
    constant("mixtures.LARGE_NOISE", math.inf),
    constant("mixtures.MOST_GAIN", 6.0),
    Ablation(
        "steps of merged groups", (), {"gaussian_mixture.recipe.nearest": lambda one, *_: one}
    ),
)
# Laboratory values of patients by normal ones; samples and epsilon. Logs of LDH deviate by a half.
LABS: tuple[tuple[str, Lab, int, float], ...] = (
    ("normal lab", lambda kind, z: 300 + 100 * (0.5 * kind - 0.5 + 0.5 * z), 6000, 2.0),
    ("LDH", lambda kind, z: 120 + np.exp([4.0, 4.4, 5.0][kind] + 0.5 * z), 6000, 2.0),
    ("glucose", lambda kind, z: 86 + [10, 24, 15][kind] * gamma.ppf(ndtr(z), 2), 4000, 4.0),
    ("CRP", lambda kind, z: 3 * np.exp([1.0, 1.6, 3.3][kind] + 0.8 * z), 6000, 4.0),
)
FITS = 8  # of each of `SEEDS` draws
OF_INTERVALS = (
    constant("mixtures.NORMAL", 0.0),
    constant("mixtures.LIKELY", math.inf),
)
ABLATIONS += OF_INTERVALS


def interval_scores(lab: Lab, n: int, epsilon: float, n_seeds: int) -> np.ndarray:
    """Mean scores of intervals of patients' means, by draw."""
    found, scaler = [], scale_by_ranges(RANGES)
    for seed in range(n_seeds):
        scores = []
        for place in range(FITS):
            X, means = patients(lab, n, np.random.default_rng([seed, place]))
            with reproducible_noise(seed), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = PrivateGaussianMixture(3, data_norm="auto", epsilon=epsilon, random_state=0)
                model.fit(scaler.fit_transform(X))
                ends = model.means_interval()
            means = scaler.transform(means)
            apart = np.linalg.norm((model.means_[:, None] - means)[:, :, :3], axis=2)
            rows, right = linear_sum_assignment(apart)
            low, high = np.take(ends, rows, axis=1)
            missed = np.maximum(np.maximum(low - means[right], means[right] - high), 0.0)
            scores.append((high - low + 20 * missed) / np.sqrt(model.variances_[rows]))
        found.append(np.nanmean(np.concatenate(scores)))
    return np.array(found)


def errors(law: Law, n: int, n_seeds: int) -> np.ndarray:
    """Log-likelihood behind that of the law at epsilon 1, by draw."""
    found = []
    for seed in range(n_seeds):
        rng = np.random.default_rng([seed, n])
        model = law.draw(rng)
        X, _ = law.sample(model, n, rng)
        new, _ = law.sample(model, NEW, rng)
        norm = float(np.quantile(np.linalg.norm(X, axis=1), 0.99))
        with reproducible_noise(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            k = law.asked or law.n_groups
            fitted = PrivateGaussianMixture(k, data_norm=norm, random_state=seed).fit(X)
            found.append(log_density(law.log_joint(model, new)).mean() - fitted.score(new))
    return np.array(found)


def run(report: Report) -> None:
    """Measure all constants on all laws."""
    rows: list[list[Cell]] = []
    n_seeds = 1 if report.quick else SEEDS
    for law, n in SETS[: 1 if report.quick else None]:
        of_fits = ABLATIONS[: -len(OF_INTERVALS)]
        for part, *changed in changes(of_fits, partial(errors, law, n, n_seeds)):
            rows.append([part, f"{law.name}, n = {n}", 1.0, *changed])
    for name, lab, n, epsilon in LABS[: 1 if report.quick else None]:
        measured = partial(interval_scores, lab, n, epsilon, n_seeds)
        for part, *changed in changes(OF_INTERVALS, measured):
            rows.append([part, f"intervals, {name}, n = {n}", epsilon, *changed])
    report.table(
        TITLE, ["part", "set", "epsilon", "change", "standard error"], shown(ABLATIONS, rows),
        file="ablations_of_mixtures", how="three draws",
    )  # fmt: skip
