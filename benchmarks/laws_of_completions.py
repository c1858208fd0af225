"""CP and Tucker completions of known laws: error by people and epsilon, and what forecasts say.

People rate 40 of 300 items, twice the same one counted twice. Values of deviation 1 are clipped to
+-4; components have the share .3 of their variance where factors are normal, and .1 where they are
positive, whose means are biases. Or people answer 40 of 80 questions on a scale of few levels: the
one that the trait a question is about, with a logistic error, is in. Seed s draws data from
``default_rng([s, n])``; fits have noise seed s and random_state s. A tenth of the values is held
out; errors are of people folded in.

    python -m benchmarks laws_of_completions
    python -m benchmarks laws_of_completions --quick     two laws, one seed
"""

import math
import warnings
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.ratings import Ratings, held_out
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import NotEnoughDataWarning, PrivateCPCompletion, PrivateTuckerCompletion

__all__ = ["Law", "Questions", "run"]

ITEMS, QUESTIONS, EACH = 300, 80, 40
PEOPLE, EPSILONS = (500, 3000, 12_000), (0.5, 1.0, 4.0, math.inf)
BIAS = 0.4  # deviation of the biases of people, and of items
# Mean and variance of a half-normal factor.
MOMENTS = math.sqrt(2 / math.pi), 1 - 2 / math.pi
# Components are found where they explain this part of what they are.
FOUND = 0.1


@dataclass(frozen=True)
class Law:
    """Factors and biases that draw values, and the estimator that is to find them."""

    rank: int
    positive: bool
    biases: bool
    tucker: bool = False

    def __str__(self) -> str:
        model = "Tucker" if self.tucker else "CP"
        factors = "positive" if self.positive else "normal"
        return f"{model}, rank {self.rank}, {factors}{', biases' if self.biases else ''}"

    @property
    def share(self) -> float:
        """Share of components in the variance of values, beside biases."""
        return 0.1 if self.positive else 0.3

    @property
    def bias(self) -> float:
        """Deviation of the biases of people, and of items."""
        mean, variance = MOMENTS if self.positive else (0.0, 1.0)
        own = BIAS**2 if self.biases else 0.0
        return math.sqrt(own + self.share * mean**2 / variance)

    def draw(self, n: int, seed: int) -> Ratings:
        """Ratings of so many people."""
        rng = np.random.default_rng([seed, n])
        people, items = np.repeat(np.arange(n), EACH), rng.integers(ITEMS, size=n * EACH)
        mean, variance = MOMENTS if self.positive else (0.0, 1.0)
        taste = np.zeros(len(people))
        for _ in range(self.rank):
            u, v = rng.standard_normal(n), rng.standard_normal(ITEMS)
            if self.positive:
                u, v = np.abs(u), np.abs(v)
            taste += u[people] * v[items] - mean**2
        y = math.sqrt(self.share / self.rank) / variance * taste
        if self.biases:
            y += BIAS * (rng.standard_normal(n)[people] + rng.standard_normal(ITEMS)[items])
        y += math.sqrt(1 - self.share - 2 * self.bias**2) * rng.standard_normal(len(y))
        known = {"deviation": 1.0, "bias_deviation": self.bias, "component_share": self.share}
        X = np.column_stack([people, items])
        return replace(held_out(X, np.clip(y, -4.0, 4.0), (n, ITEMS), (-4.0, 4.0)), known=known)


@dataclass(frozen=True)
class Questions:
    """Item responses: traits of people, each asked for by some questions, in levels."""

    rank: int
    levels: int
    tucker = False

    @property
    def share(self) -> float:
        """Share of components in the variance of values, beside biases, about."""
        return 0.01 if self.rank == 1 else 0.07

    def __str__(self) -> str:
        traits = "one trait" if self.rank == 1 else f"{self.rank} traits"
        return f"answers of {self.levels} levels, {traits}"

    def draw(self, n: int, seed: int) -> Ratings:
        """Answers of so many people."""
        rng, m = np.random.default_rng([seed, n]), QUESTIONS
        traits, about = rng.standard_normal((n, self.rank)), rng.integers(self.rank, size=m)
        hard, sharp = 1.3 * rng.standard_normal(m), np.exp(0.3 * rng.standard_normal(m))
        people = np.repeat(np.arange(n), EACH)
        asked = np.argsort(rng.random((n, m)), axis=1)[:, :EACH].ravel()
        latent = sharp[asked] * traits[people, about[asked]] - hard[asked]
        latent += rng.logistic(size=len(latent))
        ends = np.linspace(-2, 2, self.levels - 1) if self.levels > 2 else [0.0]
        y = np.searchsorted(ends, latent).astype(np.float64)
        # Of both modes: a person's mean also varies by the errors of single answers.
        items, own = np.bincount(asked, y) / np.bincount(asked), y.reshape(n, EACH)
        bias = (items.var() + own.mean(axis=1).var() - own.var(axis=1).mean() / EACH) / 2
        known = {"deviation": float(y.std()), "bias_deviation": math.sqrt(max(bias, 0.0))}
        known["component_share"] = self.share
        X, top = np.column_stack([people, asked]), self.levels - 1.0
        return replace(held_out(X, y, (n, m), (0.0, top)), known=known)


LAWS: tuple[Law | Questions, ...] = (
    Law(1, positive=False, biases=False), Law(2, positive=True, biases=True),
    Law(3, positive=False, biases=True), Law(4, positive=True, biases=False),
    Law(5, positive=False, biases=False),
    Law(1, positive=True, biases=False, tucker=True),
    Law(3, positive=False, biases=True, tucker=True),
    *(Questions(rank, levels) for levels in (2, 5) for rank in (1, 2)),
)  # fmt: skip


@dataclass(frozen=True)
class Fit:
    """Error of a fit, whether it found components, and what was forecast of both."""

    error: float
    found: bool
    said: float
    says: bool


def fitted(
    law: Law | Questions, ratings: Ratings, unit_mode: int | None, epsilon: float, seed: int
) -> Fit:
    """Fit with components and without, and fold in."""
    kind = PrivateTuckerCompletion if law.tucker else PrivateCPCompletion
    errors = []
    for make, rank in ((kind, law.rank), (PrivateCPCompletion, 0)):
        model = make(
            rank, bounds=ratings.bounds, shape=ratings.shape, epsilon=epsilon, unit_mode=unit_mode,
            random_state=seed,
        )  # fmt: skip
        if rank:
            forecast = model.forecast(len(ratings.y), ratings.shape, **ratings.known)
        with reproducible_noise(seed), warnings.catch_warnings():
            warnings.simplefilter("ignore", NotEnoughDataWarning)
            own = model.fit(ratings.X, ratings.y).fold_in(ratings.X, ratings.y)
        errors.append(ratings.error(own.predict(ratings.X_test)))
    found = errors[1] ** 2 - errors[0] ** 2 > FOUND * law.share * ratings.known["deviation"] ** 2
    return Fit(errors[0], found, forecast.of_fold_in, forecast.finds_components)


def run(report: Report) -> None:
    """Measure all laws."""
    seeds = range(1 if report.quick else 3)
    rows: list[list[Cell]] = []
    fits: list[Fit] = []
    by_epsilon = by_number = by_means = -math.inf
    for law in LAWS[:2] if report.quick else LAWS:
        # Answers are a person's: single ones are no units here.
        for unit_mode in (None, 0) if isinstance(law, Law) else (0,):
            errors = np.empty((len(PEOPLE), len(EPSILONS)))
            for i, n in enumerate(PEOPLE):
                drawn = [law.draw(n, seed) for seed in seeds]
                for j, epsilon in enumerate(EPSILONS):
                    own = [
                        fitted(law, ratings, unit_mode, epsilon, seed)
                        for seed, ratings in enumerate(drawn)
                    ]
                    fits += own
                    errors[i, j] = np.median([one.error for one in own])
                    found, says = sum(one.found for one in own), own[0].says
                    unit = "a rating" if unit_mode is None else "a person"
                    rows.append([
                        str(law), unit, n, epsilon, float(errors[i, j]), own[0].said,
                        f"{found} of {len(own)}", "yes" if says else "no",
                    ])  # fmt: skip
                    report.note(" | ".join(map(str, rows[-1])))
            if isinstance(law, Questions):
                means = np.median([list(ratings.trivial().values())[-1] for ratings in drawn])
                by_means = max(by_means, float(errors[-1, 1:].max() / means))
            by_epsilon = max(by_epsilon, float((errors[:, 1:] / errors[:, :-1]).max()))
            if isinstance(law, Law):  # others ask other questions
                by_number = max(by_number, float((errors[1:] / errors[:-1]).max()))
    report.table(
        "Completions of known laws: RMSE of people folded in",
        ["law", "unit", "people", "epsilon", "error", "forecast", "found", "forecast finds"], rows,
        file="laws_of_completions", how="noise seeds 0 to 2",
    )  # fmt: skip
    report.bar("error over that at a smaller epsilon, most", by_epsilon, 1.01)
    report.bar("error over that of fewer people, most", by_number, 1.01)
    if not report.quick:
        report.bar("answers: error of most people over that of exact means, most", by_means, 1.005)
    agreed = float(np.mean([one.found == one.says for one in fits]))
    report.bar("forecasts of components that agree with fits", agreed, 0.9, at_least=True)
    off = max(abs(one.said / one.error - 1) for one in fits)
    report.bar("forecast error off by, most", off, 0.15)
