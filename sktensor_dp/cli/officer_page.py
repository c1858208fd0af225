"""One page about a run for a data protection officer, in plain words."""

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import compress
from pathlib import Path

from scipy.special import ndtr, ndtri

from sktensor_dp.checks.display import counted, plain, printable
from sktensor_dp.estimator.forecast import LARGEST_ADVISED
from sktensor_dp.privacy.composition import unit_costs
from sktensor_dp.privacy.odds import odds_in_hundred
from sktensor_dp.privacy.report import PLANNED, PrivacyReport
from sktensor_dp.web_page import page

SEVERAL = (
    " A person behind several {unit}s is not protected as a whole: with m of them, epsilon counts "
    "m times. If that can be, ask for a run that names persons (--person; in Python "
    "groups=)."
)
# Bounds that were not public, in words, by the releases that found them.
FOUND = {
    "word_votes": "the list of words (a word of one {unit} alone in 1 of {often} runs at most)",
    "value_histogram": "the range of values",
    "norm_histogram": "the size at which the numbers of one {unit} are cut off",
}
OF_RATINGS = "in Python a round shape= above the number of persons hides both"
PRESENCE = (
    "- Is being in the data itself the secret, as for patients of a clinic? Then ask for a run "
    'with --add-remove (in Python neighbours="add_remove"), which hides the number too; runs on '
    f"ratings have none, but {OF_RATINGS}.\n"
)

# Beginnings of names of releases of texts.
OF_TEXTS = ("word_", "document_", "pair_", "triple_", "whitened_triple_", "expected_counts")
NAMED = (
    "- People of whom many others wrote, whether they gave data or not: their names may come out.\n"
)
LITTLE_PROMISED = (
    f"An epsilon above {LARGEST_ADVISED:g} promises little: whoever knows all other data may be "
    "left without a doubt."
)

# Settings that are about results: the page has them in a place of their own.
SHOWS, NOTES = "what it shows", "what its report adds"
DOUBTS = f"warning of {SHOWS}"

PAGES = ("for-the-officer.md", "for-the-officer.html")

# Number of steps of `chance_beyond`, after which its bound no longer changes.
STEPS = 5000


def write_officer_pages(write: Callable[[str, str], object], text: str) -> None:
    """Write an `officer_text` as ``for-the-officer.md`` and ``.html``, by ``write(name, text)``."""
    write(PAGES[0], text)
    title, *blocks = text.strip().split("\n\n")
    body = [f"<header><h1>{escape(title.removeprefix('# '))}</h1></header>", *map(_as_html, blocks)]
    html = page(title.removeprefix("# "), body)
    write(PAGES[1], html)


def on_presence(command: str, *, is_hidden: bool) -> str:
    """Sentence on whether a run of the `command` hides who is in the data, and how it could."""
    if is_hidden:
        return "Hidden, too: who is in the data, and how many there are"
    ways = OF_RATINGS if command == "ratings" else "--add-remove --persons N hides both"
    return (
        "Not hidden: who is in the data, and how many there are. If that is the secret, as for "
        f"patients of a clinic, {ways}"
    )


def large_delta(delta: float, n_units: int, unit: str) -> str:
    """Sentence on what a delta above one over the number of units allows; "" for a smaller one."""
    if delta * n_units <= 1:
        return ""
    return (
        f"delta {plain(delta)} is above 1 in {n_units:,}: to publish all about one {unit}, picked "
        "at random, would keep this promise. Take a smaller --delta"
    )


def officer_text(
    settings: Mapping[str, object],
    report: PrivacyReport,
    source: str,
    others: str,
    warnings: Sequence[str],
) -> str:
    """Text on what was run, who is protected from what, how strongly and how long, what to ask.

    `source` says what files the page is about, `others` what else was spent, `warnings` what
    weakens the protection.
    """
    unit = printable(report.unit)
    text = Path(__file__).with_name("officer_page.md").read_text("utf-8")
    if report.seeded or math.isinf(report.epsilon):
        title = text.splitlines()[0]
        return (
            f"{title}\n\nNo secret noise was added: nothing is protected. Treat it as raw data.\n"
        )
    if report.unit == "person":
        exactly = "" if "normalise labels" in settings else ", in capitals and small letters alike"
        ask = f"Does everything of one person bear the same name in the data{exactly}?"
        several = ""
        whole = (
            f"with everything of theirs in the data: all rows with the same value in "
            f"{settings.get('person', 'the column of persons')} are one person"
        )
    else:
        ask = f"Can anybody be behind more than one {unit}?"
        several = SEVERAL.format(unit=unit)
        whole = "taken by itself"
    presence = PRESENCE
    number, change = "How many there are is public.", "was replaced by another"
    if report.neighbours == "add_remove":
        number, change = "That number is noisy: the true one is not public.", "was there at all"
        if not report.n_units:
            number = "How many there are is not public."
        presence = ""
    elif report.neighbours != "replace_one":
        number, change = f"The promise compares {printable(report.neighbours)}.", "was another"
    released = {row.name for row in report.rows}
    names = NAMED if any(name.startswith(OF_TEXTS) for name in released) else ""
    set_aside = max((row.cost.delta for row in report.rows), default=0.0)  # for the list of words
    often = f"{1 / set_aside:,.0f}" if set_aside else ""
    if found := [FOUND[name].format(unit=unit, often=often) for name in FOUND if name in released]:
        settings = {**settings, "found from noisy numbers, within the budget": " and ".join(found)}
    delta = f"1 in {1 / report.delta:,.0f}" if report.delta else "0"
    units = printable(report.units)
    points = [f"- {what}: {printable(str(value))}" for what, value in settings.items()]
    of_results = [what.endswith((SHOWS, NOTES)) for what in settings]
    results = "\n".join(compress(points, of_results))
    return text.format(
        units=units, first_units=f"{units[:1].upper()}{units[1:]}", presence=presence, unit=unit,
        names=names, number=number, change=change,
        ask=ask, whole=whole, several=several, source=source, others=others, delta=delta,
        run="\n".join(compress(points, map(operator.not_, of_results))),
        results=f"\n## What it shows\n\n{results}\n" if results else "",
        warnings="".join(f"- Warning: {printable(warning)}\n" for warning in warnings),
        statement=printable(str(settings.get("statement", "statement.json"))),
        epsilon=f"{report.epsilon:.4g}", odds="\n".join(_odds(report, delta)),
        released=_released(report),
        missed=math.floor(100 * report.false_negative_rate(0.05)),
    )  # fmt: skip


def _released(report: PrivacyReport) -> str:
    """Points on what noise was added to, and how often; and where other numbers were planned."""
    uses: Counter[str] = Counter()
    for row in report.rows:
        uses[row.description] += row.uses
    often = {what: f" ({n:,} times)" * (n > 1) for what, n in uses.items()}
    points = "\n".join(f"- {printable(what)}{times}" for what, times in often.items())
    planned = [printable(note) for note in report.notes if note.startswith(PLANNED)]
    return "\n\n".join([points, *planned])


def _odds(report: PrivacyReport, delta: str) -> Iterator[str]:
    """Yield sentences on how far, and how often further, the results may move beliefs."""
    for before, low, high in odds_in_hundred(report.epsilon):
        yield (
            f"- Somebody who thought it {before} in 100 likely before may think it {low} to {high} "
            "in 100 likely afterwards."
        )
    if report.epsilon > LARGEST_ADVISED:
        yield f"- {LITTLE_PROMISED}"
    if not report.delta:
        return
    costs, chance = unit_costs(report.composition), 0.0  # 0 where it is not known
    if all(cost.mu > 0 and cost.epsilon == 0 for cost in costs):
        chance = max(chance_beyond(cost.mu, cost.delta, report.epsilon) for cost in costs)
    often = f"in at most 1 of {counted(math.floor(1 / chance), 'run')}" if chance else "seldom"
    yield (
        f"- By chance a run may move beliefs further than that: {often}. Delta, {delta}, limits "
        "how often and how far together."
    )


def chance_beyond(mu: float, delta: float, epsilon: float) -> float:
    """Bound the probability that releases change odds by more than e^epsilon.

    They are mu-GDP but for events of probability `delta`.

    Examples
    --------
    >>> round(1 / chance_beyond(0.2367, 0.0, 1.0), -3)
    14000.0
    """
    # An outcome that is e^epsilon times as probable with one unit as with another has at most the
    # probability p at which the best test gains that factor. At level q the test has power
    # Phi(Phi^-1(q) + mu) + delta. Starting from 1, every step is a smaller upper bound on p.
    most = 1.0
    for _ in range(STEPS):
        most = min(float(ndtr(ndtri(math.exp(-epsilon) * most) + mu)) + delta, 1.0)
    # An outcome that is so much less probable has at most e^-epsilon times p.
    return min(most * (1 + math.exp(-epsilon)), 1.0)


def _as_html(block: str) -> str:
    """A heading, a list, or a paragraph."""
    if block.startswith("## "):
        return f"<h2>{escape(block.removeprefix('## '))}</h2>"
    if block.startswith("- "):
        points = block.removeprefix("- ").split("\n- ")
        return f"<ul>{''.join(f'<li>{escape(point)}</li>' for point in points)}</ul>"
    return f"<p>{escape(block)}</p>"
