"""Peers side by side: what users would pick instead, on the same data, by the same measure.

Topics: 20 Newsgroups as in ``topics``, 10 and 50 topics, completion over exact word frequencies.
Clusters: round Gaussians, 20,000 samples; the adjusted Rand index of labels of
as many new samples. Ratings: MovieLens 100K (ua.base, ua.test), one rating as the unit; root mean
square errors. Persons: the same and a drawn table, one person as the unit, beside ``dpals``. Words:
the vocabulary of 20 Newsgroups, 100 words of a document, for both relations of neighbours; nobody
releases document frequencies. Each way runs in a process of its own, which tells its CPU seconds
and how far memory rises. Seeded noise 0 to 2, medians; delta is 1e-6. Peers are asked for what they
have: with defaults, or as their papers say. diffprivlib brings a package called ``tests`` that
hides ours: run this in an environment of its own, as ``make peers`` does.

    pip install tensorly tomotopy diffprivlib
    python -m benchmarks peers
    python -m benchmarks peers --quick     one seed, few documents
"""

import importlib
import importlib.util
import math
import multiprocessing
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.decomposition import PCA, LatentDirichletAllocation
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from benchmarks.dpals import by_dpals, by_persons, drawn_table
from benchmarks.laws_of_components import Sampler
from benchmarks.peak_memory import peak
from benchmarks.power_method import orthonormal_rows
from benchmarks.ratings import Ratings, movielens
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from benchmarks.topics import HeldOut, newsgroup_posts
from benchmarks.topics_and_gibbs import by_prior, completion, documents_of
from benchmarks.words import by_votes, newsgroups_texts, one_round, texts_of
from sktensor_dp import PrivateCPCompletion, PrivateGaussianMixture
from sktensor_dp.data.counts import CountChunk
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.published import gradient_perturbation, input_perturbation, output_perturbation
from sktensor_dp.published.completion import SGDSettings
from sktensor_dp.published.spectral_lda import CorpusMoments
from sktensor_dp.tensor import whitener
from sktensor_dp.tensor.symmetric import multilinear

__all__ = ["run"]

DELTA, SEEDS, EPSILONS = 1e-6, 3, (1.0, 4.0, math.inf)
N_PASSES, N_SAMPLES, MOST_WORDS = 300, 20_000, 100
# Components, columns and separation; the last one has more components than columns.
LAWS = ((3, 8, 4.0), (5, 10, 4.0), (8, 4, 6.0))
# Gradients of 100 ratings at a time: of each alone, as printed, they take hours.
SGD = SGDSettings(max_iter=30, block=100)
COLUMNS = ["way", "guarantee", "epsilon", "result", "CPU seconds", "MB"]
Way = Callable[[int], float]
Floats = NDArray[np.float64]


def run(report: Report, folder: Path) -> None:
    """All tables, as far as data are there."""
    topics(report, folder)
    clusters(report)
    ratings(report, folder)
    by_unit(report, folder)
    words(report, folder)


def compared(report: Report, name: str, ways: Sequence[tuple[str, str, float, Way]]) -> None:
    """A table of ways: name, guarantee, epsilon, and what a seed gives."""
    rows: list[list[Cell]] = []
    for way, guarantee, epsilon, measure in ways:
        found = alone(measure, 1 if report.quick else SEEDS)
        private = guarantee != "none"
        row = [way, guarantee, f"{epsilon:g}" if private else "", *found]
        report.note("  ".join(map(str, row)))
        rows.append(row)
    report.table(name, COLUMNS, rows, file="peers", group=name, how="medians of seeds 0 to 2")


def alone(measure: Way, seeds: int) -> list[float]:
    """Result, CPU seconds and megabytes of a way, in a process of its own; medians over seeds."""
    context = multiprocessing.get_context("fork")
    found = []
    for seed in range(seeds):
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=_told, args=(measure, seed, sender))
        child.start()
        sender.close()
        found.append(receiver.recv())
        child.join()
    return np.median(np.array(found), axis=0).tolist()


def _told(measure: Way, seed: int, sender: Any) -> None:
    """Measure in this process, and send what came out."""
    before, start = peak(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = measure(seed)
    sender.send((result, time.process_time() - start, (peak() - before) / 1e6))
    sender.close()


def installed(report: Report, package: str) -> bool:
    """True if a package is there; says so otherwise."""
    there = importlib.util.find_spec(package) is not None
    if not there:
        report.note(f"NOT RUN: {package} is missing; pip install {package}")
    return there


def topics(report: Report, folder: Path) -> None:
    """Topics of real texts, by who wrote them first."""
    posts = newsgroup_posts(folder / "20newsgroups")
    data = HeldOut(posts[:2000] if report.quick else posts, None)
    for k in (10,) if report.quick else (10, 50):
        ways: list[tuple[str, str, float, Way]] = [
            (
                "PrivateSpectralLDA", "none" if math.isinf(epsilon) else "(epsilon, delta)",
                epsilon, lambda seed, e=epsilon, k=k: data.ratio(data.fit(e, seed, k)),
            )
            for epsilon in EPSILONS
        ]  # fmt: skip
        ways.append(("LDA of scikit-learn", "none", math.inf, lambda s, k=k: by_bayes(data, k, s)))
        if installed(report, "tomotopy"):
            gibbs = (lambda seed, k=k: by_gibbs(data, k),)
            ways.append(("Gibbs sampling of tomotopy", "none", math.inf, *gibbs))
        if installed(report, "tensorly"):
            power = (lambda seed, k=k: by_tensorly(data, k),)
            ways.append(("power iteration of TensorLy", "none", math.inf, *power))
        compared(report, f"newsgroups, {k} topics: completion", ways)


def by_bayes(data: HeldOut, k: int, seed: int) -> float:
    """Variational Bayes with scikit-learn's defaults."""
    model = LatentDirichletAllocation(k, random_state=seed).fit(data.train)
    found = model.components_ / model.components_.sum(axis=1, keepdims=True)
    return by_prior(data, found, np.full(k, model.doc_topic_prior_))


def by_gibbs(data: HeldOut, k: int) -> float:
    """Collapsed Gibbs sampling, one thread."""
    sampler = documents_of(data.train, k)
    sampler.train(N_PASSES, workers=1)
    return completion(data, sampler, k)


def by_tensorly(data: HeldOut, k: int) -> float:
    """Symmetric power iteration on whitened third moments of exact counts, one topic a document."""
    decompose = importlib.import_module("tensorly.decomposition").symmetric_parafac_power_iteration
    moments = CorpusMoments(CountChunk(data.train), 0.0)
    white = whitener(moments.pairs(), k)
    whitened = multilinear(moments.triples(white.basis), white.transform)
    weights, found = decompose(whitened, k, n_repeat=10, n_iteration=50)
    mixed = white.unwhiten(np.asarray(found).T) * np.asarray(weights)[:, None]
    mixed = np.maximum(mixed * np.sign(mixed.sum(axis=1, keepdims=True)), 1e-9)
    prior = np.maximum(np.asarray(weights), 1e-6) ** -2.0
    return by_prior(data, mixed / mixed.sum(axis=1, keepdims=True), prior / prior.sum())


def clusters(report: Report) -> None:
    """Mixtures, and k-means after a projection, with and without noise."""
    for k, d, separation in LAWS[: 1 if report.quick else None]:
        law = both_ways(d, separation) if k > d else gaussians(k, d, separation)
        ways: list[tuple[str, str, float, Way]] = []
        for epsilon in (1.0, 4.0):
            for kind, name in (("full", ""), ("spherical", ", spherical")):
                ours = (lambda seed, law=law, e=epsilon, kind=kind: by_ours(law, kind, e, seed),)
                way = f"PrivateGaussianMixture{name}"
                ways.append((way, "(epsilon, delta)", epsilon, *ours))
            if installed(report, "diffprivlib"):
                theirs = (lambda seed, law=law, e=epsilon: by_means(law, e, seed),)
                ways.append(("PCA and KMeans of diffprivlib", "epsilon", epsilon, *theirs))
        exact = (lambda seed, law=law: by_likelihood(law, seed),)
        ways.append(("GaussianMixture of scikit-learn", "none", math.inf, *exact))
        compared(report, f"{k} clusters in {d} dimensions: adjusted Rand index", ways)


class Law(NamedTuple):
    """Samples of groups, and the public numbers of a fit."""

    n_components: int
    n_features: int
    data_norm: float
    draw: Sampler


def gaussians(k: int, d: int, separation: float) -> Law:
    """Equally likely Gaussians of variance 1, all means as far from each other."""

    def draw(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        means = separation / math.sqrt(2) * orthonormal_rows(k, d, rng)
        means -= means.mean(axis=0)
        return means[rng.integers(k, size=n)] + rng.standard_normal((n, d)), means

    return Law(k, d, math.sqrt(d + separation**2 / 2 * (1 - 1 / k)) + 2, draw)


def both_ways(d: int, separation: float) -> Law:
    """Gaussians about a point on each side of every axis: twice as many as columns."""
    axes = separation / math.sqrt(2) * np.eye(d)
    means = np.vstack([axes, -axes])

    def draw(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        return means[rng.integers(2 * d, size=n)] + rng.standard_normal((n, d)), means

    return Law(2 * d, d, math.sqrt(d + separation**2 / 2) + 2, draw)


def drawn(law: Law, seed: int) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Samples to fit, and new ones with their labels."""
    rng = np.random.default_rng([seed, N_SAMPLES])
    X, means = law.draw(2 * N_SAMPLES, rng)
    labels = np.argmin(((X[:, None] - means) ** 2).sum(axis=2), axis=1)
    return X[:N_SAMPLES], X[N_SAMPLES:], labels[N_SAMPLES:]


def by_ours(law: Law, kind: str, epsilon: float, seed: int) -> float:
    """Mixture by private EM, of a `kind` of covariance."""
    X, new, labels = drawn(law, seed)
    model = PrivateGaussianMixture(
        law.n_components, covariance_type=kind, epsilon=epsilon, delta=DELTA,
        data_norm=law.data_norm, random_state=seed,
    )  # fmt: skip
    with reproducible_noise(seed):
        model.fit(X)
    return float(adjusted_rand_score(labels, model.predict(new)))


def by_means(law: Law, epsilon: float, seed: int) -> float:
    """Half of epsilon on each of diffprivlib's steps, with public bounds from the norm."""
    models = diffprivlib()
    X, new, labels = drawn(law, seed)
    spread = law.data_norm / math.sqrt(2)
    bounds, size = (-spread, spread), min(law.n_components, law.n_features)
    if size == law.n_features:
        means = models.KMeans(law.n_components, epsilon=epsilon, bounds=bounds, random_state=seed)
        return float(adjusted_rand_score(labels, means.fit(X).predict(new)))
    each: dict[str, Any] = {"epsilon": epsilon / 2, "random_state": seed}
    projected = models.PCA(size, data_norm=law.data_norm, bounds=bounds, **each).fit(X)
    means = models.KMeans(law.n_components, bounds=bounds, **each)
    means.fit(np.clip(projected.transform(X), *bounds))
    return float(adjusted_rand_score(labels, means.predict(projected.transform(new))))


def diffprivlib() -> Any:
    """Its models; a forest of theirs asks scikit-learn for names that newer versions lack."""
    tree = importlib.import_module("sklearn.tree._tree")
    for name, kind in (("DOUBLE", np.float64), ("DTYPE", np.float32)):
        if not hasattr(tree, name):
            setattr(tree, name, kind)
    return importlib.import_module("diffprivlib.models")


def by_likelihood(law: Law, seed: int) -> float:
    """Maximum likelihood in the leading directions, without noise."""
    X, new, labels = drawn(law, seed)
    directions = PCA(min(law.n_components, law.n_features)).fit(X)
    model = GaussianMixture(law.n_components, random_state=seed, n_init=5)
    model.fit(directions.transform(X))
    return float(adjusted_rand_score(labels, model.predict(directions.transform(new))))


def ratings(report: Report, folder: Path) -> None:
    """Completions, and the three published ones."""
    data = movielens(folder, 0, report.quick)
    published = {"input": input_perturbation, "gradient": gradient_perturbation,
                 "output": output_perturbation}  # fmt: skip
    ways: list[tuple[str, str, float, Way]] = []
    for epsilon in (1.0, 5.0, math.inf):
        said = "none" if math.isinf(epsilon) else "epsilon"
        ours = (lambda seed, e=epsilon: by_completion(data, e, seed),)
        ways.append(("PrivateCPCompletion", said, epsilon, *ours))
        for name, function in published.items():
            theirs = (lambda seed, f=function, e=epsilon: by_published(data, f, e, seed),)
            claimed = "none" if math.isinf(epsilon) else "claimed"
            ways.append((f"{name} perturbation, Wei et al.", claimed, epsilon, *theirs))
    ways.append(("mean", "none", math.inf, lambda seed: data.trivial()["exact mean"]))
    compared(report, "MovieLens 100K: RMSE", ways)


def by_unit(report: Report, folder: Path) -> None:
    """Completions that protect persons."""
    n = 2000 if report.quick else 20_000
    sets = {
        f"{n:,} persons, 1,000 items": drawn_table(n),
        "MovieLens 100K": movielens(folder, 0, False),
    }
    for name, data in sets.items():
        ways: list[tuple[str, str, float, Way]] = []
        for epsilon in (1.0, 5.0, 20.0, math.inf):
            said = "none" if math.isinf(epsilon) else "(epsilon, delta)"
            for way, do in {"PrivateCPCompletion": by_persons, "DPALS": by_dpals}.items():
                ways.append((way, said, epsilon, partial(do, data, epsilon)))
        ways.append(("means of persons", "none", math.inf, partial(trivial, data)))
        compared(report, f"{name}: RMSE, protecting persons", ways)


def trivial(data: Ratings, seed: int) -> float:
    """Error of exact means of persons, which need nothing of anybody else."""
    return data.trivial()["exact means of people"]


def by_completion(data: Ratings, epsilon: float, seed: int) -> float:
    """A model of rank 10, one rating as the unit."""
    model = PrivateCPCompletion(
        10, bounds=data.bounds, shape=data.shape, epsilon=epsilon, delta=DELTA, random_state=seed
    )
    with reproducible_noise(seed):
        model.fit(data.X, data.y)
    return data.error(model.predict(data.X_test))


def by_published(data: Ratings, function: Any, epsilon: float, seed: int) -> float:
    """A model of rank 3 as printed, of ratings about the middle of their range."""
    middle = sum(data.bounds) / 2
    options: dict[str, Any] = {"bounds": (-2.0, 2.0)} if function is input_perturbation else {}
    found = function(
        data.X, data.y - middle, data.shape, epsilon=epsilon, random_state=seed, sgd=SGD, **options
    )
    return data.error(np.clip(found.predict(data.X_test) + middle, *data.bounds))


def words(report: Report, folder: Path) -> None:
    """Words that a vocabulary keeps."""
    X, names = newsgroups_texts(folder / "20newsgroups", 2000 if report.quick else None)
    texts, ways = texts_of(X, names), []
    for relation, moved in (("add_remove", 1.0), ("replace_one", math.sqrt(2))):
        options = {"neighbours": relation, "max_words_per_document": MOST_WORDS}
        kept: dict[str, Callable[[float, int], float]] = {
            "PrivateCountVectorizer": lambda e, _, of=options: len(by_votes(texts, e, **of)),
            "threshold, one round": lambda e, _, of=relation: one_round(texts, e, of, MOST_WORDS),
            "DP-SIPS, three rounds": partial(in_rounds, X, moved, (1 / 13, 3 / 13, 9 / 13), alike),
            "adaptive degree, two rounds": partial(in_rounds, X, moved, (0.1, 0.9), adapted),
        }
        told = f"(epsilon, delta), {relation.replace('_', ' ')}"
        for epsilon in (1.0,) if report.quick else (0.1, 1.0, 4.0):
            ways += [(way, told, epsilon, seeded(do, epsilon)) for way, do in kept.items()]
    compared(report, "newsgroups: words", ways)


def seeded(do: Callable[[float, int], float], epsilon: float) -> Way:
    """Seed the library's noise, too."""

    def measure(seed: int) -> float:
        with reproducible_noise(seed):
            return float(do(epsilon, seed))

    return measure


def in_rounds(
    X: sp.csr_matrix, moved: float, parts: Sequence[float], weigh: Any, epsilon: float, seed: int
) -> float:
    """Words found in rounds, each of which leaves out those of earlier ones.

    DP-SIPS (Swanberg et al., 2023) and our reading of MAD2R (Chen et al., 2025). Their proofs are
    not repeated here, and noise is in doubles: for comparison only.
    """
    rng = np.random.default_rng(seed)
    whole, seen = gaussian_mu(epsilon, DELTA / 2), few_words(X, rng)
    found = np.zeros(X.shape[1], dtype=bool)
    for part in parts:
        sigma = moved / (whole * math.sqrt(part))
        t = np.arange(1, MOST_WORDS + 1)
        quantile = norm.isf(-np.expm1(np.log1p(-DELTA / 2 / len(parts)) / t))
        limit = float((1 / np.sqrt(t) + sigma * quantile).max())
        weights = weigh(seen, limit + 2 * sigma)
        found |= (weights + sigma * rng.standard_normal(len(weights)) > limit) & (weights > 0)
        seen = seen.multiply(~found).tocsr()
        seen.eliminate_zeros()
    return float(found.sum())


def alike(seen: sp.csr_matrix, _: float) -> Floats:
    """Weights of words: a unit gives all of its words the same, with a norm of 1."""
    degree = np.maximum(np.asarray(seen.sum(axis=1)).ravel(), 1)
    return np.asarray(seen.T @ degree**-0.5).ravel()


def few_words(X: sp.csr_matrix, rng: np.random.Generator) -> sp.csr_matrix:
    """Distinct words of units, at most 100 of each, drawn at random."""
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    order = np.lexsort((rng.random(X.nnz), row))
    kept = order[np.arange(X.nnz) - X.indptr[row] < MOST_WORDS]
    return sp.csr_matrix((np.ones(len(kept)), (row[kept], X.indices[kept])), X.shape)


def adapted(seen: sp.csr_matrix, enough: float) -> Floats:
    """Weights of words: what words have above `enough` goes back to units, for all their words."""
    degree = np.maximum(np.asarray(seen.sum(axis=1)).ravel(), 1)
    first = np.asarray(seen.T @ (1 / degree)).ravel()
    kept = np.minimum(first, enough)
    spare = 1 - kept / np.maximum(first, 1e-300)
    back = np.asarray(seen @ spare).ravel() / degree
    handed = np.asarray(seen.T @ (back / MOST_WORDS)).ravel()
    return kept + handed + np.asarray(seen.T @ (degree**-0.5 - 1 / degree)).ravel()
