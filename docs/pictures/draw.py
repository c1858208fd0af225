"""The pictures of the pages: ``python docs/pictures/draw.py``.

What is drawn is computed here: odds by their formula, errors by fits with seeds 0 to 4 on
synthetic documents.
"""

import contextlib
import re
import warnings
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch
from scipy.optimize import linear_sum_assignment

from sktensor_dp import (
    NotEnoughDataWarning,
    PrivacyLeakWarning,
    PrivateSpectralLDA,
    unsafe_seeded_noise,
)

HERE = Path(__file__).parent
BLUE, ORANGE, GREEN, INK, PALE = "#0072b2", "#d55e00", "#009e73", "#333333", "#f2f2f2"
SIZES = [2_000, 5_000, 20_000, 50_000, 200_000]


def keep(figure: Figure, name: str) -> None:
    """Write a figure; the same picture gives the same file."""
    figure.savefig(HERE / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def box(ax: Axes, left: float, width: float, title: str, colour: str) -> None:
    """A rounded box with a title above its middle."""
    ax.add_patch(
        FancyBboxPatch(
            (left, 0.15), width, 0.62, boxstyle="round,pad=0.02", fc=PALE, ec=colour, lw=2
        )
    )
    ax.text(left + width / 2, 0.87, title, ha="center", fontsize=13, color=colour, weight="bold")


def what_leaves() -> None:
    """Raw data on the left, the wall, noisy numbers and the model on the right."""
    figure, ax = plt.subplots(figsize=(8, 2.6))
    ax.set(xlim=(0, 3.6), ylim=(0, 1))
    ax.axis("off")
    box(ax, 0.05, 0.95, "Sensitive data", ORANGE)
    rng = np.random.default_rng(3)
    for place in range(24):
        x, y = 0.14 + 0.11 * (place % 8), 0.27 + 0.2 * (place // 8)
        chosen = place == 13
        ax.add_patch(Circle((x, y), 0.035, fc=ORANGE if chosen else "#b8b8b8", ec="none"))
    box(ax, 1.32, 0.95, "Noisy numbers", BLUE)
    heights = np.array([0.42, 0.30, 0.36, 0.20, 0.26, 0.15])
    for place, (height, off) in enumerate(zip(heights, rng.normal(0, 0.02, 6), strict=True)):
        x = 1.40 + 0.14 * place
        ax.bar(x, height + off, 0.09, bottom=0.2, color=BLUE, align="edge")
        ax.plot([x + 0.045] * 2, [0.2 + height - 0.06, 0.2 + height + 0.06], color=INK, lw=1.5)
    box(ax, 2.59, 0.95, "The model", GREEN)
    for place, line in enumerate(["pain sleep doctor", "work money family", "school bus rain"]):
        ax.text(3.065, 0.63 - 0.17 * place, line, ha="center", va="center", fontsize=11)
    for start in (1.03, 2.30):
        ax.add_patch(
            FancyArrowPatch(
                (start, 0.46), (start + 0.26, 0.46), arrowstyle="-|>", mutation_scale=18
            )
        )
    ax.text(0.525, 0.04, "one person among many", ha="center", fontsize=10, color=ORANGE)
    ax.text(1.795, 0.04, "little influence, and noise", ha="center", fontsize=10, color=BLUE)
    ax.text(3.065, 0.04, "may be shown to anyone", ha="center", fontsize=10, color=GREEN)
    keep(figure, "what_leaves")


def epsilon_as_odds() -> None:
    """The most that anyone can believe afterwards, for each belief before."""
    figure, ax = plt.subplots(figsize=(6, 4))
    before = np.linspace(0.001, 0.999, 400)
    colours = [GREEN, BLUE, ORANGE, INK]
    for epsilon, colour in zip([0.1, 1, 4, 10], colours, strict=True):
        odds = np.exp(epsilon) * before / (1 - before)
        after = odds / (1 + odds)
        ax.plot(100 * before, 100 * after, color=colour, lw=2, label=f"epsilon = {epsilon:g}")
    ax.plot([0, 100], [0, 100], ":", color="#888888", label="nothing learnt")
    ax.set(
        xlabel="suspicion before seeing the results (%)",
        ylabel="at most afterwards (%)",
        xlim=(0, 100),
        ylim=(0, 101),
    )
    ax.legend(loc="lower right", frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    keep(figure, "epsilon_as_odds")


def topic_error(found: np.ndarray, true: np.ndarray) -> float:
    """Mean total variation of matched topics; a topic that was not found counts 1."""
    distance = np.abs(true[:, None] - found[None]).sum(axis=2) / 2
    rows, columns = linear_sum_assignment(distance)
    return float((distance[rows, columns].sum() + len(true) - len(rows)) / len(true))


def one_fit(n: int, epsilon: float, seed: int) -> float:
    """Error of five topics of documents of thirty words, a hundred words in all."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(100, 0.1), 5)
    shares = rng.dirichlet(np.full(5, 0.2), n)
    X = rng.multinomial(30, shares @ topics)
    with warnings.catch_warnings(), unsafe_seeded_noise(seed):
        fitted = PrivateSpectralLDA(5, epsilon=epsilon, random_state=0).fit(X)
    return topic_error(fitted.components_, topics)


def what_it_costs() -> None:
    """Error against the number of documents."""
    figure, ax = plt.subplots(figsize=(6, 3.6))
    lines = {0.3: ORANGE, 1.0: BLUE, 4.0: GREEN, np.inf: INK}
    for epsilon, colour in lines.items():
        errors = [np.median([one_fit(n, epsilon, seed) for seed in range(5)]) for n in SIZES]
        print("epsilon", epsilon, dict(zip(SIZES, np.round(errors, 3), strict=True)))
        label = "no privacy" if np.isinf(epsilon) else f"epsilon = {epsilon:g}"
        ax.plot(SIZES, errors, "o-", color=colour, lw=2, label=label)
    ax.set(xscale="log", xlabel="documents", ylabel="error of topics (0 right, 1 not found)")
    ax.set_ylim(0, 1)
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    keep(figure, "what_it_costs")


def topics_over_time() -> None:
    """The picture of a page, by the programs of that page."""
    page = (HERE.parent / "how_to" / "topics_over_time.md").read_text(encoding="utf-8")
    program = "\n".join(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL))
    with contextlib.chdir(HERE), unsafe_seeded_noise(0):
        exec(compile(program, "topics_over_time", "exec"), {})


if __name__ == "__main__":
    warnings.simplefilter("ignore", PrivacyLeakWarning)
    warnings.simplefilter("ignore", NotEnoughDataWarning)
    mpl.rcParams.update({"svg.hashsalt": "sktensor_dp", "font.size": 12})
    what_leaves()
    epsilon_as_odds()
    what_it_costs()
    topics_over_time()
