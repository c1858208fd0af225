"""What each tuned constant of vocabularies is worth, one at a time.

Each is set to its neutral value in turn. The change of one over the number of released words is in
percent, with its standard error over noise seeds 0 to 4; positive numbers say that the constant
helps. Units are posts of 20 newsgroups and of a political blog, persons of a forum, and drawn
texts of eight words each. What forecasts alone assume changes how far numbers of words that are
forecast are from those of the committed runs of the command: the mean absolute logarithm.

    python -m benchmarks ablations_of_words
    python -m benchmarks ablations_of_words --quick
"""

import csv
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.ablations import SEEDS, TITLE, changes, constant, shown
from benchmarks.corpora import zipf_base
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from benchmarks.topics import kos
from benchmarks.words import Texts, by_votes, newsgroups_texts, persons_texts, texts_of
from sktensor_dp.cli.arguments import parse
from sktensor_dp.cli.topics import Topics

__all__ = ["ABLATIONS", "run"]

TABLE = Path(__file__).parents[1] / "docs" / "results" / "forecasts_of_words.csv"

# Most units of a set, and words that texts are drawn from.
MOST, N_WORDS, EPSILON = 5000, 20_000, 1.0
# What only forecasts have.
OF_FORECASTS = constant("text.SPREAD", 0.0), constant("text.COMMON", 4.0)
ABLATIONS = (
    constant("text.VOTES_FRACTION", 0.5),
    constant("text.NEEDED", 0.5),
    constant("text.AIM", 1.0),
    *OF_FORECASTS,
)


def _drawn(n_units: int) -> tuple[sp.csr_matrix, list[str]]:
    """Short texts, whose words have frequencies of one over their rank."""
    frequencies = zipf_base(N_WORDS, 1.0)
    words = np.random.default_rng(0).choice(N_WORDS, size=(n_units, 8), p=frequencies)
    rows = np.repeat(np.arange(n_units), 8)
    X = sp.coo_matrix((np.ones(words.size), (rows, words.ravel())), shape=(n_units, N_WORDS))
    return X.tocsr(), [f"w{column}" for column in range(N_WORDS)]


def _sets(data: Path, report: Report) -> Iterator[tuple[str, Texts]]:
    n_units = 3000 if report.quick else MOST
    yield "drawn", texts_of(*_drawn(n_units))
    for name, folder in (("newsgroups", "20newsgroups"), ("kos", "kos"), ("forum", "forum")):
        if not (data / folder).is_dir():
            report.note(f"skipped: no {name} in {data}")
        elif name == "kos":
            X = kos(data / folder)
            yield name, texts_of(X, [f"w{column}" for column in range(X.shape[1])])
        else:
            read = newsgroups_texts if name == "newsgroups" else persons_texts
            yield name, texts_of(*read(data / folder, n_units))


def missing(texts: Texts, epsilon: float, n_seeds: int) -> np.ndarray:
    """One over the number of released words, by seed."""
    found = []
    for seed in range(n_seeds):
        with reproducible_noise(seed):
            found.append(1 / max(len(by_votes(texts, epsilon)), 1))
    return np.array(found)


def _distance_of_forecasts() -> np.ndarray:
    """Mean absolute logarithm of words forecast over words kept, by the committed runs."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["words kept"]) > 0]
    found = []
    for row in rows:
        command = Topics(parse(["topics", "--topics", row["topics"], "--epsilon", row["epsilon"]]))
        command.n_units = int(row["units"])
        command.build()
        forecast = command.models["words"].forecast(command.n_units).n_words
        found.append(abs(math.log(max(forecast, 1) / int(row["words kept"]))))
    return np.array([np.mean(found)])


def run(report: Report, data: Path) -> None:
    """Measure all constants on all sets that are there."""
    rows: list[list[Cell]] = [
        [part, "forecasts of words", "", *changed]
        for part, *changed in changes(OF_FORECASTS, _distance_of_forecasts)
    ]
    of_fits = [one for one in ABLATIONS if one not in OF_FORECASTS]
    n_seeds = 2 if report.quick else SEEDS
    for name, texts in _sets(data, report):
        for part, *changed in changes(of_fits, partial(missing, texts, EPSILON, n_seeds)):
            rows.append([part, name, EPSILON, *changed])
            report.note(" | ".join(map(str, rows[-1])))
    report.table(
        TITLE, ["part", "set", "epsilon", "change", "standard error"], shown(ABLATIONS, rows),
        file="ablations_of_words", how="noise seeds 0 to 4",
    )  # fmt: skip
