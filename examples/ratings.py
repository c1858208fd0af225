"""Ratings by people of things, learnt with each person protected, and a new person folded in.

Synthetic ratings of 1 to 5 stars: taste has two dimensions, and some things are better than
others. All ratings of one person are the unit of privacy. Things have names, whose list is
public; people have ids, which are not kept. A table says what privacy costs: errors and ranks of
ratings held back, epsilon by epsilon. Then a person who was not in the data gets
recommendations from own ratings, which never leave their place::

    python examples/ratings.py
    python examples/ratings.py --people 5000 --epsilon 2 --output ratings.svg
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
from sklearn.metrics import ndcg_score

from sktensor_dp import NotEnoughDataWarning, PrivateCPCompletion, RowIndex

Floats = NDArray[np.float64]

STARS, EACH, HELD_OUT = (1.0, 5.0), 25, 10
EPSILONS = (math.inf, 8.0, 4.0, 2.0, 1.0)
KINDS = ("crime", "comedy", "war", "romance")
THINGS = [f"{kind} {number:02d}" for kind in KINDS for number in range(1, 16)]
NAMES = RowIndex.from_public(THINGS)
BLUE, ORANGE, INK, MUTED = "#0072B2", "#E69F00", "#1f2933", "#52606d"


@dataclass(frozen=True)
class World:
    """How good things are, and where in two dimensions of taste they lie."""

    quality: Floats
    taste: Floats

    def ratings(
        self, people: Floats, rng: np.random.Generator
    ) -> tuple[NDArray[np.intp], NDArray[np.str_], Floats]:
        """Who rated what, and how, of people by their taste."""
        who = np.repeat(np.arange(len(people)), EACH)
        what = np.argsort(rng.random((len(people), len(THINGS))), axis=1)[:, :EACH].ravel()
        level = 3.2 + 0.3 * rng.standard_normal(len(people))
        stars = level[who] + self.quality[what] + (people[who] * self.taste[what]).sum(axis=1)
        stars += 0.5 * rng.standard_normal(len(who))
        return who, np.array(THINGS)[what], np.clip(np.rint(stars), *STARS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, print, draw; return 0, or 2 on bad input."""
    parser = argparse.ArgumentParser(description="Ratings, and a new person folded in.")
    parser.add_argument("--people", type=int, default=4000)
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=0, help="of the data; noise has none")
    parser.add_argument("--output", type=Path, default=Path("ratings.png"))
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(options.seed)
    world = invented(rng)
    try:
        if options.people < 1:
            raise ValueError(f"--people must be at least 1, got {options.people}.")
        who, what, stars = world.ratings(rng.standard_normal((options.people, 2)), rng)
        print(accuracy(who, what, stars, options.people), end="\n\n")
        model = completion(options.people, options.epsilon).fit(table(who, what), stars)
        print(model.privacy_report_, end="\n\n")
        person = newcomer(model, world, rng)
        options.output.parent.mkdir(parents=True, exist_ok=True)
        picture(*person, title(options.epsilon)).savefig(options.output, dpi=150)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"picture: {options.output}")
    return 0


def invented(rng: np.random.Generator) -> World:
    """Each kind of thing lies in its own direction of taste."""
    angles = np.repeat(np.arange(len(KINDS)) * math.pi / 2, len(THINGS) // len(KINDS))
    angles = angles + 0.3 * rng.standard_normal(len(THINGS))
    taste = 0.8 * np.column_stack([np.cos(angles), np.sin(angles)])
    return World(0.4 * rng.standard_normal(len(THINGS)), taste)


def completion(n_people: int, epsilon: float) -> PrivateCPCompletion:
    """People are the units, and their number is public."""
    return PrivateCPCompletion(
        2, bounds=STARS, shape=(n_people, len(THINGS)), row_names=(None, NAMES),
        unit_mode=0, epsilon=epsilon, random_state=0,
    )  # fmt: skip


def table(who: NDArray[np.intp], what: NDArray[np.str_]) -> NDArray[np.object_]:
    """Ids of people and names of things, side by side."""
    return np.column_stack([[f"p{number:06d}" for number in who], what]).astype(object)


def accuracy(who: NDArray[np.intp], what: NDArray[np.str_], stars: Floats, n_people: int) -> str:
    """Of ten ratings of each person held back: their errors, and how these things are ranked."""
    X, given = table(who, what), np.arange(len(who)) % EACH >= HELD_OUT
    truth = np.zeros((n_people, len(THINGS)))
    truth[who[~given], NAMES.encode(what[~given])] = stars[~given]
    lines = ["people as units   RMSE   drop   NDCG@10   drop"]
    exact: tuple[float, float] | None = None
    for epsilon in EPSILONS:
        model = completion(n_people, epsilon).fit(X[given], stars[given])
        own = model.fold_in(X[given], stars[given])
        error = float(np.sqrt(np.mean((own.predict(X[~given]) - stars[~given]) ** 2)))
        gain = float(ndcg_score(truth, np.where(truth > 0, model.predict_rows(own), 0.0), k=10))
        exact = exact or (error, gain)
        lines.append(
            f"epsilon = {epsilon:<6g}  {error:.3f}  {error / exact[0] - 1:+5.1%}  {gain:.3f}   "
            f"{gain / exact[1] - 1:+5.1%}"
        )
    return "\n".join(lines)


def newcomer(
    model: PrivateCPCompletion, world: World, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Someone who likes crime and dislikes war: truth and predictions, without and with fold-in."""
    taste = np.array([[1.3, 0.0]])
    _, what, stars = world.ratings(taste, rng)
    # An id of their own: the model knows nobody of it, and needs not.
    rated = np.column_stack([np.full(EACH, "me", dtype=object), what])
    own = model.fold_in(rated, stars)
    truth = np.clip(3.2 + world.quality + taste[0] @ world.taste.T, *STARS)
    plain, folded = model.predict_rows("me")[0], model.predict_rows(own)[0]
    for name, found in (("what all share", plain), ("with 25 own ratings", folded)):
        print(
            f"RMSE of a new person, {name:20}: {np.sqrt(np.mean((found - truth) ** 2)):.2f} stars"
        )
    best = model.recommend(own, 5, exclude=rated).rows[0]
    print("to suggest: " + ", ".join(best))
    return truth, plain, folded


def picture(truth: Floats, plain: Floats, folded: Floats, name: str) -> Figure:
    """Predictions against what the person would say, thing by thing."""
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axis = figure.subplots()
    order = np.argsort(truth)
    places = np.arange(len(truth))
    axis.plot(places, truth[order], color=INK, linewidth=1.6, label="the person's taste")
    axis.plot(places, plain[order], "o", ms=4, color=ORANGE, label="predicted for anyone")
    axis.plot(places, folded[order], "s", ms=4, color=BLUE, label="folded in from 25 ratings")
    axis.set(ylim=(0.8, 5.2), xlabel="things, from worst to best for this person", ylabel="stars")
    axis.set_title(f"A new person, {name}", fontsize=10, loc="left", color=INK)
    axis.grid(axis="y", color="#e4e7eb")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="upper left", fontsize=8.5, frameon=False)
    return figure


def title(epsilon: float) -> str:
    return "no noise" if math.isinf(epsilon) else f"epsilon = {epsilon:g} for everyone in the data"


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotEnoughDataWarning)
        sys.exit(main())
