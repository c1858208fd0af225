"""A mixture of Gaussians found privately, and a picture of it.

Four groups in ten dimensions; their means, sizes and shapes are learned at several
levels of privacy from the same synthetic data::

    python examples/gaussian_mixture.py
    python examples/gaussian_mixture.py --samples 20000 --epsilon 0.3 1 --output mixture.svg
"""

import argparse
import math
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sktensor_dp import NotEnoughDataWarning, PrivateGaussianMixture

Floats = NDArray[np.float64]

N_FEATURES, SEPARATION, DATA_NORM = 10, 6.0, 9.0
WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])
VARIANCES = np.array([1.0, 0.5, 1.5, 1.0])
# Okabe & Ito: told apart with any colour vision.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
INK, MUTED = "#1f2933", "#52606d"


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, print a table, draw; return 0, or 2 on bad input."""
    parser = argparse.ArgumentParser(description="A mixture of Gaussians found privately.")
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.03, 0.3, math.inf])
    parser.add_argument("--seed", type=int, default=0, help="of the data; noise has none")
    parser.add_argument("--output", type=Path, default=Path("gaussian-mixture.png"))
    options = parser.parse_args(arguments)
    X, labels, means = groups(options.samples, np.random.default_rng(options.seed))
    try:
        fits = [fitted(X, epsilon) for epsilon in options.epsilon]
        print(f"{'epsilon':>8}  {'farthest mean':>14}  weights")
        for model in fits:
            found = nearest(model.means_, means)
            print(f"{model.epsilon:8g}  {found.max():11.3f} sd  {np.round(model.weights_, 3)}")
        options.output.parent.mkdir(parents=True, exist_ok=True)
        picture(X, labels, means, fits).savefig(options.output, dpi=150)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"picture: {options.output}")
    return 0


def groups(n: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.intp], Floats]:
    """Samples, their groups, and the groups' means, all equally far from each other."""
    k = len(WEIGHTS)
    means = SEPARATION / math.sqrt(2) * np.linalg.qr(rng.standard_normal((N_FEATURES, k)))[0].T
    means -= means.mean(axis=0)
    labels = rng.choice(k, size=n, p=WEIGHTS)
    noise = rng.standard_normal((n, N_FEATURES)) * np.sqrt(VARIANCES[labels])[:, None]
    return means[labels] + noise, labels, means


def fitted(X: Floats, epsilon: float) -> PrivateGaussianMixture:
    """Fit the mixture; too small an epsilon shows in the picture."""
    model = PrivateGaussianMixture(len(WEIGHTS), data_norm=DATA_NORM, epsilon=epsilon)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        return model.fit(X)


def nearest(found: Floats, means: Floats) -> Floats:
    """Distance of each true mean from the nearest one found."""
    return np.linalg.norm(means[:, None] - found[None], axis=2).min(axis=1)


def picture(
    X: Floats, labels: NDArray[np.intp], means: Floats, fits: Sequence[PrivateGaussianMixture]
) -> Figure:
    """One panel per fit, in the plane of most of the means' variation."""
    plane = np.linalg.svd(means)[2][:2].T
    shown = slice(0, 1500)
    figure = Figure(figsize=(3.4 * len(fits), 3.6), layout="constrained")
    axes = figure.subplots(1, len(fits), sharex=True, sharey=True, squeeze=False)[0]
    for axis, model in zip(axes, fits, strict=True):
        points = X[shown] @ plane
        colours = [COLOURS[label] for label in labels[shown]]
        axis.scatter(*points.T, s=3, c=colours, alpha=0.35, linewidths=0)
        axis.scatter(*(means @ plane).T, marker="x", s=45, c=INK, label="true mean")
        seen = model.means_ @ plane
        axis.scatter(*seen.T, s=70, facecolors="none", edgecolors=INK, label="released mean")
        turn = np.linspace(0, 2 * math.pi, 100)
        circle = np.column_stack([np.cos(turn), np.sin(turn)])
        for centre, covariance in zip(seen, model.covariances_, strict=True):
            root = np.linalg.cholesky(plane.T @ covariance @ plane)
            axis.plot(*(centre + 2 * circle @ root.T).T, color=MUTED, linewidth=0.9)
        axis.set_title(title(model.epsilon), fontsize=10, loc="left", color=INK)
        axis.set(xticks=[], yticks=[], aspect="equal")
        axis.spines[:].set_color("#cbd2d9")
    axes[0].legend(loc="lower left", fontsize=8, frameon=False)
    figure.supxlabel(
        f"{len(X):,} samples in {N_FEATURES} dimensions, seen in a plane; ellipses: two released "
        "standard deviations",
        fontsize=8.5,
        color=MUTED,
    )
    return figure


def title(epsilon: float) -> str:
    return "no noise" if math.isinf(epsilon) else f"epsilon = {epsilon:g}"


if __name__ == "__main__":
    sys.exit(main())
