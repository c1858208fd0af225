"""Mixtures of known laws, beside scikit-learn and private k-means.

One property at a time is changed of a base law (four groups, condition 10, five columns, 4 apart,
20,000 samples), and some corners. Draw s of a law comes from ``default_rng([s, n])``; fits have
noise seed s and random_state s. What is shown is behind the law's own labels and density on 10,000
further samples: adjusted Rand index, and log-likelihood a sample. *Cover* is the share of intervals
(level .9) that hold the law's mean; diffprivlib is optional, in an environment of its own.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln, ndtri
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from benchmarks.lsh_trees import lsh_tree_means
from benchmarks.peers import diffprivlib, installed
from benchmarks.power_method import DELTA, Floats, orthonormal_rows
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateGaussianMixture
from sktensor_dp.mixtures.gaussians import Gaussians, log_density

__all__ = ["RANGES", "Law", "patients", "run"]

EPSILONS = (0.5, 1.0, 4.0, math.inf)
SEEDS = 3
NEW = 10_000


@dataclass(frozen=True)
class Law:
    """Mixture that is drawn anew for every seed, and how many groups are asked for."""

    name: str
    n_groups: int
    n_features: int
    condition: float = 1.0  # of the covariances
    apart: float = 4.0  # least distance of means, in deviations along it
    asked: int = 0  # as many as there are where it is 0
    degrees: float = math.inf  # of freedom, of heavy tails
    on_a_line: bool = False
    equally_near: bool = False  # all means as far from each other
    unequal: bool = False  # weights in proportion to 1, 2, ...
    n_wide: int = 0  # last columns, in which groups are alike and vary three times as much
    n: int = 20_000  # samples

    def draw(self, rng: np.random.Generator) -> Gaussians:
        """Draw means and covariances."""
        k, d = self.n_groups, self.n_features
        stretches = np.exp(rng.uniform(0, math.log(self.condition), (k, d)))
        stretches /= np.exp(np.log(stretches).mean(axis=1, keepdims=True))
        frames = np.linalg.qr(rng.standard_normal((k, d, d)))[0]
        covariances = (frames * stretches[:, None, :]) @ frames.swapaxes(1, 2)
        means = rng.standard_normal((k, d))
        if self.on_a_line:
            means = np.outer(np.arange(k), np.eye(d)[0])
        if self.equally_near:
            means = orthonormal_rows(k, d, rng)
        if k > 1:
            means *= self.apart / least_distance(means, covariances)
        if self.n_wide:
            wide = np.arange(d) >= d - self.n_wide
            means, spreads = means * ~wide, 1 + 2.0 * wide
            means *= self.apart / least_distance(means, covariances)
            covariances = covariances * np.outer(spreads, spreads)
        weights = np.arange(1.0, k + 1) if self.unequal else np.ones(k)
        return Gaussians(weights / weights.sum(), means - means.mean(axis=0), covariances)

    def sample(self, model: Gaussians, n: int, rng: np.random.Generator) -> tuple[Floats, Any]:
        """Draw samples, and the group of each."""
        chosen = rng.choice(len(model.weights), size=n, p=model.weights)
        X = model.sample(chosen, rng)
        if math.isfinite(self.degrees):
            tails = np.sqrt(self.degrees / rng.chisquare(self.degrees, (n, 1)))
            X = model.means[chosen] + (X - model.means[chosen]) * tails
        return X, chosen

    def log_joint(self, model: Gaussians, X: Floats) -> Floats:
        """Log of weight times density of each row and group; with heavy tails of Student's law."""
        found = model.log_joint(X)
        if math.isinf(self.degrees):
            return found
        squares = 2 * (model.log_scales - found)  # of whitened rows
        d, nu = self.n_features, self.degrees
        constant = gammaln((nu + d) / 2) - gammaln(nu / 2) - d / 2 * math.log(nu / 2)
        return model.log_scales + constant - (nu + d) / 2 * np.log1p(squares / nu)


# Ranges of age, blood pressure, haemoglobin and a laboratory value of patients.
RANGES = {0: (18, 100), 1: (80, 220), 2: (5, 20), 3: (0, 600)}
Lab = Callable[[int, Floats], Floats]  # values of a kind of patients by normal ones


def patients(lab: Lab, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw patients of three kinds, with a laboratory value; and means (3, 4) of the kinds."""
    kinds = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    means = np.array([[45, 125, 14.2, 0], [68, 150, 13.2, 0], [75, 128, 10.8, 0]])
    X = means[kinds]
    X[:, :3] += rng.standard_normal((n, 3)) * [9, 12, 1.1]
    normal = ndtri((np.arange(20_000) + 0.5) / 20_000)
    for kind in range(3):
        rows = kinds == kind
        X[rows, 3] = lab(kind, rng.standard_normal(rows.sum()))
        means[kind, 3] = np.mean(lab(kind, normal))
    return X, means


def least_distance(means: Floats, covariances: Floats) -> float:
    """Least distance of two means, in common standard deviations along it."""
    found = []
    for i, one in enumerate(means):
        for j in range(i):
            step = one - means[j]
            along = step / np.linalg.norm(step)
            spread = math.sqrt(along @ (covariances[i] + covariances[j]) @ along / 2)
            found.append(np.linalg.norm(step) / spread)
    return float(min(found))


BASE = Law("base: d 5, k 4, condition 10, 4 apart, n 20,000", 4, 5, 10.0)
LAWS = (
    BASE,
    *(replace(BASE, name=f"k {k}", n_groups=k) for k in (1, 2, 8)),
    *(replace(BASE, name=f"d {d}", n_features=d) for d in (2, 10, 20)),
    *(replace(BASE, name=f"n {n:,}", n=n) for n in (1000, 5000, 100_000)),
    replace(BASE, name="round", condition=1.0),
    replace(BASE, name="condition 100", condition=100.0),
    replace(BASE, name="unequal sizes", unequal=True),
    replace(BASE, name="overlapping: 3 apart", apart=3.0),
    replace(BASE, name="heavy tails (t 5), 6 apart", apart=6.0, degrees=5.0),
    Law("one cloud, asked for 4", 1, 5, 10.0, asked=4),
    replace(BASE, name="asked for 8", asked=8),
    Law("on a line: d 4, k 3, round", 3, 4, on_a_line=True),
    Law("one column: d 1, k 3, 6 apart", 3, 1, apart=6.0),
    Law("many groups: d 4, k 8, round, 6 apart", 8, 4, apart=6.0),
    Law("many of both: d 10, k 5", 5, 10, 10.0),
    Law("equally near: d 10, k 5, round", 5, 10, equally_near=True),
    Law("few samples: d 10, k 5, round, n 5,000", 5, 10, n=5000),
)


def fits(law: Law, X: Floats, seed: int, *, beside: bool) -> dict[str, Callable[[], Any]]:
    """Fits to samples of a law, by name; with diffprivlib `beside` them."""
    k, norm = law.asked or law.n_groups, float(np.quantile(np.linalg.norm(X, axis=1), 0.99))
    options: dict[str, Any] = {"data_norm": norm, "delta": DELTA, "random_state": seed}
    found: dict[str, Callable[[], Any]] = {
        f"{epsilon:g}": lambda e=epsilon: PrivateGaussianMixture(k, epsilon=e, **options).fit(X)
        for epsilon in EPSILONS
    }
    found["diag, 1"] = lambda: PrivateGaussianMixture(k, covariance_type="diag", **options).fit(X)
    for epsilon in (1.0, 4.0):
        found[f"LSH tree, {epsilon:g}"] = lambda e=epsilon: lsh_tree_means(
            X, k, norm, e, DELTA, seed
        )
        if beside:
            means = {"bounds": (-norm, norm), "random_state": seed, "epsilon": epsilon}
            found[f"diffprivlib, {epsilon:g}"] = lambda means=means: (
                diffprivlib().KMeans(k, **means).fit(X)
            )
    for kind in ("full", "diag", "spherical"):
        found[f"sklearn, {kind}"] = lambda kind=kind: GaussianMixture(
            k, covariance_type=kind, n_init=3, random_state=seed
        ).fit(X)
    return found


def behind(law: Law, seed: int, *, beside: bool) -> dict[str, tuple[float, float, float, float]]:
    """Index and log-likelihood behind the law's, number of groups and cover, of every fit."""
    rng = np.random.default_rng([seed, law.n])
    model = law.draw(rng)
    X, _ = law.sample(model, law.n, rng)
    new, labels = law.sample(model, NEW, rng)
    joint = law.log_joint(model, new)
    best, density = adjusted_rand_score(labels, joint.argmax(axis=1)), log_density(joint).mean()
    found = {}
    for name, fit in fits(law, X, seed, beside=beside).items():
        with reproducible_noise(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = fit()
            # Of k-means there is no density.
            score = fitted.score(new) if hasattr(fitted, "score_samples") else math.nan
        index = adjusted_rand_score(labels, fitted.predict(new))
        groups = len(getattr(fitted, "weights_", np.unique(fitted.predict(new))))
        found[name] = best - index, density - score, groups, cover(fitted, model)
    return found


def cover(fitted: Any, model: Gaussians) -> float:
    """Share of the law's means in intervals; NaN if groups were joined, or without intervals."""
    if not hasattr(fitted, "means_interval") or len(fitted.means_) != len(model.means):
        return math.nan
    try:
        low, high = fitted.means_interval(0.9)
    except ValueError:  # there are none
        return math.nan
    apart = np.linalg.norm(fitted.means_[:, None] - model.means, axis=2)
    found, right = linear_sum_assignment(apart)
    return float(((low[found] <= model.means[right]) & (model.means[right] <= high[found])).mean())


def run(report: Report) -> None:
    """Measure all laws."""
    seeds, laws = range(1 if report.quick else SEEDS), LAWS[: 2 if report.quick else None]
    missing_cells(report, range(2 if report.quick else 2 * SEEDS))
    beside = installed(report, "diffprivlib")
    worst, grows = {"Rand index": 0.0, "log-likelihood": 0.0}, -math.inf
    for law in laws:
        runs = [behind(law, seed, beside=beside) for seed in seeds]
        rows: list[list[Any]] = []
        for name in runs[0]:
            index, density, groups, covers = np.transpose([run[name] for run in runs])
            known = covers[np.isfinite(covers)]
            behind_law = np.median(index), index.max(), np.median(density), density.max()
            rows.append([name, *map(_or_nothing, behind_law),
                         " ".join(f"{k:g}" for k in groups),
                         _or_nothing(known.mean() if len(known) else math.nan)])  # fmt: skip
        report.table(
            f"{law.name}: behind the law, median and worst of draws",
            ["fit", "Rand index", "worst index", "density", "worst density", "groups", "cover"],
            rows,
            file="laws_of_mixtures", group=law.name, how=f"{SEEDS} draws",
        )  # fmt: skip
        usual = law.apart >= 4 and math.isinf(law.degrees) and 4 <= law.n_features <= 10
        if usual and law.n == BASE.n and law.n_groups >= 3:
            at_one = next(row for row in rows if row[0] == "1")
            worst["Rand index"] = max(worst["Rand index"], at_one[1])
            worst["log-likelihood"] = max(worst["log-likelihood"], at_one[3])
        of = {name: np.array([run[name][1] for run in runs]) for name in runs[0]}
        for less, more in pairwise(EPSILONS):
            grows = max(grows, _beyond(of[f"{more:g}"], of[f"{less:g}"]))
    report.bar(
        "epsilon 1, 20,000 samples: median Rand index behind the law", worst["Rand index"], 0.015
    )
    report.bar("and log-likelihood a sample behind it", worst["log-likelihood"], 0.1)
    report.bar("log-likelihood behind more than at less epsilon, beyond 3 s.e.", grows, 0.01)


def held_after_a_no(n: int, epsilon: float, seed: int, d: int) -> Floats:
    """Errors (d, 2) and whether intervals hold, of the averages of `d` questions, of one cloud.

    Answers of a person go together, and after a no one in three gives no further answer.
    """
    rng = np.random.default_rng([seed, n, d])
    answers = rng.standard_normal((n, 1)) + 0.6 * rng.standard_normal((n, d))
    X = np.where(answers + np.linspace(-0.3, 0.3, d) > -1, 1.0, -1.0)
    exact, stays = X.mean(axis=0), rng.random((n, d - 1)) > np.where(X[:, :-1] > 0, 0.05, 0.35)
    X[:, 1:][~np.logical_and.accumulate(stays, axis=1)] = np.nan
    return errors_and_held(1, X, exact[None], {"data_norm": math.sqrt(d)}, epsilon, seed)


def held_of_patients(n: int, epsilon: float, seed: int, named: int) -> Floats:
    """Errors and whether intervals hold, of three kinds of patients.

    Most old ones lack the last measurement. The first `named` columns have two values, at rates of
    the kind.
    """
    rng = np.random.default_rng([seed, n, named])
    kinds = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    means = np.array([[-0.3, 0.2, 0.3, 0.0], [0.25, 0.3, 0.0, 0.2], [0.35, -0.2, -0.35, -0.2]])
    rates = np.array([[0.15, 0.6], [0.45, 0.3], [0.7, 0.5]])[:, :named]
    same = rng.standard_normal((n, 1))
    numbers = means[kinds] + 0.17 * (0.6 * same + 0.8 * rng.standard_normal((n, 4)))
    lacks = 1 / (1 + np.exp(-8 * (numbers[:, 0] - 0.2)))
    numbers[rng.random(n) < lacks, 3] = np.nan
    values = np.where(rng.random((n, named)) < rates[kinds], 1.0, -1.0) / 3
    ends = dict.fromkeys(range(named), (-1 / 3, 1 / 3))
    options = {"data_norm": "auto", "nonnormal_features": ends}
    exact = np.hstack([(2 * rates - 1) / 3, means])
    return errors_and_held(3, np.hstack([values, numbers]), exact, options, epsilon, seed)


def errors_and_held(
    k: int, X: Floats, exact: Floats, options: dict[str, Any], epsilon: float, seed: int
) -> Floats:
    """Errors of means (k, d, 2), and 1 where intervals hold `exact` ones; NaN of fewer groups."""
    with reproducible_noise(seed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = PrivateGaussianMixture(k, epsilon=epsilon, random_state=seed, **options).fit(X)
        low, high = fitted.means_interval(0.9)
    if len(low) < k:
        return np.full((*exact.shape, 2), np.nan)
    lacks = np.isnan(X).any(axis=0)
    apart = np.linalg.norm((fitted.means_[:, None] - exact)[:, :, ~lacks], axis=2)
    found, right = linear_sum_assignment(apart)
    errors = np.zeros_like(exact)
    errors[right] = fitted.means_[found] - exact[right]
    held = np.zeros_like(exact)
    held[right] = (low[found] <= exact[right]) & (exact[right] <= high[found])
    return np.stack([errors, held], axis=2)


def missing_cells(report: Report, seeds: range) -> None:
    """Measure averages and intervals where cells are missing for values that are seen."""
    clouds = {f"yes or no, {d} columns, rows end after a no": (held_after_a_no, d) for d in (4, 12)}
    kinds = {
        f"three kinds of patients, most old ones lack a column, {named} of two values": (
            held_of_patients, named,
        )
        for named in (0, 2)
    }  # fmt: skip
    least = 1.0
    for name, (held_of, number) in [*clouds.items(), *kinds.items()][: 1 if report.quick else None]:
        rows: list[list[Any]] = []
        first = 1 if held_of is held_after_a_no else -1  # first column that lacks cells
        for n in (1500, 4000) if first == 1 else (3000, 10_000):
            for epsilon in (2.0, 4.0):
                runs = np.array([held_of(n, epsilon, seed, number) for seed in seeds])
                runs = runs[np.isfinite(runs).all(axis=(1, 2, 3))]
                held, error = runs[..., 1], np.sqrt(np.square(runs[:, :, first:, 0]).mean())
                complete, lacking = held[:, :, :first].mean(), held[:, :, first:].mean()
                rows.append([f"{n:,}", epsilon, len(runs), round(float(complete), 2),
                             round(float(lacking), 2), round(float(error), 3)])  # fmt: skip
                least = min(least, lacking)
        report.table(
            f"{name}: 90% intervals that hold", ["rows", "epsilon", "fits with all groups",
            "held, complete", "held, lacking", "error, lacking"], rows,
            file="missing_cells", group=name, how=f"{len(seeds)} draws",
        )  # fmt: skip
    report.bar("cells missing for what is seen: intervals that hold", least, 0.7, at_least=True)


def _or_nothing(number: float) -> float | str:
    """Cell of a table, to four decimals; empty for NaN."""
    return round(float(number), 4) + 0.0 if math.isfinite(number) else ""


def _beyond(after: Floats, before: Floats) -> float:
    """By how much a fit to more is worse, beyond three standard errors."""
    apart = after - before
    if len(apart) < 2:
        return float(apart.max())
    return float(apart.mean() - 3 * apart.std(ddof=1) / math.sqrt(len(apart)))
