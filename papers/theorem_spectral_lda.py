"""Theorems 10, 12, 14 and 16 of DeCarolis et al. (2020): utility of four noise configurations.

::

    python papers/theorem_spectral_lda.py            # some minutes
    python papers/theorem_spectral_lda.py --quick    # some seconds

LDA corpora of 20-word documents, topics from Dirichlet(.1), a prior of sum 1 whose largest part is
three times the smallest, so that eigenvalues differ. Loss is the theorems' |mu_i - mu_i^DP|, to the
topics of the same corpus without noise, mean over matched topics; error is the matched total
variation to the true topics. Top: loss at epsilon = 1000, where all four release something, against
N, and against d with topics of 16 words in vocabularies padded with words that never occur, so that
all of the theorems' other quantities stay. Bottom: error against epsilon, and of the sound
perturbations against d. Medians of 6 runs (3 below). delta = 1e-6; run s has noise seeded by s:
nothing measured here is private.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from decarolis_claims import CONFIGURATIONS, claims, curve, rates
from figure_files import COLOURS, figure_parser, log_ticks, new_figure, present, progress
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sktensor_dp import NotEnoughDataWarning, PrivateSpectralLDA, unsafe_seeded_noise
from sktensor_dp.exceptions import PrivacyLeakWarning, UnsoundClaimWarning
from sktensor_dp.published import dp_spectral_lda

__all__ = ["NAME", "claims", "draw", "main"]

NAME = "decarolis-utility"
DELTA, LENGTH, LARGE, USUAL = 1e-6, 20, 1000.0, 1.0
NUMBERS, N_FIXED = (3_000, 10_000, 30_000, 100_000), 50_000
WIDTHS, WORDS, RANK = (16, 32, 64, 128), 16, 2
EPSILONS = (0.3, 1.0, 3.0, 10.0, 100.0, 1000.0)
SOUND = {
    "moment tensor": {"perturbation": "moment_tensor", "n_refinements": 0},
    "whitened tensor": {"perturbation": "whitened_tensor", "n_refinements": 0},
    "default": {},
}
LOOKS: dict[str, dict[str, Any]] = {
    "config. 1: e3, e4, e8": {"color": COLOURS["orange"], "marker": "s"},
    "config. 2: e6, e8 (not private)": {"color": COLOURS["green"], "marker": "^"},
    "config. 3: e7, e8 (not private)": {"color": COLOURS["vermilion"], "marker": "v"},
    "config. 4: e9 (not private)": {"color": COLOURS["purple"], "marker": "D"},
    "moment tensor": {"color": COLOURS["sky"], "marker": "P"},
    "whitened tensor": {"color": COLOURS["blue"], "marker": "o"},
    "default": {"color": COLOURS["black"], "marker": "X"},
}
Floats = NDArray[np.float64]


def main(arguments: Sequence[str] | None = None) -> int:
    options = figure_parser(__doc__, "a fiftieth of the documents").parse_args(arguments)
    shrink = 50 if options.quick else 1
    tasks = settings(options.quick)
    rows = [row for task in progress(tasks, "theorems 10 to 16") for row in fits(*task, shrink)]
    present(
        draw, rows, options.out, NAME, "Rates of loss, configurations as published", rates(rows)
    )
    return 0


def settings(quick: bool) -> list[tuple[Any, ...]]:
    """Part of the figure, d, k, N, the epsilons, and the run."""
    many, few = (2, 1) if quick else (6, 3)
    epsilons = EPSILONS[1::4] if quick else EPSILONS
    chosen: list[tuple[Any, ...]] = []
    for run in range(many):
        chosen += [("N", 50, RANK, n, (LARGE,), run) for n in NUMBERS[-2 if quick else 0 :]]
        chosen += [("d", d, RANK, N_FIXED, (LARGE,), run) for d in WIDTHS[: 2 if quick else 4]]
    for run in range(few):
        chosen += [("epsilon", 50, k, N_FIXED, epsilons, run) for k in (3, 5)]
        widths = (20, 40) if quick else (50, 100, 200)
        chosen += [("sound", d, 5, N_FIXED, (USUAL,), run) for d in widths]
    return chosen


# ------------------------------------------------------------------ the work


def fits(
    part: str, d: int, k: int, N: int, epsilons: Sequence[float], run: int, shrink: int
) -> Iterator[dict[str, Any]]:
    """Loss and error of every method on one corpus."""
    X, topics = corpus(WORDS if part == "d" else d, k, N // shrink, run)
    X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], d))
    topics = np.pad(topics, ((0, 0), (0, d - topics.shape[1])))
    with reproducible_noise(run):
        exact = dp_spectral_lda(X, k, epsilon=math.inf, delta=DELTA, random_state=run).topics
        for epsilon in epsilons:
            for method, found in predicted(X, k, epsilon, part, run):
                yield {
                    "part": part,
                    "method": method,
                    "d": d,
                    "k": k,
                    "N": N // shrink,
                    "epsilon": epsilon,
                    "run": run,
                    "loss": distance(found, exact, 2.0),
                    "error": distance(found, topics, 1.0) / 2,
                }


def corpus(d: int, k: int, N: int, run: int) -> tuple[sp.csr_matrix, Floats]:
    """Counts, and the topics they are drawn from."""
    rng = np.random.default_rng([10, d, k, N, run])
    topics = rng.dirichlet(np.full(d, 0.1), size=k)
    prior = np.geomspace(1.0, 3.0, k)
    blocks = []
    for start in range(0, N, 20_000):
        shares = rng.dirichlet(prior / prior.sum(), size=min(20_000, N - start))
        words = shares @ topics
        words /= words.sum(axis=1, keepdims=True)
        blocks.append(sp.csr_matrix(rng.multinomial(LENGTH, words)))
    return sp.csr_matrix(sp.vstack(blocks)), topics


def predicted(
    X: sp.csr_matrix, k: int, epsilon: float, part: str, run: int
) -> Iterator[tuple[str, Floats | None]]:
    """Names of methods and their topics; None where a method releases nothing."""
    for number, name in enumerate(CONFIGURATIONS, start=1):
        # Configuration 1 is the published counterpart of both sound ones.
        if part == "sound" and number > 1:
            break
        try:
            found = dp_spectral_lda(
                X, k, configuration=number, epsilon=epsilon, delta=DELTA, random_state=run
            )
        except ValueError:
            yield name, None
        else:
            yield name, found.topics
    if part in ("epsilon", "sound"):
        for name, parameters in SOUND.items():
            model = PrivateSpectralLDA(
                k, epsilon=epsilon, delta=DELTA, doc_topic_prior=1 / k, random_state=run,
                **parameters,
            )  # fmt: skip
            yield name, model.fit(X).components_


def distance(found: Floats | None, topics: Floats, order: float) -> float:
    """Mean norm of differences after matching; topics that were not found count as zeros."""
    if found is None:
        return math.nan
    found = np.vstack([found, np.zeros((len(topics) - len(found), found.shape[1]))])
    costs = np.linalg.norm(found[:, None] - topics[None], order, axis=2)
    return float(costs[linear_sum_assignment(costs)].mean())


@contextmanager
def reproducible_noise(seed: int) -> Iterator[None]:
    """Seeded noise, without the warnings that users ought to see."""
    with warnings.catch_warnings():
        for category in (PrivacyLeakWarning, NotEnoughDataWarning, UnsoundClaimWarning):
            warnings.simplefilter("ignore", category)
        with unsafe_seeded_noise(seed):
            yield


# --------------------------------------------------------------- the drawing


def draw(rows: Sequence[dict[str, Any]]) -> Any:
    figure, axes = new_figure(2, 3, (10.5, 7.0))
    large = max(row["epsilon"] for row in rows)
    panels = (
        ("N", "N", RANK, "loss", f"d = 50, k = {RANK}, ε = {large:g}", "loss"),
        (
            "d",
            "d",
            RANK,
            "loss",
            f"k = {RANK}, ε = {large:g}, padded",
            "utility loss",
        ),
        ("sound", "d", 5, "error", "k = 5, ε = 1", "error of topics"),
        ("epsilon", "epsilon", 3, "error", "d = 50, k = 3", "error of topics"),
        ("epsilon", "epsilon", 5, "error", "d = 50, k = 5", "error of topics"),
    )
    places = (axes[0, 0], axes[0, 1], axes[1, 2], axes[1, 0], axes[1, 1])
    handles: dict[str, Any] = {}
    for panel, (part, key, k, value, title, label) in zip(places, panels, strict=True):
        draw_panel(panel, rows, part, key, k, value)
        panel.set(title=title, xlabel="ε" if key == "epsilon" else key, ylabel=label)
        handles |= {
            name: handle for handle, name in zip(*panel.get_legend_handles_labels(), strict=True)
        }
    axes[0, 2].axis("off")
    axes[0, 2].legend(handles.values(), handles.keys(), loc="center left", fontsize=9)
    return figure


def draw_panel(
    panel: Any, rows: Sequence[dict[str, Any]], part: str, key: str, k: int, value: str
) -> None:
    for name, look in LOOKS.items():
        x, low, middle, high = curve(rows, part, key, k, name, value)
        if len(x):
            panel.errorbar(
                x, middle, yerr=[middle - low, high - middle], label=name, capsize=2,
                elinewidth=0.9, **look,
            )  # fmt: skip
    panel.set(xscale="log", yscale="log")
    if part == "sound":
        log_ticks(panel.yaxis, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1))
    log_ticks(panel.xaxis, sorted({row[key] for row in rows if row["part"] == part}))


if __name__ == "__main__":
    raise SystemExit(main())
