"""Interactive part of the page: a map of topics, their words and intervals."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator

from sktensor_dp.checks.display import counted
from sktensor_dp.tensor.arrays import Floats
from sktensor_dp.topics.measures import divergences, positions, ranked_words

LEVEL = 0.9
SIDE, MARGIN, LARGEST = 400.0, 20.0, 62.0


@dataclass(frozen=True, eq=False)
class Explorer:
    """Topics by falling share, with words chosen for the page; all of it released."""

    words: tuple[str, ...]  # those of the page
    n_words: int  # how many there are in all
    # Probabilities (k, m) of the chosen words in topics, their deviations or None, and their
    # probabilities (m,) in all texts.
    topics: Floats
    std: Floats | None
    unigram: Floats
    shares: Floats  # (k,): of topics
    hidden: tuple[bool, ...]  # whether noise hides a topic
    distances: Floats  # (k, k): Jensen-Shannon divergences

    @classmethod
    def of(
        cls,
        model: BaseEstimator,
        names: Sequence[str] | NDArray[np.generic],
        hidden: Sequence[bool],
    ) -> "Explorer":
        """Explorer of a fitted topic model; `hidden` for each topic."""
        # Limit on the probabilities that the page holds (about 300 kB of text), and least number of
        # words.
        most_numbers, least_words = 40_000, 200
        shares = model.topic_prior_ / model.topic_prior_.sum()
        topics, std = model.components_, model.components_std_
        most = max(most_numbers // len(topics), least_words)
        chosen = _chosen(topics, model.unigram_, std, most)
        return cls(
            tuple(str(names[word]) for word in chosen), topics.shape[1], topics[:, chosen],
            None if std is None else std[:, chosen], model.unigram_[chosen], shares,
            tuple(map(bool, hidden)), divergences(topics, topics),
        )  # fmt: skip

    def as_json(self) -> str:
        """Data of the script as JSON that is safe within a page."""
        topics = [
            {
                "number": row + 1, "share": _short(self.shares[row]),
                "hidden": self.hidden[row], "p": _shorts(self.topics[row]),
                "std": None if self.std is None else _shorts(self.std[row]),
            }
            for row in range(len(self.shares))
        ]  # fmt: skip
        data = {
            "words": self.words, "everywhere": _shorts(np.maximum(self.unigram, 1e-12)),
            "topics": topics, "divergence": [_shorts(row) for row in self.distances],
            "level": round(100 * LEVEL), "reach": float(ndtri((1 + LEVEL) / 2)),
        }  # fmt: skip
        text = json.dumps(data, separators=(",", ":"))
        return text.replace("<", "\\u003c").replace("&", "\\u0026")

    def section(self, template: str) -> str:
        """Map, controls and the panel that the script fills."""
        left_out = ""
        if len(self.words) < self.n_words:
            left_out = f" The page has {len(self.words):,} of {counted(self.n_words, 'word')}."
        places, radii = _placed(np.sqrt(self.distances), self.shares)
        links = "".join(
            _link(self, row, float(x), float(y), float(radius))
            for row, ((x, y), radius) in enumerate(zip(places, radii, strict=True))
        )
        return template.format(left_out=left_out, side=SIDE, n_topics=len(self.shares), links=links)


def _chosen(topics: Floats, unigram: Floats, std: Floats | None, most: int) -> NDArray[np.intp]:
    """Columns of the words on the page: all, or the leading ones of each topic."""
    if topics.shape[1] <= most:
        return np.arange(topics.shape[1])
    n = topics.shape[1]
    best = np.full(n, n)
    for relevance in (1.0, 0.6, 0.3, 0.0):
        for row in ranked_words(topics, unigram, std, relevance, n):
            best[row] = np.minimum(best[row], np.arange(len(row)))
    return np.sort(np.argsort(best, kind="stable")[:most])


def _link(shown: Explorer, row: int, x: float, y: float, radius: float) -> str:
    share, hidden = shown.shares[row], shown.hidden[row]
    label = f"Topic {row + 1}, {100 * share:.1f} % of the text" + (
        ", hidden by noise" if hidden else ""
    )
    kind = ' class="hidden-topic"' if hidden else ""
    return (
        f'<a href="#topic={row + 1}" data-topic="{row + 1}"{kind} aria-label="{escape(label)}">'
        f'<title>{escape(label)}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
        f'<text x="{x:.1f}" y="{y:.1f}" aria-hidden="true">{row + 1}</text></a>'
    )


def _placed(distances: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Centres and radii on the map; circles may overlap, but none hides another."""
    radii = np.maximum(LARGEST * np.sqrt(shares / shares.max()), 13.0)
    radii *= min(1.0, 0.5 * SIDE / math.sqrt(float((radii**2).sum())))
    radii = np.maximum(radii, 11.0)
    plane = positions(distances)
    plane = plane - (plane.min(axis=0) + plane.max(axis=0)) / 2
    extent = np.maximum(np.abs(plane).max(), 1e-9)
    # Start similar topics on a small circle, so that they do not coincide.
    turns = 2.4 * np.arange(len(shares))
    ring = np.column_stack([np.cos(turns), np.sin(turns)])
    centres = SIDE / 2 + plane / extent * (SIDE / 2 - MARGIN - 30) + ring
    reach = radii[:, None] + radii
    np.fill_diagonal(reach, 0.0)
    low, high = radii[:, None] + MARGIN / 2, SIDE - radii[:, None] - MARGIN / 2
    for _ in range(300):
        apart = centres[:, None] - centres
        lengths = np.maximum(np.linalg.norm(apart, axis=2), 1e-6)
        push = np.maximum(0.92 * reach - lengths, 0.0)[:, :, None] * apart / lengths[:, :, None]
        centres = np.clip(centres + 0.3 * push.sum(axis=1), low, high)
    return centres, radii


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _shorts(values: Floats) -> list[float]:
    return [_short(value) for value in values]
