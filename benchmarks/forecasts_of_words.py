"""Forecasts of the command against its runs: topics of the words that noise leaves.

300 to 6,000 units of four collections, fewer where there are none: news, blogs, documentation, and
persons of a forum. A verdict is kept as in ``forecasts``, but for held-out words; topics of no more
than two words each are none.

    python -m benchmarks forecasts_of_words
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.forecasts import LEAST_VERDICTS, keeps
from benchmarks.report import Cell, Report
from benchmarks.seeding import reproducible_noise
from benchmarks.topics import kos
from benchmarks.words import newsgroups_texts, persons_texts, texts_of
from sktensor_dp import datasets
from sktensor_dp.cli.arguments import parse
from sktensor_dp.cli.topics import Topics
from sktensor_dp.exceptions import NotEnoughDataError

__all__ = ["run"]

SIZES, TOPICS, EPSILONS = (300, 1000, 3000, 6000), (3, 10), (0.4, 1.0, 4.0)


def collections(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Names and texts, a text for each unit."""
    for name, (X, names) in {
        "news": newsgroups_texts(folder / "20newsgroups", None),
        "persons": persons_texts(folder / "forum", None),
    }.items():
        yield name, [" ".join(words) for words in texts_of(X, names)]
    X = kos(folder / "kos")
    names = [f"w{column}" for column in range(X.shape[1])]
    yield "blogs", [" ".join(words) for words in texts_of(X, names)]
    yield "documentation", datasets.load_docstrings()


def forecast_and_found(texts: list[str], k: int, epsilon: float) -> list[Cell]:
    """Verdict, range of topics and words expected; words and topics found by a run."""
    one = Topics(parse(["topics", "--topics", str(k), "--epsilon", str(epsilon)]))
    one._texts, one._groups, one.n_units = texts, None, len(texts)
    one.build()
    for model in one.models.values():
        model.set_params(verbose=0)
    expected = one.models["words"].forecast(len(texts)).n_words
    forecast = [one.verdict(), *one.forecast().n_likely, expected]
    try:
        list(one.fit())
    except NotEnoughDataError:
        return [*forecast, 0, 0]
    n_words = len(one._names)
    return [*forecast, n_words, one.n_seen() if n_words > 2 * k else 0]


def run(report: Report, folder: Path) -> None:
    """Count verdicts that runs keep."""
    rows: list[list[Cell]] = []
    for name, texts in collections(folder):
        order = np.random.default_rng(0).permutation(len(texts))
        for size in SIZES[: 1 if report.quick else None]:
            chosen = [texts[row] for row in order[:size]]
            if len(chosen) < size / 2:
                continue
            for epsilon in EPSILONS:
                for k in TOPICS:
                    with reproducible_noise(0):
                        seen = forecast_and_found(chosen, k, epsilon)
                    kept = keeps(str(seen[0]), float(seen[-1]) / k, True)
                    rows.append([name, len(chosen), epsilon, k, *seen, int(kept)])
                    report.note(" | ".join(map(str, rows[-1])))
    report.table(
        "Forecasts and runs of the command",
        [
            "collection", "units", "epsilon", "topics", "verdict", "likely from", "likely to",
            "words expected", "words kept", "topics found", "kept",
        ], rows, file="forecasts_of_words", how="noise seed 0",
    )  # fmt: skip
    lost = 1 - float(np.mean([row[-1] for row in rows]))
    report.bar("verdicts not kept", lost, 1 - LEAST_VERDICTS)
