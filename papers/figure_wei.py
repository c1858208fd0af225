"""Figures 2 and 3 of Wei et al.: error of completion against epsilon, as published and sound.

::

    python papers/figure_wei.py --movielens ml-100k    # some minutes
    python papers/figure_wei.py --quick                # some seconds, one small run

Figure 2: tensors of 20 x 20 x 20, rank 3, CP and Tucker, scaled to [0, 1], noise of the deviation
of the signal, 80 % observed; error against the noise-free tensor at the other entries. Figure 3:
MovieLens 100K, user x item x day, ua.base to ua.test; its folder holds ua.base and ua.test, and
without it there is no figure 3. What is marked "not private" is the paper's, after preprocessing
that is not private either. Run s has data of its own and noise seeded by s: nothing measured here
is private.
"""

import argparse
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from figure_files import (
    COLOURS,
    figure_parser,
    log_ticks,
    new_figure,
    print_table,
    progress,
    styled,
    write_figure,
)
from numpy.typing import NDArray

from sktensor_dp import (
    NotEnoughDataWarning,
    PrivacyLeakWarning,
    PrivateCPCompletion,
    PrivateTuckerCompletion,
    unsafe_seeded_noise,
)
from sktensor_dp.published.completion import (
    PublishedCompletion,
    SGDSettings,
    gradient_perturbation,
    input_perturbation,
    output_perturbation,
    with_row_noise,
)

NAMES = {2: "wei-figure-2", 3: "wei-figure-3"}
SIDE, RANK, OBSERVED, DELTA, LIPSCHITZ = 20, 3, 0.8, 1e-6, 1.0
EPSILONS = {2: (1.0, 2.0, 5.0, 10.0, 30.0), 3: (1.0, 2.0, 5.0, 10.0)}
RUNS = {2: 5, 3: 1}
NOTES = {
    2: "runs: {} (50 in print); SGD in blocks of entries where the print goes entry by entry; "
    "bars: a standard deviation of the logarithm",
    3: "runs: {} (10 in print); SGD in blocks of entries where the print goes entry by entry",
}
# Entries whose gradients are taken at once, for CP and Tucker: a compromise between the print and
# its time.
BLOCKS = {2: (256, 64), 3: (1024, 1024)}
# Of the values with noise; public: the signal is in [0, 1] and its noise is less than 1/4.
BOUNDS = (-0.25, 1.25)
CLIP = {2: 0.03, 3: 1.0}
DAY = 86_400
SWEEPS = 2
Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

LOOKS: dict[str, dict[str, Any]] = {
    "mean alone": {"color": COLOURS["grey"], "linestyle": ":", "marker": None},
    "SGD, no noise": {"color": COLOURS["black"], "linestyle": ":", "marker": None},
    "input, as published (not private)": {"color": COLOURS["orange"], "marker": "s"},
    "gradient, as published (not private)": {"color": COLOURS["vermilion"], "marker": "v"},
    "output, as published (not private)": {"color": COLOURS["purple"], "marker": "D"},
    "input": {"color": COLOURS["orange"], "marker": "s"},
    "gradient": {"color": COLOURS["vermilion"], "marker": "v"},
    "output": {"color": COLOURS["purple"], "marker": "D"},
    "default": {"color": COLOURS["blue"], "marker": "o", "linewidth": 2.4},
    "default, no noise": {"color": COLOURS["blue"], "linestyle": "--", "marker": None},
}
PERTURBATIONS = ("input", "gradient", "output")


@dataclass(frozen=True, eq=False)
class Task:
    """Entries to learn from, and entries to predict."""

    figure: int
    shape: tuple[int, ...]
    bounds: tuple[float, float]
    X: Integers
    y: Floats
    X_test: Integers
    y_test: Floats
    # What the paper does to values first, and to predictions last.
    prepare: Callable[[Floats], Floats] = field(default=lambda values: values)
    restore: Callable[[Floats], Floats] = field(default=lambda values: values)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_arguments(arguments)
    files = []
    for number in (2, 3):
        if number == 3 and options.movielens is None:
            print("\nFigure 3 is of MovieLens 100K: give its folder as --movielens.")
            continue
        runs = options.runs or (1 if options.quick else RUNS[number])
        epsilons = EPSILONS[number][::3] if options.quick else EPSILONS[number]
        rows = measured(number, options, runs, epsilons)
        with styled():
            figure = draw(rows, number)
        files += write_figure(figure, rows, options.out, NAMES[number])
        for model in ("CP", "Tucker"):
            print_errors(rows, number, model)
    print("\nWritten:", *(f"\n  {file}" for file in files))
    return 0


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = figure_parser(__doc__, "one run of a tenth of the iterations")
    parser.add_argument("--movielens", type=Path, help="folder of ua.base and ua.test")
    parser.add_argument("--runs", type=int, help="runs per setting (default 5, MovieLens 1)")
    return parser.parse_args(arguments)


# ------------------------------------------------------------------ the data


def synthetic(seed: int, tucker: bool) -> Task:
    """Low rank tensor with noise, as in section 4 of the paper."""
    rng = np.random.default_rng([seed, SIDE, tucker])
    factors = [rng.standard_normal((SIDE, RANK)) for _ in range(3)]
    if tucker:
        factors = [np.linalg.qr(A)[0] for A in factors]
        core = rng.standard_normal((RANK,) * 3)
        T = np.einsum("pqt,ip,jq,kt->ijk", core, *factors, optimize=True)
    else:
        factors = [A / np.linalg.norm(A, axis=0) for A in factors]
        T = np.einsum("ir,jr,kr->ijk", *factors)
    T = (T - T.min()) / np.ptp(T)
    noisy = T + T.std() * rng.standard_normal(T.shape)
    cells = rng.permutation(np.argwhere(np.ones(T.shape)))
    n = round(OBSERVED * len(cells))
    X, X_test = cells[:n], cells[n:]
    return Task(2, T.shape, BOUNDS, X, noisy[tuple(X.T)], X_test, T[tuple(X_test.T)])


def movielens(folder: Path) -> Task:
    """Ratings of ua.base and ua.test, with the day as third mode."""
    tables = [
        np.loadtxt(folder / f"ua.{part}", dtype=np.int64, ndmin=2) for part in ("base", "test")
    ]
    first = min(int(table[:, 3].min()) for table in tables)
    X, X_test = (
        np.column_stack([table[:, :2] - 1, (table[:, 3] - first) // DAY]) for table in tables
    )
    shape = (943, 1682, 1 + int(max(X[:, 2].max(), X_test[:, 2].max())))
    y, y_test = (table[:, 2].astype(np.float64) for table in tables)
    scaling = BiScaling(X, y, shape)
    return Task(
        3, shape, (1.0, 5.0), X, y, X_test, y_test,
        lambda values: scaling.scaled, lambda values: scaling.restored(X_test, values),
    )  # fmt: skip


class BiScaling:
    """Means zero and variances one of the users' and the items' ratings of each day.

    All ratings are standardised first; after that users and items of a single rating on a day,
    or of equal ones, are left as they are: nothing is defined there.
    """

    def __init__(self, X: Integers, y: Floats, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._steps: list[tuple[int | None, Floats, Floats]] = []
        self.scaled = y
        for mode in (None, *(0, 1) * SWEEPS):
            keys = self._keys(X, mode)
            n = np.bincount(keys)
            mean = np.bincount(keys, self.scaled) / np.maximum(n, 1)
            deviation = np.sqrt(
                np.bincount(keys, (self.scaled - mean[keys]) ** 2) / np.maximum(n, 1)
            )
            kept = deviation < 1e-9
            mean, deviation = np.where(kept, 0.0, mean), np.where(kept, 1.0, deviation)
            self._steps.append((mode, mean, deviation))
            self.scaled = (self.scaled - mean[keys]) / deviation[keys]

    def restored(self, X: Integers, values: Floats) -> Floats:
        """Ratings of scaled values at coordinates."""
        for mode, mean, deviation in self._steps[::-1]:
            keys = self._keys(X, mode)
            known, keys = keys < len(mean), np.minimum(keys, len(mean) - 1)
            shift, factor = np.where(known, mean[keys], 0.0), np.where(known, deviation[keys], 1.0)
            values = values * factor + shift
        return values

    def _keys(self, X: Integers, mode: int | None) -> Integers:
        if mode is None:
            return np.zeros(len(X), dtype=np.intp)
        return X[:, mode] * self._shape[2] + X[:, 2]


# ------------------------------------------------------------------ the work


def measured(
    number: int, options: argparse.Namespace, runs: int, epsilons: Sequence[float]
) -> list[dict[str, Any]]:
    """Mean error of each method, with its standard deviation over runs."""
    values: dict[tuple[str, str, float], list[float]] = {}
    tasks = [(model, seed) for model in ("CP", "Tucker") for seed in range(runs)]
    for model, seed in progress(tasks, f"figure {number}"):
        tucker = model == "Tucker"
        task = synthetic(seed, tucker) if number == 2 else movielens(options.movielens)
        with reproducible_noise(seed):
            for name, epsilon, predictions in predicted(
                task, tucker, epsilons, seed, options.quick
            ):
                error = root_mean_square(np.clip(predictions, *task.bounds) - task.y_test)
                values.setdefault((model, name, epsilon), []).append(error)
    return [
        {
            "model": model,
            "method": name,
            "private": "not private" not in name and "no noise" not in name,
            "epsilon": epsilon,
            "runs": runs,
            "rmse": float(np.mean(errors)),
            "rmse_sd": float(np.std(errors, ddof=1)) if runs > 1 else 0.0,
        }
        for (model, name, epsilon), errors in values.items()
    ]


def predicted(
    task: Task, tucker: bool, epsilons: Sequence[float], seed: int, quick: bool
) -> Iterator[tuple[str, float, Floats]]:
    """Names of methods, epsilons, and predictions at the entries to predict."""
    sgd = SGDSettings(
        max_iter=10 if quick else 100,
        learning_rate=0.003 if tucker else 0.005,
        block=BLOCKS[task.figure][tucker],
    )
    settings: dict[str, Any] = {"tucker": tucker, "sgd": sgd, "random_state": seed}
    data = (task.X, task.prepare(task.y), task.shape, RANK)
    exact = output_perturbation(*data, epsilon=math.inf, **settings)
    for epsilon in epsilons:
        yield "mean alone", epsilon, np.full(len(task.y_test), task.y.mean())
        published = {
            "input": input_perturbation(*data, epsilon=epsilon, **settings),
            "gradient": gradient_perturbation(
                *data, epsilon=epsilon, clip=CLIP[task.figure], **settings
            ),
            "output": with_noisy_output(exact, sgd, epsilon),
        }
        yield "SGD, no noise", epsilon, task.restore(exact.predict(task.X_test))
        for name, found in published.items():
            # Numbers that ran away to infinity count as zeros, the mean of scaled values.
            values = np.nan_to_num(found.predict(task.X_test))
            yield f"{name}, as published (not private)", epsilon, task.restore(values)
        for name in (*PERTURBATIONS, "default"):
            yield name, epsilon, sound(task, tucker, epsilon, name, seed)
        yield "default, no noise", epsilon, sound(task, tucker, math.inf, "default", seed)


def with_noisy_output(
    exact: PublishedCompletion, sgd: SGDSettings, epsilon: float
) -> PublishedCompletion:
    """Algorithm 3 from its step 2 on."""
    sensitivity = 2 * sgd.max_iter * LIPSCHITZ * sgd.learning_rate
    last = with_row_noise(exact.factors[-1], sensitivity, epsilon)
    return PublishedCompletion([*exact.factors[:-1], last], exact.core, exact.claim)


def sound(task: Task, tucker: bool, epsilon: float, name: str, seed: int) -> Floats:
    """Predictions of the library's estimator."""
    estimator = PrivateTuckerCompletion if tucker else PrivateCPCompletion
    model = estimator(
        RANK, bounds=task.bounds, shape=task.shape, epsilon=epsilon, delta=DELTA,
        perturbation="auto" if name == "default" else name, random_state=seed,
    )  # fmt: skip
    return model.fit(task.X, task.y).predict(task.X_test)


def root_mean_square(differences: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(differences))))


@contextmanager
def reproducible_noise(seed: int) -> Iterator[None]:
    """Seeded noise, without the warnings that users ought to see."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        with unsafe_seeded_noise(seed):
            yield


# -------------------------------------------------- the printing and drawing


def print_errors(rows: Sequence[dict[str, Any]], number: int, model: str) -> None:
    table = [
        {
            "method": name,
            **{
                f"epsilon {row['epsilon']:g}": round(row["rmse"], 4)
                for row in rows
                if (row["method"], row["model"]) == (name, model)
            },
        }
        for name in LOOKS
    ]
    print_table(f"Figure {number}, {model}: RMSE", table)


def draw(rows: Sequence[dict[str, Any]], number: int) -> Any:
    figure, axes = new_figure(2, 2, (9.5, 8.4))
    for column, model in enumerate(("CP", "Tucker")):
        for line, private in enumerate((False, True)):
            panel = axes[line, column]
            mine = [row for row in rows if row["model"] == model]
            draw_panel(panel, mine, private, "log" if number == 2 else "linear")
            panel.set_title(f"{model}, {'sound' if private else 'as published: not private'}")
    limits = [f(axis.get_ylim()[end] for axis in axes.ravel()) for end, f in ((0, min), (1, max))]
    handles: dict[str, Any] = {}
    for panel in axes.ravel():
        panel.set_ylim(*limits)
        handles |= {
            label: handle for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=3)
    figure.supxlabel(NOTES[number].format(rows[0]["runs"]), fontsize=8, color=COLOURS["grey"])
    return figure


def draw_panel(panel: Any, rows: Sequence[dict[str, Any]], private: bool, scale: str) -> None:
    for name, look in LOOKS.items():
        of_panel = "not private" not in name and name != "SGD, no noise"
        if name != "mean alone" and of_panel != private:
            continue
        mine = [row for row in rows if row["method"] == name]
        panel.errorbar(
            [row["epsilon"] for row in mine],
            [row["rmse"] for row in mine],
            yerr=bars(mine, scale) if look["marker"] else None,
            label=name, capsize=2, elinewidth=0.9,
            markerfacecolor=None if private else "white", **look,
        )  # fmt: skip
    panel.set_xscale("log")
    panel.set_yscale(scale)
    log_ticks(panel.xaxis, sorted({row["epsilon"] for row in rows}))
    if scale == "log":
        panel.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if _few(value) else "")
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    panel.set(xlabel="ε", ylabel="RMSE")


def bars(rows: Sequence[dict[str, Any]], scale: str) -> Floats:
    """Ends of a standard deviation beside the mean; on a logarithmic axis, of the logarithm.

    To first order the latter is that of the value over its mean: no bar reaches zero, which such
    an axis has not.
    """
    mean, deviation = (np.array([row[name] for row in rows]) for name in ("rmse", "rmse_sd"))
    if scale == "linear":
        return np.array([deviation, deviation])
    factor = np.exp(deviation / mean)
    return np.array([mean - mean / factor, mean * factor - mean])


def _few(value: float) -> bool:
    """Tell if a tick between powers of ten is written out."""
    return round(value / 10 ** math.floor(math.log10(value) + 1e-9)) in (2, 5)


if __name__ == "__main__":
    raise SystemExit(main())
