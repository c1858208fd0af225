"""Interactive part of the page: a map of topics, their words and intervals."""

import json
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator

from sktensor_dp.checks.display import counted
from sktensor_dp.tensor.arrays import Floats, Integers
from sktensor_dp.topics.measures import divergences, positions, ranked_words

LEVEL = 0.9
# Map, in units of its SVG: sides and margin; radii of the largest circle, of the least one, and of
# the least one where all are made smaller, in which a number of two digits can still be read.
SIDE, MARGIN = 400.0, 20.0
LARGEST, LEAST, LEAST_SHRUNK = 62.0, 13.0, 11.0


def explorer(
    model: BaseEstimator,
    names: Sequence[str] | NDArray[np.generic],
    hidden: Sequence[bool],
    template: str,
) -> tuple[str, str]:
    """HTML of map and controls by a `template`, and the script's data as JSON.

    All of it is released. `hidden` says of each topic whether noise hides it.
    """
    topics, std = model.components_, model.components_std_
    reach = ndtri((1 + LEVEL) / 2) * model._words_std()  # as in `components_interval`
    shares = model._shares
    distances, chosen = divergences(topics, topics), _chosen_words(model)
    n_topics, n_words = topics.shape
    data = {
        "words": [str(names[word]) for word in chosen],
        "everywhere": _short(np.maximum(model.unigram_[chosen], 1e-12)),
        "topics": [
            {
                "number": row + 1, "share": share, "hidden": bool(hidden[row]),
                "p": _short(topics[row, chosen]), "std": _short(std[row, chosen]),
                "reach": _short(reach[row, chosen]),
            }
            for row, share in enumerate(_short(shares))
        ],
        "divergence": [_short(row) for row in distances],
        "level": round(100 * LEVEL), "counted": model._intervals_count,
    }  # fmt: skip
    left_out = ""
    if len(chosen) < n_words:
        left_out = f" The page has {len(chosen):,} of {counted(n_words, 'word')}."
    links = "".join(_links(shares, hidden, *_placed(np.sqrt(distances), shares)))
    section = template.format(left_out=left_out, side=SIDE, n_topics=n_topics, links=links)
    # JSON that is safe within a page.
    text = json.dumps(data, separators=(",", ":"))
    return section, text.replace("<", "\\u003c").replace("&", "\\u0026")


def _chosen_words(model: BaseEstimator) -> Integers:
    """Columns of the words on the page: all, or the leading ones of each topic."""
    # Limit on the probabilities that the page holds (about 300 kB of text), and least number of
    # words.
    most_numbers, least_words = 40_000, 200
    topics, unigram, std = model.components_, model.unigram_, model.components_std_
    n_topics, n_words = topics.shape
    most_words = max(most_numbers // n_topics, least_words)
    if n_words <= most_words:
        return np.arange(n_words)
    best_rank = np.full(n_words, n_words)  # of a word in any topic's list, 0 for the first
    for relevance in (1.0, 0.6, 0.3, 0.0):  # settings of the page's slider
        for leading in ranked_words(topics, unigram, std, relevance, n_words):
            best_rank[leading] = np.minimum(best_rank[leading], np.arange(len(leading)))
    return np.sort(np.argsort(best_rank, kind="stable")[:most_words])


def _links(shares: Floats, hidden: Sequence[bool], places: Floats, radii: Floats) -> Iterator[str]:
    """Yield the link of each topic: a circle on the map, with the topic's number in it."""
    for row, ((x, y), radius) in enumerate(zip(places, radii, strict=True)):
        label = f"Topic {row + 1}, {100 * shares[row]:.1f} % of the words"
        label += ", hidden by noise" if hidden[row] else ""
        kind = ' class="hidden-topic"' if hidden[row] else ""
        yield (
            f'<a href="#topic={row + 1}" data-topic="{row + 1}"{kind} aria-label="{label}">'
            f'<title>{label}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
            f'<text x="{x:.1f}" y="{y:.1f}" aria-hidden="true">{row + 1}</text></a>'
        )


def _placed(distances: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Centres (k, 2) and radii (k,) on the map; circles may overlap, but none hides another."""
    # Areas in proportion to shares, but numbers have to fit in; all together fill less of the map
    # than pi / 4.
    radii = np.maximum(LARGEST * np.sqrt(shares / shares.max()), LEAST)
    radii *= min(1.0, 0.5 * SIDE / math.sqrt(float((radii**2).sum())))
    radii = np.maximum(radii, LEAST_SHRUNK)
    plane = positions(distances)
    plane = plane - (plane.min(axis=0) + plane.max(axis=0)) / 2
    extent = np.maximum(np.abs(plane).max(), 1e-9)
    # Centres start at half a largest circle, or more, from the margin. Similar topics start on a
    # ring of radius 1, a golden angle apart, so that they do not coincide.
    golden_angle = math.pi * (3 - math.sqrt(5))
    turns = golden_angle * np.arange(len(shares))
    ring = np.column_stack([np.cos(turns), np.sin(turns)])
    centres = SIDE / 2 + plane / extent * (SIDE / 2 - MARGIN - LARGEST / 2) + ring
    # Push circles apart, by a fraction of what they lack in each step, until hardly any two are
    # nearer than this fraction of the sum of their radii: numbers of the page's look, no estimates.
    n_steps, step, nearest = 300, 0.3, 0.92
    wanted = nearest * (radii[:, None] + radii)
    np.fill_diagonal(wanted, 0.0)
    low, high = radii[:, None] + MARGIN / 2, SIDE - radii[:, None] - MARGIN / 2
    for _ in range(n_steps):
        apart = centres[:, None] - centres
        lengths = np.maximum(np.linalg.norm(apart, axis=2), 1e-6)
        push = np.maximum(wanted - lengths, 0.0)[:, :, None] * apart / lengths[:, :, None]
        centres = np.clip(centres + step * push.sum(axis=1), low, high)
    return centres, radii


def _short(values: Floats) -> list[float]:
    """Numbers rounded to four digits."""
    return [float(f"{value:.4g}") for value in values]
