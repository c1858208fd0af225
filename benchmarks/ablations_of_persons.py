"""What each part of fits of persons is worth to lists of items, and to stated errors.

Errors of predictions (`ablations_of_completions`) show neither. Each part is set to its neutral
value in turn, with noise seeds 0 to 4. Listed are the mean of the whole fit, and the change in
percent without the part. Larger numbers are worse.

- *recall*: that by popularity released at the same epsilon, over that of the ten films of MovieLens
  that `recommend` puts first (`top_n`).
- *z*: root mean square of errors of averages over stated errors, of items that 5 to 29 of 3000
  people rated. Popular ones of the 200 items are the better.

    python -m benchmarks ablations_of_persons
    python -m benchmarks ablations_of_persons --quick     two seeds
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.ablations import SEEDS, Ablation, change, constant, shown
from benchmarks.ratings import movielens
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from benchmarks.top_n import Held
from sktensor_dp import PrivateCPCompletion

__all__ = ["ABLATIONS", "run"]

BIASES = "completion.shared_biases"
ABLATIONS = (
    constant("completion.ROUNDS", 1),
    constant("completion.LEAST_ROW_WEIGHT", 1.0),
    constant("completion.LEVEL_FRACTION", 0.05),
    constant("completion.PULL_SCALE", 1e-9),
    constant("tensor.LEVEL_VARIANCE", 5.0),
    Ablation("curve of biases over popularity", neutral={
        "tensor.shared_parameters._GridPosterior.find_curve": lambda _: None,
    }),
    Ablation("bends of that curve", neutral={"tensor.shared_parameters._BENDS": (1e-9,)}),
    Ablation("clips of least error", neutral={
        f"{BIASES}.clip_of_least_error": lambda *given: given[6],
    }),
    Ablation("weights of blocks", neutral={f"{BIASES}.block_weights": lambda *_: np.ones(2)}),
    Ablation("measured spread", neutral={
        f"{BIASES}.SharedBiases._with_measured_spread": lambda _, linear, *others: linear,
    }),
    Ablation("error of the deviation", neutral={
        "completion.person_recipe.add_errors_of_deviation": lambda *_: None,
    }),
)  # fmt: skip


def rms_of_z(epsilon: float, seed: int) -> float:
    """Root mean square of errors of averages of rare items, over stated ones."""
    rng, (n, m) = np.random.default_rng(seed), (3000, 200)
    popularity = rng.standard_normal(m)
    items = 3.6 + 0.35 * popularity + 0.36 * rng.standard_normal(m)
    stars = items + 0.5 * rng.standard_normal((n, 1)) + 0.8 * rng.standard_normal((n, m))
    stars = np.clip(np.rint(stars), 1, 5)
    numbers = np.clip(np.exp(2 + 0.8 * rng.standard_normal(n)) + 1, 1, m // 2).astype(int)
    numbers[rng.random(n) < 0.3] = 1
    places = np.argsort(np.argsort(-1.6 * popularity - rng.gumbel(size=(n, m)), axis=1), axis=1)
    X = np.argwhere(places < numbers[:, None])
    model = PrivateCPCompletion(
        0, bounds=(1, 5), shape=(n, m), unit_mode=0, epsilon=epsilon, random_state=seed
    )
    with reproducible_noise(seed):
        model.fit(X, stars[tuple(X.T)])
    stated = np.hypot(model.bias_errors_[1], model.mean_error_)
    z = (model.mean_ + model.biases_[1] - stars.mean(axis=0)) / stated
    rated = np.bincount(X[:, 1], minlength=m)
    return math.sqrt(np.mean(np.square(z[(rated >= 5) & (rated < 30)])))


def measures(report: Report, data: Path) -> Iterator[tuple[str, float, Callable[[int], float]]]:
    """Names and values of epsilon of what is measured, by seed."""
    try:
        held = Held(movielens(data, 0, quick=False))
    except OSError:
        report.note(f"skipped: no ml-100k in {data}")
    else:
        yield "recall", 1.0, lambda seed: held.popularity(1, seed) / held.recommended(1, seed, 0)
    for epsilon in (1.0, 4.0):
        yield "z", epsilon, lambda seed, epsilon=epsilon: rms_of_z(epsilon, seed)


def run(report: Report, data: Path) -> None:
    """Measure all parts."""
    rows: list[list[Cell]] = []
    seeds = range(2 if report.quick else SEEDS)
    for name, epsilon, measure in measures(report, data):
        whole = np.array([measure(seed) for seed in seeds])
        for part in ABLATIONS:
            with part.made():
                found = np.array([measure(seed) for seed in seeds])
            rows.append([part.name, name, epsilon, float(whole.mean()), *change(found, whole)])
            report.note(" | ".join(map(str, rows[-1])))
    report.table(
        "Without each part: change in percent",
        ["part", "of", "epsilon", "whole fit", "change", "standard error"],
        shown(ABLATIONS, rows),
        file="ablations_of_persons", how="noise seeds 0 to 4",
    )  # fmt: skip
