"""What each tuned constant and mechanism of topics is worth, one at a time.

Each is set to its neutral value in turn. The change of held-out completion perplexity of real
texts, and of the topic error of documents drawn from the model, is in percent, with its standard
error over noise seeds 0 to 4; positive numbers say that the part helps. Ten topics of texts, of
which titles are the shortest. What forecasts alone assume changes how much the committed fits
surprise them, by minus the logarithm of chances: neutral is the strength of drawn topics, which
share no words, one that hardly differs, and that steps confirm no more topics than pairs show. The
histogram of shares by group, and the prior of mixtures, change how many intervals of level 90 %
miss the exact share, from 10 % on.

    python -m benchmarks ablations_of_topics
    python -m benchmarks ablations_of_topics --quick          one epsilon, two seeds, two sets
"""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import topics
from benchmarks.ablations import SEEDS, TITLE, Ablation, change, changes, constant, shown
from benchmarks.corpora import mixed
from benchmarks.forecasts import forecasts_surprise
from benchmarks.laws import Law, error
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.spectral_lda import defaults
from sktensor_dp.topics import shrinkage

__all__ = ["ABLATIONS", "run"]

DEFAULTS = "spectral_lda.defaults"
# Words that are alike in all topics, and one gamma distribution of the others.
ONE_SHAPE = shrinkage._RATIO_PRIOR[[0, 5]]
LAWS = (
    Law(600, 20, 0.3, 8, 6000), Law(600, 60, 4.0, 8, 6000), Law(50, 10, 1.0, 5, 10_000),
    Law(50, 3, 0.0, 10, 100_000),
)  # fmt: skip
# Documents of each kind of text that are learnt from, and epsilons: each leaves some of the topics
# and hides others.
MOST = 6000
TEXTS = {"newsgroups": (8.0,), "six tokens": (20.0,), "titles": (8.0,), "kos": (1.0, 4.0)}
OF_LAWS = (8.0,)
# What only forecasts have.
OF_FORECASTS = (
    constant("topics.STRENGTH", 4.0), constant("topics.STRENGTH_SPREAD", 0.1),
    constant("topics.TOPIC_SPREAD", 0.1), constant("topics.CONFIRMED", 1.0),
    constant("topics.HALF_MIXED", 0.0),
)  # fmt: skip
# What moves topics to released counts, and widens intervals of shares: next to nothing.
OF_MIXING = constant("topics.MIXING", 0.001)
# What only shares by group have, of persons of which a part has 10 to 100 texts of one topic.
OF_SHARES = Ablation(
    "FRACTIONS: shares_by_group 0.01", (),
    {f"{DEFAULTS}.FRACTIONS": {
        **defaults.FRACTIONS, "shares_by_group": {"norm_histogram": 0.01, "topic_shares": 0.99},
    }},
)  # fmt: skip
BUSY, PERSONS = (0.01, 0.03, 0.1), ((4000, 2.0), (8000, 0.5), (8000, 2.0))  # and epsilon
# What only fits without noise have.
EXACT = "EXACT_STEPS"
Measure = Callable[[float, int], float]


def _fraction(name: str, neutral: float) -> Ablation:
    many_words = {**defaults.FRACTIONS["many_words"], name: neutral}
    fractions = {**defaults.FRACTIONS, "many_words": many_words}
    return Ablation(f"FRACTIONS: {name} {neutral:g}", (), {f"{DEFAULTS}.FRACTIONS": fractions})


def _part(name: str, place: str, neutral: Any) -> Ablation:
    return Ablation(name, (), {place: neutral})


def _fitted(*released: Any) -> Callable[..., float]:
    """Concentration that topics were fitted with, whatever their mixtures."""
    *_, fitted = released
    return lambda *_: float(fitted.concentration)


ABLATIONS = (
    _fraction("pair_moments", 0.1),
    _fraction("word_frequencies", 0.03),
    constant("spectral_lda.CLIPPED", 0.001),
    constant("spectral_lda.N_CLIPPED", 1e9),
    constant("spectral_lda.LOW_QUANTILE", 0.95),
    constant("spectral_lda.JOINT_WORDS", 0),
    constant("spectral_lda.MATCH_FROM", 1e9),
    constant("spectral_lda.DOCUMENTS_PER_WORD", 1.0),
    constant("spectral_lda.STEPS", 1),
    constant("spectral_lda.EXACT_STEPS", 1),
    constant("spectral_lda.ECHO", 0.0),
    constant("spectral_lda.SCALE_POWER", 0.0),
    constant("spectral_lda.STEP_LIMIT", 1.0),
    constant("topics.PAIR_STEPS", 0),
    constant("topics.START_BLUR", 0.0),
    constant("topics.TOKENS_OF_TOPIC", 0),
    OF_MIXING,
    _part("concentration, not 1", "spectral_lda.recipe.concentration_of_pairs", lambda *_: 1.0),
    _part("concentration after steps", "spectral_lda.refinement._concentration_of", _fitted),
    _part("sharpening of topics", "spectral_lda.refinement.sharpened", lambda fitted, *_: fitted),
    _part("short documents of one topic", "spectral_lda.recipe.has_one_topic", lambda *_: False),
    _part("mixture of gamma priors", "topics.shrinkage._RATIO_PRIOR", ONE_SHAPE),
    *OF_FORECASTS,
    OF_SHARES,
)


def _of_set(epsilon: float) -> list[Ablation]:
    """Parts of fits with noise, or without."""
    return [
        one for one in ABLATIONS
        if one.name.startswith(EXACT) == math.isinf(epsilon)
        and one not in (*OF_FORECASTS, OF_SHARES)
    ]  # fmt: skip


def of_forecasts() -> Iterator[list[Cell]]:
    """Rows of what only forecasts have."""
    for part, *changed in changes(OF_FORECASTS, lambda: np.array([forecasts_surprise()])):
        yield [part, "surprise of forecasts", "", *changed]


def _missed_shares(n: int, epsilon: float, busy: float, seed: int) -> float:
    """Fraction of intervals that miss the shares of three topics in four groups of n persons."""
    rng, words = np.random.default_rng(seed), np.kron(np.eye(3), [[6, 3]])
    lda = PrivateSpectralLDA(3, doc_topic_prior=0, epsilon=math.inf).fit(words.repeat(9, axis=0))
    is_busy = rng.random(n) < busy
    sizes = np.where(is_busy, rng.integers(10, 101, n), 1 + rng.poisson(1.5, n))
    groups, by = np.repeat(np.arange(n), sizes), rng.integers(4, size=sizes.sum())
    X = words[np.where(is_busy[groups], 2, rng.integers(3, size=len(by)))]
    shares = lda.transform(X)
    exact = np.array([shares[by == value].mean(axis=0) for value in range(4)])
    with reproducible_noise(seed):
        low, high = lda.shares_by(X, by, range(4), groups=groups, epsilon=epsilon).interval()
    return float(np.mean((low > exact) | (exact > high)))


def of_shares(seeds: range) -> Iterator[list[Cell]]:
    """Rows of what only shares by group have."""
    for n, epsilon in PERSONS:
        missed = []
        for made in (nullcontext(), OF_SHARES.made()):
            with made:
                found = [
                    [_missed_shares(n, epsilon, busy, seed) for busy in BUSY] for seed in seeds
                ]
            missed.append(np.maximum(np.mean(found, axis=1), 0.1))
        name = f"intervals that miss a share, {n} persons"
        yield [OF_SHARES.name, name, epsilon, *change(missed[1], missed[0])]


def _missed_common(epsilon: float, common: float, seed: int) -> float:
    """Fraction of intervals that miss the shares of four topics in four groups of texts.

    A part of all words is `common` to all topics; groups have more and more of the first topic.
    A fit of a single topic has no intervals, and none that miss.
    """
    rng, own = np.random.default_rng(seed), np.kron(np.eye(4, 5), 1 / np.arange(5, 65))
    words = 1 / np.arange(10, 310)
    of_topics = (1 - common) * own / own.sum(axis=1, keepdims=True) + common * words / words.sum()
    by = rng.integers(4, size=20_000)
    priors = np.array([0.6, 0.5, 0.4, 0.3]) + np.outer(np.arange(4), [0.3, 0, 0, 0])
    shares = np.array([rng.dirichlet(prior) for prior in priors[by]])
    X = mixed(rng.poisson(25, len(by)), shares, of_topics, rng)
    with reproducible_noise(seed):
        lda = PrivateSpectralLDA(4, epsilon=0.9 * epsilon, random_state=0).fit(X)
        if lda.n_components_ < 2:
            return 0.0
        given = {"epsilon": 0.4 * epsilon, "anyway": True}  # also of topics hard to tell apart
        low, high = lda.shares_by(X, by, range(4), **given).interval()
    order = np.abs(of_topics[:, None] - lda.components_).sum(axis=2).argmin(axis=1)
    exact = np.array([shares[by == value].mean(axis=0) for value in range(4)])
    return float(np.mean((low[:, order] > exact) | (exact > high[:, order])))


def of_mixing(seeds: range) -> Iterator[list[Cell]]:
    """Rows of intervals of shares of topics that have words in common."""
    for common in (0.3, 0.6):
        missed = []
        for made in (nullcontext(), OF_MIXING.made()):
            with made:
                missed.append([_missed_common(4.0, common, seed) for seed in seeds])
        name = f"intervals that miss a share, {common:.0%} of words in common"
        changed = change(*(np.maximum(one, 0.1) for one in missed[::-1]))
        yield [OF_MIXING.name, name, 4.0, *changed]


def _measures(data: Path, report: Report) -> Iterator[tuple[str, Measure]]:
    """Sets that are there: name, and error of a fit by epsilon and seed."""
    for law in LAWS:
        yield str(law), lambda epsilon, seed, law=law: error(law, epsilon, "auto", seed)[0]
    seen = set()
    for name, X, labels in topics.corpora(data):
        if name in TEXTS:
            seen.add(name)
            held = topics.HeldOut(X, labels)
            held.train = held.train[
                np.random.default_rng(1).permutation(held.train.shape[0])[:MOST]
            ]
            yield name, lambda epsilon, seed, held=held: held.ratio(held.fit(epsilon, seed))
    for name in sorted(set(TEXTS) - seen):
        report.note(f"skipped: no {name} in {data}")


def run(report: Report, data: Path) -> None:
    """Measure all parts on all sets that are there."""
    seeds = range(2 if report.quick else SEEDS)
    rows: list[list[Cell]] = [*of_forecasts(), *of_shares(seeds), *of_mixing(seeds)]
    for name, measure in _measures(data, report):
        if report.quick and name not in ("kos", str(LAWS[0])):
            continue
        for epsilon in (*TEXTS.get(name, OF_LAWS), math.inf):
            whole = np.array([measure(epsilon, seed) for seed in seeds])
            for ablation in _of_set(epsilon):
                with ablation.made():
                    found = [measure(epsilon, seeds[0])]
                    # Where a part does nothing for one seed, it is not asked for.
                    if found[0] != whole[0]:
                        found += [measure(epsilon, seed) for seed in seeds[1:]]
                changed = change(np.array(found), whole[: len(found)])
                rows.append([ablation.name, name, epsilon, *changed])
                report.note(" | ".join(map(str, rows[-1])))
    report.table(
        TITLE, ["part", "set", "epsilon", "change", "standard error"], shown(ABLATIONS, rows),
        file="ablations_of_topics", how="noise seeds 0 to 4",
    )  # fmt: skip
