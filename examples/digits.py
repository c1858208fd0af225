"""Handwritten digits with missing pixels, completed privately, and a picture of them.

Some of the pixels of scikit-learn's digits are hidden. One pixel may be
protected, at coordinates that are public; or a whole image, of which nothing is released:
then what images share is learnt privately, and each image is completed from it by whoever
holds the image::

    python examples/digits.py
    python examples/digits.py --hidden 0.5 --epsilon 3 --rank 8 --output digits.svg
"""

import argparse
import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from sktensor_dp import NotEnoughDataWarning, PrivateCPCompletion

Floats = NDArray[np.float64]

BOUNDS = (0.0, 16.0)
SHOWN = 10
INK = "#1f2933"


@dataclass(frozen=True)
class Pixels:
    """Images as a matrix image x pixel, and which of its entries are seen."""

    values: Floats
    seen: NDArray[np.bool_]

    def error(self, completed: Floats) -> float:
        """RMSE at the hidden pixels."""
        return float(np.sqrt(np.mean((completed - self.values)[~self.seen] ** 2)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, print a table, draw; return 0, or 2 on bad input."""
    parser = argparse.ArgumentParser(description="Digits with missing pixels, completed.")
    parser.add_argument("--hidden", type=float, default=0.4, help="share of the pixels")
    parser.add_argument("--epsilon", type=float, default=10.0)
    parser.add_argument("--rank", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the gaps; noise has none")
    parser.add_argument("--output", type=Path, default=Path("digits.png"))
    options = parser.parse_args(arguments)
    pixels = gappy(options.hidden, np.random.default_rng(options.seed))
    try:
        found = completions(pixels, options.rank, options.epsilon)
        print(f"{'RMSE of hidden pixels, of 0 to 16':44}")
        for name, completed in found.items():
            print(f"{name:44}{pixels.error(completed):8.2f}")
        options.output.parent.mkdir(parents=True, exist_ok=True)
        picture(pixels, found).savefig(options.output, dpi=150)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"picture: {options.output}")
    return 0


def gappy(hidden: float, rng: np.random.Generator) -> Pixels:
    """The digits, each pixel hidden with the same probability."""
    values = load_digits().data
    return Pixels(values, rng.random(values.shape) >= hidden)


def completions(pixels: Pixels, rank: int, epsilon: float) -> dict[str, Floats]:
    """The same images completed in several ways."""
    means = np.nansum(np.where(pixels.seen, pixels.values, 0), axis=0) / np.maximum(
        pixels.seen.sum(axis=0), 1
    )
    level = "no noise" if math.isinf(epsilon) else f"epsilon {epsilon:g}"
    ways = {
        "mean of each pixel, not private": lambda: filled(
            pixels, np.broadcast_to(means, pixels.seen.shape)
        ),
        "no noise": lambda: by_entries(pixels, rank, math.inf),
        f"{level}, unit: a pixel": lambda: by_entries(pixels, rank, epsilon),
        f"{level}, unit: an image": lambda: by_images(pixels, rank, epsilon),
    }
    return {name: way() for name, way in ways.items()}


def filled(pixels: Pixels, found: Floats) -> Floats:
    """What is seen stays as it is."""
    return np.where(pixels.seen, pixels.values, found)


def by_entries(pixels: Pixels, rank: int, epsilon: float) -> Floats:
    """One value is protected."""
    X = np.argwhere(pixels.seen)
    model = model_of(pixels, rank, epsilon, None).fit(X, pixels.values[pixels.seen])
    return filled(pixels, model.complete())


def by_images(pixels: Pixels, rank: int, epsilon: float) -> Floats:
    """All of an image is protected; its own parameters are found where the image is."""
    X, y = np.argwhere(pixels.seen), pixels.values[pixels.seen]
    model = model_of(pixels, rank, epsilon, 0).fit(X, y)
    completed = pixels.values.copy()
    completed[~pixels.seen] = model.fold_in(X, y).predict(np.argwhere(~pixels.seen))
    return completed


def model_of(
    pixels: Pixels, rank: int, epsilon: float, unit_mode: int | None
) -> PrivateCPCompletion:
    return PrivateCPCompletion(
        rank, bounds=BOUNDS, shape=pixels.values.shape, epsilon=epsilon, unit_mode=unit_mode
    )


def picture(pixels: Pixels, found: dict[str, Floats]) -> Figure:
    """One row of images per method."""
    gaps = np.where(pixels.seen, pixels.values, np.nan)
    rows = {"complete": pixels.values, "given": gaps, **found}
    figure = Figure(figsize=(SHOWN * 0.72 + 2.6, len(rows) * 0.8), layout="constrained")
    axes = figure.subplots(len(rows), SHOWN)
    for line, (name, images) in zip(axes, rows.items(), strict=True):
        for axis, image in zip(line, images, strict=False):
            axis.set_facecolor("#f6d6c9")  # where nothing is given
            axis.imshow(image.reshape(8, 8), cmap="gray_r", vmin=BOUNDS[0], vmax=BOUNDS[1])
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_color("#cbd2d9")
        line[0].set_ylabel(
            name.replace(", ", "\n"), rotation=0, ha="right", va="center", fontsize=8.5, color=INK
        )
    return figure


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        sys.exit(main())
