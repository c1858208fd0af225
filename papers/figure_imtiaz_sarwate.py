"""Figure 1 of Imtiaz & Sarwate (2018): error of topics against epsilon and against N.

::

    python papers/figure_imtiaz_sarwate.py            # some minutes
    python papers/figure_imtiaz_sarwate.py --quick    # some seconds, fewer documents

Single topic model, documents of three words, D = 10 with K = 5 topics and D = 50 with K = 10.
The text of the paper gives neither weights, topics, delta nor the grids; here topics are from
Dirichlet(.2) and equally likely, delta = 1e-6, and the mean of 10 runs is drawn, as there. Run s
has data of its own and noise seeded by s: nothing measured here is private.
"""

import argparse
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
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
from scipy.optimize import linear_sum_assignment

from sktensor_dp import (
    NotEnoughDataWarning,
    PrivacyLeakWarning,
    PrivateSpectralLDA,
    unsafe_seeded_noise,
)
from sktensor_dp.published import agn, avn, dp_tpm

NAME = "imtiaz-sarwate-figure-1"
SIZES = ((10, 5), (50, 10))
DELTA, CONCENTRATION = 1e-6, 0.2
EPSILONS, N_FIXED = (0.1, 0.3, 1.0, 3.0, 10.0), 100_000
NUMBERS, EPSILON_FIXED = (10_000, 30_000, 100_000, 300_000, 1_000_000), 1.0
BAR_SEEDS = 5
Floats = NDArray[np.float64]
Fit = Callable[[sp.csr_matrix, int, float, int], Floats]


def our_default(X: sp.csr_matrix, n_topics: int, epsilon: float, seed: int) -> Floats:
    model = PrivateSpectralLDA(
        n_topics, doc_topic_prior=0, epsilon=epsilon, delta=DELTA, random_state=seed
    )
    return model.fit(X).components_


def random_guess(X: sp.csr_matrix, n_topics: int, epsilon: float, seed: int) -> Floats:
    """Rows of uniform entries, scaled to sum to 1."""
    rows = np.random.default_rng([seed, 1]).random((n_topics, X.shape[1]))
    return rows / rows.sum(axis=1, keepdims=True)


METHODS: dict[str, Fit] = {
    "random guess": random_guess,
    "DP-TPM as printed": lambda X, k, eps, s: dp_tpm(X, k, eps, DELTA, random_state=s).topics,
    "DP-TPM with 1/N": lambda X, k, eps, s: (
        dp_tpm(X, k, eps, DELTA, "per_document", random_state=s).topics
    ),
    "AVN": lambda X, k, eps, s: avn(X, k, eps, DELTA, s).topics,
    "AGN": lambda X, k, eps, s: agn(X, k, eps, DELTA, s).topics,
    "our default": our_default,
    "non-private": lambda X, k, eps, s: agn(X, k, math.inf, DELTA, s).topics,
}
LOOKS = {
    "random guess": {"color": COLOURS["grey"], "linestyle": ":", "marker": None},
    "DP-TPM as printed": {"color": COLOURS["vermilion"], "linestyle": "-", "marker": "v"},
    "DP-TPM with 1/N": {"color": COLOURS["purple"], "linestyle": "-", "marker": "^"},
    "AVN": {"color": COLOURS["green"], "linestyle": "-", "marker": "D"},
    "AGN": {"color": COLOURS["orange"], "linestyle": "-", "marker": "s"},
    "our default": {"color": COLOURS["blue"], "linestyle": "-", "marker": "o", "linewidth": 2.4},
    "non-private": {"color": COLOURS["black"], "linestyle": "--", "marker": None},
}
MEASURES = {"e_comp": "e_comp (to the nearest topic)", "matched_tv": "matched total variation"}


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_arguments(arguments)
    shrink = 50 if options.quick else 1
    runs = options.runs or (1 if options.quick else 10)
    epsilons = EPSILONS[1::2] if options.quick else EPSILONS
    numbers = NUMBERS[:3:2] if options.quick else NUMBERS
    sweeps = [("epsilon", N_FIXED, epsilon) for epsilon in epsilons]
    sweeps += [("N", n, EPSILON_FIXED) for n in numbers]
    tasks = [(*size, swept, n // shrink, eps) for size in SIZES for swept, n, eps in sweeps]
    rows = [row for task in progress(tasks, "fits") for row in errors(*task, runs)]
    with styled():
        figure = draw(rows)
    files = write_figure(figure, rows, options.out, NAME)
    for n_words, n_topics in SIZES:
        for swept in ("epsilon", "N"):
            print_sweep(rows, n_words, n_topics, swept)
    print_copies(runs)
    print_bar(N_FIXED // shrink, 1 if options.quick else BAR_SEEDS)
    print("\nWritten:", *(f"\n  {file}" for file in files))
    return 0


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = figure_parser(__doc__, "a fiftieth of the documents")
    parser.add_argument("--runs", type=int, help="runs per setting (default 10)")
    return parser.parse_args(arguments)


# ------------------------------------------------------------------ the work


def corpus(n_words: int, n_topics: int, n: int, seed: int) -> tuple[sp.csr_matrix, Floats]:
    """Counts of three-word documents, and the topics they are drawn from."""
    rng = np.random.default_rng([seed, n, n_words])
    topics = rng.dirichlet(np.full(n_words, CONCENTRATION), size=n_topics)
    sizes = rng.multinomial(n, np.full(n_topics, 1 / n_topics))
    words = np.concatenate(
        [
            rng.choice(n_words, size=3 * size, p=topic)
            for size, topic in zip(sizes, topics, strict=True)
        ]
    )
    documents = np.repeat(np.arange(n), 3)
    return sp.coo_matrix((np.ones(3 * n), (documents, words)), shape=(n, n_words)).tocsr(), topics


def errors(
    n_words: int, n_topics: int, swept: str, n: int, epsilon: float, runs: int
) -> list[dict[str, Any]]:
    """Mean error of each method, by both measures."""
    values = {name: np.zeros((runs, 2)) for name in METHODS}
    for seed in range(runs):
        X, topics = corpus(n_words, n_topics, n, seed)
        for name, fit in METHODS.items():
            with reproducible_noise(seed):
                found = fit(X, n_topics, epsilon, seed)
            values[name][seed] = nearest_distance(found, topics), matched_error(found, topics)
    rows = []
    for name, value in values.items():
        mean = value.mean(axis=0)
        error = value.std(axis=0, ddof=1) / math.sqrt(runs) if runs > 1 else np.zeros(2)
        rows.append(
            {
                "D": n_words,
                "K": n_topics,
                "sweep": swept,
                "N": n,
                "epsilon": epsilon,
                "delta": DELTA,
                "method": name,
                "runs": runs,
                "e_comp": float(mean[0]),
                "e_comp_se": float(error[0]),
                "matched_tv": float(mean[1]),
                "matched_tv_se": float(error[1]),
            }
        )
    return rows


def nearest_distance(found: Floats, true: Floats) -> float:
    """Mean Euclidean distance from each topic found to the nearest true one: their e_comp."""
    distances = np.linalg.norm(found[:, None] - true[None], axis=2)
    return float(distances.min(axis=1).mean())


def matched_error(found: Floats, true: Floats) -> float:
    """Mean total variation between topics matched one to one; one not found counts 1."""
    distances = 0.5 * np.abs(found[:, None] - true[None]).sum(axis=2)
    rows, columns = linear_sum_assignment(distances)
    return float((distances[rows, columns].sum() + len(true) - len(rows)) / len(true))


@contextmanager
def reproducible_noise(seed: int) -> Iterator[None]:
    """Seeded noise, without the warnings that users ought to see."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        with unsafe_seeded_noise(seed):
            yield


# -------------------------------------------------------------- the printing


def print_sweep(rows: Sequence[dict[str, Any]], n_words: int, n_topics: int, swept: str) -> None:
    mine = [row for row in rows if row["D"] == n_words and row["sweep"] == swept]
    fixed = f"N = {mine[0]['N']}" if swept == "epsilon" else f"epsilon = {mine[0]['epsilon']:g}"
    for key, title in MEASURES.items():
        table = [
            {
                "method": name,
                **{
                    f"{swept} {row[swept]:g}": round(row[key], 3)
                    for row in mine
                    if row["method"] == name
                },
            }
            for name in METHODS
        ]
        print_table(f"D = {n_words}, K = {n_topics}, {fixed}: {title}", table)


def print_copies(runs: int) -> None:
    """Score of K copies of one true topic."""
    print("\nK copies of the first true topic:")
    for n_words, n_topics in SIZES:
        scores = []
        for seed in range(runs):
            _, topics = corpus(n_words, n_topics, 10, seed)
            copies = np.tile(topics[0], (n_topics, 1))
            scores.append((nearest_distance(copies, topics), matched_error(copies, topics)))
        nearest, matched = np.mean(scores, axis=0)
        print(f"  D = {n_words}: e_comp {nearest:.3f}, matched total variation {matched:.3f}")


def print_bar(n: int, seeds: int) -> None:
    """Matched error of the default beside that of AGN as published."""
    means = {}
    for name in ("our default", "AGN"):
        values = []
        for seed in range(seeds):
            X, topics = corpus(50, 10, n, seed)
            with reproducible_noise(seed):
                values.append(matched_error(METHODS[name](X, 10, 1.0, seed), topics))
        means[name] = float(np.mean(values))
    ours, published = means["our default"], means["AGN"]
    verdict = "met" if ours <= published / 2 else "MISSED"
    print(
        f"\nD = 50, K = 10, N = {n}, epsilon = 1, delta = {DELTA:g}, mean of {seeds} seeds: "
        f"matched error {ours:.4f} by default, {published:.4f} by AGN as published; "
        f"at most half of it: {verdict}"
    )


# --------------------------------------------------------------- the drawing


def draw(rows: Sequence[dict[str, Any]]) -> Any:
    figure, axes = new_figure(4, 2, (9.5, 12.0))
    panels = [(swept, *size) for swept in ("epsilon", "N") for size in SIZES]
    for line, (swept, n_words, n_topics) in zip(axes, panels, strict=True):
        mine = [row for row in rows if row["D"] == n_words and row["sweep"] == swept]
        for panel, key in zip(line, MEASURES, strict=True):
            draw_panel(panel, mine, key, swept)
            fixed = f"N = {mine[0]['N']:,}" if swept == "epsilon" else "ε = 1"
            panel.set_title(f"D = {n_words}, K = {n_topics}, {fixed}")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside upper center", ncols=4)
    return figure


def draw_panel(panel: Any, rows: Sequence[dict[str, Any]], key: str, swept: str) -> None:
    for name, look in LOOKS.items():
        mine = [row for row in rows if row["method"] == name]
        panel.errorbar(
            [row[swept] for row in mine],
            [row[key] for row in mine],
            yerr=[2 * row[f"{key}_se"] for row in mine] if look["marker"] else None,
            label=name, capsize=2, elinewidth=0.9, **look,
        )  # fmt: skip
    panel.set_xscale("log")
    log_ticks(panel.xaxis, sorted({row[swept] for row in rows}))
    panel.set(xlabel="ε" if swept == "epsilon" else "N", ylabel=MEASURES[key])
    panel.set_ylim(bottom=0)


if __name__ == "__main__":
    raise SystemExit(main())
