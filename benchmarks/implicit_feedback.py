"""Recommendations from clicks, with people as units: topics against popularity and exact ALS.

A click is a pair of person and item: a rating of 4 or more of MovieLens 100K, a category that a
visitor of msnbc.com viewed. ``default_rng(0)`` holds out a fifth of the clicks. Recall@k: the
share of a person's held-out clicks among the k best items that the person has not clicked yet,
over people with any, of the first 20,000 people.

- *Popularity* is by exact numbers of clicks, and not private; *released popularity* by
  ``unigram_`` of the same private fit.
- *Topics*: ``PrivateSpectralLDA`` with defaults but for the number of topics, a person's clicks
  being a document; ranked as by ``recommend``. Medians of three noise seeds. Five topics were
  the best of 5, 8 and 10 at epsilon = 5 on a fifth of the clicks to fit, on both sets.
- *ALS*: exact alternating least squares of Hu, Koren and Volinsky (2008), not private: that of
  the package ``implicit`` if it is installed, and 20 lines here. Factors, weight and penalty are
  the best of a grid on a fifth of the clicks to fit.

    python -m benchmarks implicit
    python -m benchmarks implicit --quick     one seed, fewer people
"""

import itertools
import math
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.report import Report
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.metrics import recall_at_k

__all__ = ["run"]

Floats = NDArray[np.float64]
Scores = Callable[[sp.csr_matrix], Floats]

EPSILONS, TOPICS = (math.inf, 10.0, 5.0, 2.0, 1.0), 5
GRID = tuple(itertools.product((3, 10, 20), (1.0, 10.0), (0.1, 10.0)))
SWEEPS, MOST_SCORED, MOST_FITTED = 15, 20_000, 100_000


def movielens(data: Path) -> sp.csr_matrix:
    """Films that people gave four or five stars."""
    table = np.loadtxt(data / "ml-100k" / "u.data", dtype=np.intp)
    liked = table[table[:, 2] >= 4]
    return sp.csr_matrix((np.ones(len(liked)), (liked[:, 0] - 1, liked[:, 1] - 1)), (943, 1682))


def msnbc(data: Path) -> sp.csr_matrix:
    """Categories of pages that visitors viewed."""
    with np.load(data / "msnbc" / "msnbc.npz", allow_pickle=False) as stored:
        lengths, pages = stored["lengths"].astype(np.intp), stored["pages"].astype(np.intp) - 1
    people = np.repeat(np.arange(len(lengths)), lengths)
    clicks = sp.csr_matrix((np.ones(len(pages)), (people, pages)), (len(lengths), 17))
    clicks.data[:] = 1.0
    return clicks


def held_out(clicks: sp.csr_matrix, seed: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Clicks to fit, and a fifth of them to find."""
    whole = clicks.tocoo()
    kept = np.random.default_rng(seed).random(whole.nnz) < 0.8
    first, second = (
        sp.csr_matrix((whole.data[part], (whole.row[part], whole.col[part])), whole.shape)
        for part in (kept, ~kept)
    )
    return first, second


def recall(scores: Scores, clicks: sp.csr_matrix, wanted: sp.csr_matrix, k: int) -> float:
    """Recall among items that were not clicked yet."""
    found, seen = np.array(scores(clicks)), clicks.toarray() > 0
    found[seen] = -np.inf
    return recall_at_k(wanted, found, k=k)


def same_for_all(values: Floats) -> Scores:
    return lambda clicks: np.tile(values, (clicks.shape[0], 1))


def solved(clicks: sp.csr_matrix, factors: Floats, weight: float, penalty: float) -> Floats:
    """Rows of the other factor: negatives are in one Gram matrix, clicks add to it."""
    r = factors.shape[1]
    gram = factors.T @ factors + penalty * np.eye(r)
    squares = (factors[:, :, None] * factors[:, None, :]).reshape(-1, r * r)
    grams = gram + weight * (clicks @ squares).reshape(-1, r, r)
    return np.linalg.solve(grams, (1 + weight) * (clicks @ factors)[..., None])[..., 0]


def als(clicks: sp.csr_matrix, rank: int, weight: float, penalty: float) -> Scores:
    """Hu, Koren and Volinsky's alternating least squares, exactly."""
    rng = np.random.default_rng(0)
    items, by_item = 0.1 * rng.standard_normal((clicks.shape[1], rank)), clicks.T.tocsr()
    for _ in range(SWEEPS):
        items = solved(by_item, solved(clicks, items, weight, penalty), weight, penalty)
    return lambda clicks: solved(clicks, items, weight, penalty) @ items.T


def implicit_als(clicks: sp.csr_matrix, rank: int, weight: float, penalty: float) -> Scores:
    """Factors of items by the package, people solved for in the same way."""
    from implicit.cpu.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(
        factors=rank, alpha=1 + weight, regularization=penalty, iterations=SWEEPS, use_cg=False,
        random_state=0, num_threads=1,
    )  # fmt: skip
    model.fit(clicks.astype(np.float32), show_progress=False)
    items = model.item_factors.astype(np.float64)
    return lambda clicks: solved(clicks, items, weight, penalty) @ items.T


def chosen(clicks: sp.csr_matrix, k: int) -> tuple[int, float, float]:
    """Factors, weight and penalty by held-out clicks of those to fit."""
    part, wanted = held_out(clicks[:MOST_SCORED], 1)
    found = [recall(als(part, *options), part, wanted, k) for options in GRID]
    return GRID[int(np.argmax(found))]


def measure(report: Report, name: str, clicks: sp.csr_matrix, k: int) -> None:
    """One set of clicks, all ways."""
    fitted, wanted = held_out(clicks, 0)
    people = slice(MOST_SCORED)

    def scored(scores: Scores) -> float:
        return recall(scores, fitted[people], wanted[people], k)

    popular = scored(same_for_all(np.asarray(fitted.sum(axis=0)).ravel()))
    rows: list[list[str | float]] = [["popularity, exact", "", popular, ""]]
    options = chosen(fitted, k)
    said = "{} factors, weight {:g}, penalty {:g}".format(*options)
    rows.append([f"ALS here, {said}", "", scored(als(fitted[:MOST_FITTED], *options)), ""])
    try:
        package = implicit_als(fitted[:MOST_FITTED], *options)
        rows.append([f"ALS of implicit, {said}", "", scored(package), ""])
    except ImportError:
        report.note("implicit is not installed: its ALS is left out")
    for epsilon in EPSILONS if not report.quick else (math.inf, 5.0):
        seeds = range(3 if math.isfinite(epsilon) and not report.quick else 1)
        found = []
        for seed in seeds:
            model = PrivateSpectralLDA(TOPICS, epsilon=epsilon, random_state=seed)
            with reproducible_noise(seed), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(fitted)
            topics, popularity = model.components_, same_for_all(model.unigram_)
            found.append(
                (scored(lambda c, m=model, t=topics: m.transform(c) @ t), scored(popularity))
            )
        private, released = np.median(found, axis=0)
        rows.append([f"topics, {TOPICS}", f"{epsilon:g}", private, released])
        if epsilon == 5.0:
            worst = min(topics / released for topics, released in found)
            report.bar(
                f"{name}: topics over released popularity at 5, the least",
                worst,
                1.0,
                at_least=True,
            )
    report.table(
        f"{name}, {clicks.nnz} clicks of {clicks.shape[0]} people: Recall@{k}",
        ["way", "epsilon", "recall", "released popularity"],
        rows,
        file="implicit",
        group=name,
        how="medians of three noise seeds",
    )


def run(report: Report, data: Path) -> None:
    """Both sets, as far as they are there."""
    for name, folder, make, k in (
        ("MovieLens 100K", "ml-100k", movielens, 20),
        ("msnbc", "msnbc", msnbc, 3),
    ):
        if not (data / folder).is_dir():
            report.note(f"skipped: no {folder} in {data}")
            continue
        clicks = make(data)
        measure(report, name, clicks[:50_000] if report.quick else clicks, k)
