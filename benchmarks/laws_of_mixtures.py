"""Mixtures of known laws, beside scikit-learn and the papers' moments: groups found, and density.

Draw s of a law comes from ``default_rng([s, n])``; fits have noise seed s and random_state s. What
is shown is behind the law's own labels and density on 10,000 further samples: adjusted Rand index,
and log-likelihood a sample. A run of full size writes ``docs/results/laws_of_mixtures.csv``.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from benchmarks.power_method import DELTA, Floats
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateGaussianMixture, PrivateTensorPowerMethod
from sktensor_dp.mixtures.gaussians import Gaussians, log_density

__all__ = ["Law", "run"]

EPSILONS = (0.5, 1.0, 4.0, math.inf)
SIZES = (5000, 20_000)
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
        if k > 1:
            means *= self.apart / least_distance(means, covariances)
        return Gaussians(np.full(k, 1 / k), means - means.mean(axis=0), covariances)

    def sample(self, model: Gaussians, n: int, rng: np.random.Generator) -> tuple[Floats, Any]:
        """Draw samples, and the group of each."""
        chosen = rng.choice(len(model.weights), size=n, p=model.weights)
        X = model.sample(chosen, rng)
        if math.isfinite(self.degrees):
            tails = np.sqrt(self.degrees / rng.chisquare(self.degrees, (n, 1)))
            X = model.means[chosen] + (X - model.means[chosen]) * tails
        return X, chosen


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


LAWS = (
    Law("stretched, d 4, k 3", 3, 4, 10.0),
    Law("stretched, d 10, k 5", 5, 10, 10.0),
    Law("round, d 4, k 8, 6 apart", 8, 4, apart=6.0),
    Law("on a line, d 4, k 3", 3, 4, on_a_line=True),
    Law("one cloud, d 5, asked for 4", 1, 5, 10.0, asked=4),
    Law("heavy tails (t 5), d 4, k 3, 6 apart", 3, 4, apart=6.0, degrees=5.0),
)


def fits(law: Law, X: Floats, seed: int) -> dict[str, Callable[[], Any]]:
    """Fits to samples of a law, by name."""
    k, norm = law.asked or law.n_groups, float(np.quantile(np.linalg.norm(X, axis=1), 0.99))
    options: dict[str, Any] = {"data_norm": norm, "delta": DELTA, "random_state": seed}
    found: dict[str, Callable[[], Any]] = {
        f"{epsilon:g}": lambda e=epsilon: PrivateGaussianMixture(k, epsilon=e, **options).fit(X)
        for epsilon in EPSILONS
    }
    if k <= law.n_features:
        found["moments, 1"] = lambda: PrivateTensorPowerMethod(
            k, moment="gaussian_mixture", epsilon=1.0, **options
        ).fit(X)
    for kind in ("full", "spherical"):
        found[f"scikit-learn, {kind}"] = lambda kind=kind: GaussianMixture(
            k, covariance_type=kind, n_init=3, random_state=seed
        ).fit(X)
    return found


def behind(law: Law, n: int, seed: int) -> dict[str, tuple[float, float, int]]:
    """Rand index and log-likelihood behind the law's, and the number of groups, of every fit."""
    rng = np.random.default_rng([seed, n])
    model = law.draw(rng)
    X, _ = law.sample(model, n, rng)
    new, labels = law.sample(model, NEW, rng)
    joint = model.log_joint(new)
    best, density = adjusted_rand_score(labels, joint.argmax(axis=1)), log_density(joint).mean()
    found = {}
    for name, fit in fits(law, X, seed).items():
        with reproducible_noise(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = fit()
            score = fitted.score(new)
        index = adjusted_rand_score(labels, fitted.predict(new))
        found[name] = best - index, density - score, len(fitted.weights_)
    return found


def run(report: Report) -> None:
    seeds, sizes = range(1 if report.quick else SEEDS), SIZES[: 1 if report.quick else None]
    worst, grows = {"Rand index": 0.0, "log-likelihood": 0.0}, -math.inf
    for law in LAWS[: 2 if report.quick else None]:
        rows: list[list[Any]] = []
        by_size = []
        for n in sizes:
            runs = [behind(law, n, seed) for seed in seeds]
            for name in runs[0]:
                index, density, groups = np.transpose([run[name] for run in runs])
                rows.append([n, name, float(np.median(index)), float(index.max()),
                             float(np.median(density)), float(density.max()),
                             " ".join(f"{k:g}" for k in groups)])  # fmt: skip
            by_size.append({name: np.array([run[name][1] for run in runs]) for name in runs[0]})
            usual = law.apart >= 4 and math.isinf(law.degrees) and law.n_features <= 10
            if n == SIZES[-1] and usual and not law.asked:
                worst["Rand index"] = max(worst["Rand index"], _median(rows, n, "1", 2))
                worst["log-likelihood"] = max(worst["log-likelihood"], _median(rows, n, "1", 4))
        columns = ["n", "fit", "Rand index", "worst index", "density", "worst density", "groups"]
        report.table(
            f"{law.name}: behind the law, median and worst of draws", columns, rows,
            file="laws_of_mixtures", group=law.name, how=f"{SEEDS} draws",
        )  # fmt: skip
        for fewer, more in pairwise(by_size):
            grows = max(grows, *(_beyond(more[f"{e:g}"], fewer[f"{e:g}"]) for e in EPSILONS))
        for of_size in by_size:
            for less, more in pairwise(EPSILONS):
                grows = max(grows, _beyond(of_size[f"{more:g}"], of_size[f"{less:g}"]))
    report.bar(
        "epsilon 1, most samples: median Rand index behind the law", worst["Rand index"], 0.015
    )
    report.bar("and log-likelihood a sample behind it", worst["log-likelihood"], 0.1)
    report.bar(
        "log-likelihood behind more than at less data or epsilon, beyond 3 s.e.", grows, 0.01
    )


def _median(rows: list[list[Any]], n: int, name: str, place: int) -> float:
    """Number of a cell of the table."""
    return float(next(row[place] for row in rows if row[:2] == [n, name]))


def _beyond(after: Floats, before: Floats) -> float:
    """By how much a fit to more is worse, beyond three standard errors."""
    apart = after - before
    if len(apart) < 2:
        return float(apart.max())
    return float(apart.mean() - 3 * apart.std(ddof=1) / math.sqrt(len(apart)))
