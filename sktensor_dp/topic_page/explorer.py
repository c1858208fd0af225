"""Interactive part of the page: a map of topics, their words and intervals."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sktensor_dp.topics.measures import divergences, positions, ranked_words

Floats = NDArray[np.float64]

# Numbers that the page holds of each kind, about 300 kB of text, and words whatever there are.
MOST_NUMBERS, LEAST_WORDS = 40_000, 200
LEVEL = 0.9
SIDE, MARGIN, LARGEST = 400.0, 20.0, 62.0


@dataclass(frozen=True, eq=False)
class Explorer:
    """Topics by falling share, with words chosen for the page; all of it released."""

    words: tuple[str, ...]  # those of the page
    n_words: int  # how many there are in all
    # Probabilities of these words, (k, m); their deviations, or None; and in all texts, (m,).
    topics: Floats
    std: Floats | None
    unigram: Floats
    # (k,): of topics, and their intervals.
    shares: Floats
    low: Floats
    high: Floats
    hidden: tuple[bool, ...]  # whether noise hides what sets a topic apart
    distances: Floats  # (k, k): Jensen-Shannon divergences

    @classmethod
    def of(
        cls, model: Any, names: Sequence[str] | NDArray[Any], hidden: Sequence[bool]
    ) -> "Explorer":
        """Explorer of a fitted topic model; `hidden` by falling share."""
        shares = model.topic_prior_ / model.topic_prior_.sum()
        order = np.argsort(-shares, kind="stable")
        topics, std = model.components_[order], getattr(model, "components_std_", None)
        std = None if std is None else std[order]
        low, high = shares, shares
        if getattr(model, "topic_prior_std_", None) is not None:
            low, high = model.shares_interval(LEVEL)
        most = max(MOST_NUMBERS // len(topics), LEAST_WORDS)
        chosen = _chosen(topics, model.unigram_, std, most)
        return cls(
            tuple(str(names[word]) for word in chosen), topics.shape[1], topics[:, chosen],
            None if std is None else std[:, chosen], model.unigram_[chosen], shares[order],
            low[order], high[order], tuple(map(bool, hidden)), divergences(topics, topics),
        )  # fmt: skip

    def as_json(self) -> str:
        """Data of the script as JSON that is safe within a page."""
        topics = [
            {
                "number": row + 1, "share": _short(self.shares[row]),
                "low": _short(self.low[row]), "high": _short(self.high[row]),
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


def explorer_section(shown: Explorer) -> str:
    """Map, controls and the panel that the script fills."""
    left_out = ""
    if len(shown.words) < shown.n_words:
        left_out = f" The page has {len(shown.words):,} of {shown.n_words:,} words."
    return f"""<section aria-labelledby="explore"><h2 id="explore">Explore</h2>
<p class="soft" data-live hidden>Choose a topic for its words, then another to compare the two.
Choose a word to see its topics.{left_out}</p>
<div class="tools" data-live hidden>
<label>Search words <input type="search" id="find" spellcheck="false"></label>
<label>Order of words <select id="order"><option value="relevance">by relevance</option>
<option value="probability">by probability</option>
<option value="alphabet">by alphabet</option></select></label>
<label><span>Relevance: <output id="relevance-value">0.60</output></span>
<input type="range" id="relevance" min="0" max="1" step="0.05" value="0.6"
aria-describedby="relevance-help"></label>
<button type="button" id="csv">Download table (CSV)</button>
<button type="button" id="link">Copy link to this view</button></div>
<p class="soft" id="relevance-help" data-live hidden>Relevance: at 1 the most probable words lead,
towards 0 those that set a topic apart. Words that noise could have put there come last.</p>
<p class="visually-hidden" id="said" role="status"></p>
<div class="explore">{_map(shown)}
<div class="panel" data-live hidden><div class="panel-head">
<button type="button" id="previous" aria-label="Previous topic">‹</button>
<h3 id="panel-title" aria-live="polite"></h3>
<button type="button" id="back" hidden>Back to topic</button>
<button type="button" id="next" aria-label="Next topic">›</button></div>
<p class="soft" id="panel-note"></p><ol class="rows" id="rows"></ol>
<button type="button" id="more">More words</button>
<div class="tip" id="tip" aria-hidden="true" hidden></div></div></div></section>"""


def script_of(shown: Explorer, program: str) -> str:
    """Data and program of the page."""
    data = f'<script type="application/json" id="data">{shown.as_json()}</script>'
    return f"{data}\n<script>{program}</script>\n"


def _chosen(topics: Floats, unigram: Floats, std: Floats | None, most: int) -> NDArray[np.intp]:
    """Columns of the page: all, or those that lead in some topic."""
    if topics.shape[1] <= most:
        return np.arange(topics.shape[1])
    n = topics.shape[1]
    best = np.full(n, n)
    for relevance in (1.0, 0.6, 0.3, 0.0):
        for row in ranked_words(topics, unigram, std, relevance, n):
            best[row] = np.minimum(best[row], np.arange(n))
    return np.sort(np.argsort(best, kind="stable")[:most])


def _map(shown: Explorer) -> str:
    places, radii = _placed(np.sqrt(shown.distances), shown.shares)
    links = "".join(
        _link(shown, row, float(x), float(y), float(radius))
        for row, ((x, y), radius) in enumerate(zip(places, radii, strict=True))
    )
    return (
        f'<figure class="map"><svg viewBox="0 0 {SIDE:g} {SIDE:g}" role="group" '
        f'aria-label="Map of {len(shown.shares)} topics">{links}</svg><figcaption>Area: share of '
        "the text. Distance: how different the words are (Jensen–Shannon divergence, as well as "
        "a plane can show it). Dashed: below its noise.</figcaption></figure>"
    )


def _link(shown: Explorer, row: int, x: float, y: float, radius: float) -> str:
    share, hidden = shown.shares[row], shown.hidden[row]
    label = f"Topic {row + 1}, {100 * share:.1f} % of the text" + (
        ", below its noise" if hidden else ""
    )
    kind = ' class="hidden-topic"' if hidden else ""
    return (
        f'<a href="#topic={row + 1}" data-topic="{row + 1}"{kind} aria-label="{escape(label)}">'
        f'<title>{escape(label)}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
        f'<text x="{x:.1f}" y="{y:.1f}" aria-hidden="true">{row + 1}</text></a>'
    )


def _placed(distances: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Centres and radii on the map; circles may touch, but none hides another."""
    radii = np.maximum(LARGEST * np.sqrt(shares / shares.max()), 13.0)
    radii *= min(1.0, 0.5 * SIDE / math.sqrt(float((radii**2).sum())))
    radii = np.maximum(radii, 11.0)
    plane = positions(distances)
    plane = plane - (plane.min(axis=0) + plane.max(axis=0)) / 2
    extent = np.maximum(np.abs(plane).max(), 1e-9)
    # Alike topics would lie on each other; a small circle keeps them apart at first.
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
