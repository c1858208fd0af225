"""Topics of documents drawn from the model: the default prior against the one that drew them.

Seed 0 draws topics from Dirichlet(.2) and documents of one length that mix them at a
concentration (0: one topic each); fits have noise seed 1 and random_state 0. The error is the mean
total variation of matched topics, of which one that is not found counts 1.

*Persons*: 10,000 with 1 + Poisson(4) documents of 15 of 600 words, eight topics: all of a person
share one mixture (of concentration 1), or each has its own, or one topic of the person's mixture.
Groups against all documents of a person in one: completion of the documents of 1,000 others over
exact word frequencies, means of seeds 0 to 4.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpora import Corpus, Persons, lda, mixed, single_topic
from benchmarks.metrics import matched_error
from benchmarks.people import HeldOutPosts, fitted
from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateSpectralLDA

__all__ = ["LAWS", "Law", "error", "run"]

EPSILONS = (1.0, 4.0, float("inf"))
# Auto over known; where the known prior leaves more than this, no prior is told from another.
AUTO, MARGIN, HOPELESS = 1.3, 0.003, 0.3
MORE_BUDGET, MORE_MARGIN = 1.05, 0.002


@dataclass(frozen=True)
class Law:
    """Documents of a number of words, tokens and topics, at a concentration."""

    n_words: int
    length: int
    concentration: float
    n_topics: int
    n_documents: int

    @property
    def corpus(self) -> Corpus:
        """Documents and the topics that drew them."""
        return _drawn(self)

    def __str__(self) -> str:
        return (
            f"{self.n_words} words, {self.length} tokens, concentration {self.concentration:g}, "
            f"{self.n_documents} documents"
        )


@cache
def _drawn(law: Law) -> Corpus:
    rng, topic_law = np.random.default_rng(0), np.full(law.n_words, 0.2)
    if law.concentration == 0:
        return single_topic(law.n_documents, topic_law, law.n_topics, law.length, rng)
    lengths: NDArray[np.int64] = np.full(law.n_documents, law.length)
    return lda(lengths, topic_law, law.n_topics, law.concentration, rng)


FEW = [(50, 3, 0.0, 10), (50, 10, 0.3, 5), (60, 10, 0.5, 5), (50, 10, 1.0, 5), (50, 10, 4.0, 5)]
MANY = [
    (600, 8, 0.0, 8), (600, 8, 1.0, 8), (600, 20, 0.0, 8), (600, 20, 0.3, 8), (500, 20, 0.5, 8),
    (600, 60, 1.0, 8), (600, 60, 4.0, 8),
]  # fmt: skip
LAWS = [Law(*law, 100_000) for law in FEW] + [Law(*law, 50_000) for law in MANY]
# Of some laws a tenth of the documents too, at these epsilons: never better.
TENTHS, FEWER = [*LAWS[:4], LAWS[7], LAWS[10]], (1.0, 4.0)


def error(law: Law, epsilon: float, prior: float | str, seed: int = 1) -> tuple[float, float]:
    """Topic error of a fit, and the concentration in use."""
    model = PrivateSpectralLDA(law.n_topics, epsilon=epsilon, doc_topic_prior=prior, random_state=0)
    with reproducible_noise(seed):
        model.fit(law.corpus.X)
    found = model.doc_topic_prior_ * model.n_components_
    return matched_error(model.components_, law.corpus.topics), found


def run(report: Report) -> None:
    laws = LAWS[::4] if report.quick else LAWS
    rows: list[list[str | float]] = []
    for law in laws:
        auto = measure(law, EPSILONS, rows, report)
        for epsilon, more in zip(EPSILONS[1:], EPSILONS[:-1], strict=True):
            least = MORE_BUDGET * auto[more] + MORE_MARGIN
            where = f"{law}, epsilon = {epsilon:g}"
            report.bar(f"{where}, against less budget", auto[epsilon], least)
        if law in TENTHS:
            fewer = replace(law, n_documents=law.n_documents // 10)
            for epsilon, few in measure(fewer, FEWER, rows, report).items():
                report.bar(f"{fewer}, epsilon = {epsilon:g}, ten times as many", auto[epsilon], few)
        _drawn.cache_clear()
    report.table(
        "Topic error", ["law", "epsilon", "auto", "known prior", "concentration found"], rows,
        file="laws", how="noise seed 1",
    )  # fmt: skip
    persons(report)


def measure(
    law: Law, epsilons: tuple[float, ...], rows: list[list[str | float]], report: Report
) -> dict[float, float]:
    """Errors of the default prior, held against those of the known one."""
    found: dict[float, float] = {}
    for epsilon in epsilons:
        found[epsilon], concentration = error(law, epsilon, "auto")
        known, _ = error(law, epsilon, law.concentration / law.n_topics)
        rows.append([str(law), epsilon, found[epsilon], known, concentration])
        if known < HOPELESS:
            where = f"{law}, epsilon = {epsilon:g}, auto"
            report.bar(where, found[epsilon], AUTO * known + MARGIN)
    return found


def persons_of(kind: str, rng: np.random.Generator) -> Persons:
    """11,000 persons whose documents mix topics as `kind` says."""
    person = np.repeat(np.arange(11_000), 1 + rng.poisson(4, 11_000))
    topics, n = np.full(600, 0.2), len(person)
    mixtures = rng.dirichlet(np.full(8, 1 / 8), n if kind == "independent" else 11_000)
    if kind != "independent":
        mixtures = mixtures[person]
    if kind == "one topic":
        chosen = (rng.random(n)[:, None] > mixtures.cumsum(axis=1)).sum(axis=1)
        mixtures = np.eye(8)[np.minimum(chosen, 7)]
    return Persons(mixed(np.full(n, 15), mixtures, rng.dirichlet(topics, 8), rng), person)


def persons(report: Report) -> None:
    """Hold groups against all documents of a person in one."""
    rows: list[list[str | float]] = []
    for kind in ("shared", "independent", "one topic"):
        for epsilon in EPSILONS:
            found: dict[str, list[float]] = {"groups": [], "all in one": []}
            for seed in range(1 if report.quick else 5):
                data = persons_of(kind, np.random.default_rng(seed))
                held_out = data.person >= 10_000
                train, test = data.part(~held_out), data.part(held_out)
                posts = HeldOutPosts(test, train.mean_frequencies())
                for way, ratios in found.items():
                    model = fitted(way, train, epsilon, seed, 8, "auto")
                    ratios.append(posts.ratio(model))
            groups, joined = (float(np.mean(ratios)) for ratios in found.values())
            rows.append([kind, epsilon, groups, joined])
            report.bar(f"persons, {kind}, epsilon = {epsilon:g}", groups / joined, 1.005)
    report.table(
        "Completion for persons", ["documents", "epsilon", "groups", "all in one"], rows,
        file="laws_of_persons", how="means of seeds 0 to 4",
    )  # fmt: skip
