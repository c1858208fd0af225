"""One self-contained web page that shows private topics and what they cost, for anybody to see."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sktensor_dp.checks.display import Table, counted, plain, printable
from sktensor_dp.estimator.base import names_of_columns
from sktensor_dp.privacy.odds import SUSPICIONS, odds_after, odds_in_hundred
from sktensor_dp.privacy.report import PrivacyReport, number_cells
from sktensor_dp.topic_page.explorer import explorer
from sktensor_dp.web_page import page, template

ALONE = (
    '<p class="soft">This counts topics and their shares alone: an earlier step on the same data, '
    "such as a private choice of words, costs more.</p>"
)
NUMBERS = ("Sensitivity", "σ", "μ", "ε", "Uses", "Fraction")


@dataclass(frozen=True)
class Topic:
    """Topic as shown on the page: words and share.

    Attributes
    ----------
    number, weight : int, float
        Its number from 1, and its share of the words (``meaning_of_share``).
    words, distinctive : tuple of str
        Its most probable words, and those known to set it apart, the first ones first.
    hidden : bool
        Whether noise hides it: no word is known to set it apart, and none is listed, but those of a
        single topic, which are the most frequent of all.
    """

    number: int
    weight: float
    words: tuple[str, ...]
    hidden: bool
    distinctive: tuple[str, ...]


def topics_of(model: BaseEstimator, names: Sequence[str] | NDArray[Any]) -> list[Topic]:
    """Topics of a fitted model, in its order, made of released values alone.

    Parameters
    ----------
    model : PrivateSpectralLDA
        Fitted topics.
    names : sequence of str of length n_features
        The words.

    Returns
    -------
    list of Topic
    """
    shares = model._shares
    words = model.top_words(10, names)
    distinctive = model.top_words(10, names, relevance=0.6)
    hidden = model.hidden()
    return [
        Topic(
            row + 1, float(shares[row]), tuple(words[row]), bool(hidden[row]),
            tuple(distinctive[row]),
        )
        for row in range(len(shares))
    ]  # fmt: skip


def meaning_of_share(unit: str) -> str:
    """Sentences on what the share of a topic is and is not, for units called `unit`."""
    mean = ", a person counting by the mean of their texts" if unit == "person" else ""
    return (
        f"Share: of the words kept{mean}; very long texts count less. It is no share of "
        f"{printable(unit)}s, and has no interval: another run may split topics, or find others. "
        "Do not report it as a result."
    )


def write_topic_page(
    path: str | Path,
    model: BaseEstimator,
    feature_names: Sequence[str] | NDArray[Any] | None = None,
    *,
    report: PrivacyReport | None = None,
    warnings: Sequence[str] = (),
    shares: BaseEstimator | Mapping[str, BaseEstimator] | None = None,
) -> Path:
    """Write topics, their guarantee and every release behind them to one HTML file.

    Parameters
    ----------
    path : str or Path
        Where to write; an existing file is replaced, and missing folders are made.
    model : PrivateSpectralLDA
        Fitted topics.
    feature_names : sequence of str of length n_features, default=None
        Names of the model's words; by default its own.
    report : PrivacyReport, default=None
        By default that of `model` alone. After a private vocabulary pass that of both,
        ``counts.privacy_report_.followed_by(lda.privacy_report_, delta=1e-6)``, and so on for
        shares; the page says so where nothing but `model` and `shares` is in it.
    warnings : sequence of str, default=()
        Texts of the fit's warnings, to be shown, made of released values and public numbers alone.
    shares : TopicShares or dict of str to TopicShares, default=None
        Shares of the topics by group, to be shown with what is printed of them:
        :meth:`sktensor_dp.PrivateSpectralLDA.shares_by`; several by their headings, as in
        ``{"By year": years, "By district": districts}``. Pass a `report` of all.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    TypeError, ValueError
        If `shares` are neither ``TopicShares`` nor a dict of these; if names do not fit the model,
        or the report leaves out shares.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sktensor_dp import PrivateSpectralLDA
    >>> lda = PrivateSpectralLDA(1).fit([[1, 2, 0], [0, 1, 2]] * 10_000)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_topic_page(Path(folder, "topics.html"), lda, ["ship", "sail", "tax"])
    ...     "learned from 20,000 documents" in page.read_text(encoding="utf-8")
    True
    """
    check_is_fitted(model)
    feature_names = names_of_columns(model, feature_names, model.n_features_in_)
    report = model.privacy_report_ if report is None else report
    by_heading = _checked_shares(shares, report)
    shown = {row.name for one in (model, *by_heading.values()) for row in one.privacy_report_.rows}
    alone = ALONE if shown >= {row.name for row in report.rows} else ""
    topics = topics_of(model, feature_names)
    hidden = [topic.hidden for topic in topics]
    section, data = explorer(model, feature_names, hidden, template(__file__, "explorer.html"))
    warned = "".join(f"<li>{escape(printable(warning))}</li>" for warning in warnings)
    if warnings:
        warned = f'<section><h2>Warnings</h2><ul class="box alarm">{warned}</ul></section>'
    if report.seeded or math.isinf(report.epsilon):
        why = "This run added no noise: it is the baseline, and anything may leak from it."
        if report.seeded:
            why = "The noise was seeded, so whoever knows the seed can take it off again."
        title, promise = "Topics, not private", ""
        guarantee = f'<p class="box alarm"><strong>Not private.</strong> {why}</p>'
    else:
        title, promise = "Private topics", _promise(report)
        guarantee = _guarantee(report) + alone
    body = template(__file__, "topics.html").format(
        title=escape(title),
        n_topics=counted(len(topics), "topic"),
        share=escape(f"{meaning_of_share(report.unit)} {model.in_brief}"),
        guarantee=guarantee,
        warnings=warned,
        explorer=section,
        topics="".join(_topic_row(topic, topics[0].weight) for topic in topics),
        by_group="".join(_by_group(name, one._table()) for name, one in by_heading.items()),
        promise=promise,
        **_releases(report),
        **_facts(report),
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(title, [body], data, template(__file__, "page.js")), encoding="utf-8")
    return path


def _checked_shares(
    shares: BaseEstimator | Mapping[str, BaseEstimator] | None, report: PrivacyReport
) -> Mapping[str, Any]:
    """Shares by their headings; an error if one is no estimator, or is not in the report."""
    if not isinstance(shares, Mapping):
        shares = {} if shares is None else {"Topics by group": shares}
    for one in shares.values():
        if not isinstance(one, BaseEstimator):
            raise TypeError(
                "shares must be TopicShares, or a dict of several by their headings, got "
                f"{type(one).__name__}."
            )
        if not all(row in report.rows for row in one.privacy_report_.rows):
            raise ValueError(
                "report must hold what shares cost, too: pass "
                "counts.privacy_report_.followed_by(lda.privacy_report_)"
                ".followed_by(shares.privacy_report_, delta=...), counts being a private choice "
                "of words, if there was one."
            )
    return shares


def _facts(report: PrivacyReport) -> dict[str, str]:
    """Return unit, number of units, epsilon and delta of a report as text for the page, escaped."""
    unit = escape(report.unit)
    return {
        "unit": unit, "units": f"{unit}s", "several": escape(report.units),
        "epsilon": f"{report.epsilon:.4g}", "delta": plain(report.delta),
    }  # fmt: skip


def _guarantee(report: PrivacyReport) -> str:
    """Box with epsilon and delta, and what they say of a change of one unit."""
    facts, epsilon = _facts(report), report.epsilon
    unit = facts["unit"]
    change, done = "replacing", f"Replace any one {unit} by any other"
    if report.neighbours == "add_remove":
        change, done = "adding or removing", f"Add any one {unit}, or remove one"
    factor = f"{math.exp(epsilon):,.3g}" if epsilon < 20 else f"10^{epsilon / math.log(10):.0f}"
    return (
        f'<div class="box"><p><strong>(ε = {facts["epsilon"]}, δ = {facts["delta"]})-differential '
        f"privacy for {change} one {unit}.</strong></p><p>{done}: whatever is shown here becomes "
        f"at most e<sup>ε</sup> = {factor} times as likely, up to an added probability of δ. "
        "Smaller ε and δ protect more.</p></div>"
    )


def _promise(report: PrivacyReport) -> str:
    """Odds with a small picture in each row, what is protected, and what is not."""
    facts = _facts(report)
    unit, units = facts["unit"], facts["units"]
    rows = []
    for before, in_hundred in zip(SUSPICIONS, odds_in_hundred(report.epsilon), strict=True):
        low, high = odds_after(before, report.epsilon)
        said_before, said_low, said_high = in_hundred
        rows.append(
            f'<tr><th scope="row">{said_before} in 100</th><td><span class="track" '
            f'aria-hidden="true"><i style="left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%">'
            f'</i><i class="before" style="left:{100 * before:.2f}%"></i></span></td>'
            f"<td>{said_low} to {said_high} in 100</td></tr>"
        )
    several = (
        f"<li>A person behind several {units}: for m of them, ε grows to m ε, and δ by more.</li>"
    )
    if report.neighbours == "add_remove":
        suspicion, protected = f"that one {unit} is among them", "being in the data or not"
        public = "The settings"
    else:
        suspicion, protected = f"something of one {unit}", "all that the data hold of one"
        public = f"The number of {units} and the settings"
    return template(__file__, "promise.html").format(
        **facts, suspicion=suspicion, odds="".join(rows), protected=protected, public=public,
        person="" if unit == "person" else several,
    )  # fmt: skip


def _releases(report: PrivacyReport) -> dict[str, str]:
    """Head, rows and notes of the table of releases."""
    rows = []
    for row, fraction in zip(report.rows, report.fractions, strict=True):
        rows.append(
            f"<tr><td><b>{escape(row.name)}</b><br><small>{escape(row.description)}</small></td>"
            f"<td>{escape(row.mechanism)}</td>{_cells('td', '', number_cells(row, fraction))}</tr>"
        )
    items = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
    return {
        "numbers": _cells("th", ' scope="col"', NUMBERS), "releases": "".join(rows),
        "notes": f"<ul>{items}</ul>" if items else "",
    }  # fmt: skip


def _cells(tag: str, attributes: str, values: Iterable[str]) -> str:
    """Cells of a row of numbers, each in a `tag`."""
    return "".join(f'<{tag}{attributes} class="number">{value}</{tag}>' for value in values)


def _topic_row(topic: Topic, largest: float) -> str:
    """Row of a topic: number, share as a bar (the `largest` one is full) and words."""
    hidden = probable = ""
    apart = _words(topic.distinctive) if topic.distinctive else ""
    if topic.words != topic.distinctive:
        probable = f"<small>Most probable: {_words(topic.words)}</small>"
    if topic.hidden:
        hidden = (
            '<small class="hidden">Hidden by noise: no word is known to be more likely here than '
            "in all texts.</small>"
        )
    return (
        f'<tr data-number="{topic.number}" data-share="{topic.weight:.6g}">'
        f'<th scope="row">{topic.number}</th>'
        f'<td class="weight"><span class="bar" aria-hidden="true">'
        f'<i style="width:{100 * topic.weight / largest:.1f}%"></i></span>'
        f'<span class="share">{100 * topic.weight:.1f} %</span></td>'
        f'<td class="words">{apart}{probable}{hidden}</td></tr>'
    )


def _by_group(heading: str, table: Table) -> str:
    """Section with a table of numbers whose first cells are names of rows."""
    heading = escape(printable(heading))
    rows = "".join(
        f'<tr><th scope="row">{escape(printable(name))}</th>{_cells("td", "", numbers)}</tr>'
        for name, *numbers in table.rows
    )
    name, *columns = table.head
    head = f'<th scope="col">{name}</th>' + _cells("th", ' scope="col"', columns)
    notes = "".join(f'<p class="soft">{escape(note)}</p>' for note in table.notes)
    return (
        f'<section><h2>{heading}</h2><div class="scroll" tabindex="0" role="region" '
        f'aria-label="{heading}"><table><caption>{table.title}</caption><thead><tr>{head}'
        f"</tr></thead><tbody>{rows}</tbody></table></div>{notes}</section>"
    )


def _words(words: Iterable[str]) -> str:
    """Words, escaped, the first one bold."""
    first, *others = [escape(printable(word)) for word in words] or [""]
    return " ".join([f"<b>{first}</b>", *others])
