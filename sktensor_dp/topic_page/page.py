"""One self-contained web page that shows private topics and what they cost.

The page is made of released values and public parameters alone, so it may be
handed on wherever the topics may. It loads nothing: style, script and data are in it.
Without a script it is complete to read; with one it can be explored.
"""

import base64
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.privacy.report import PrivacyReport, ReleaseRecord
from sktensor_dp.privacy.tables import printable
from sktensor_dp.topic_page.explorer import Explorer, explorer_section, script_of

# Of whoever suspects something of somebody.
BEFORE = (0.01, 0.1, 0.5)


def odds_after(before: float, epsilon: float) -> tuple[float, float]:
    """Least and largest probability after reading, from one before, as Bayes' rule has it.

    Examples
    --------
    >>> low, high = odds_after(0.5, 1.0)
    >>> round(low, 3), round(high, 3)
    (0.269, 0.731)
    """
    # Beyond this the bounds are 0 and 1 in double precision.
    factor = math.exp(-min(epsilon, 700.0))
    low = before * factor / (1 - before + before * factor)
    return low, before / (before + (1 - before) * factor)


def odds_section(epsilon: float, delta: float, unit: str, comes_and_goes: bool) -> str:
    """Table with a small picture in each row; `unit` is escaped."""
    suspicion = f"that one {unit} is among them" if comes_and_goes else f"something of one {unit}"
    rows = "".join(_row(before, *odds_after(before, epsilon)) for before in BEFORE)
    return f"""<section><h2>What ε = {epsilon:.4g} means</h2>
<p>Suppose that somebody knows everything about all the others here, and suspects
{suspicion}. This page can make them surer, or less sure, but only so far:</p>
<table class="odds"><caption>How probable they hold it before they read this page (line),
and after (bar: from the least to the most that it can become).</caption>
<thead><tr><th scope="col">Before</th><th scope="col"><span class="visually-hidden">Picture
</span></th><th scope="col">After</th></tr></thead><tbody>{rows}</tbody></table>
<p class="soft">{_size(epsilon)} But for a chance of δ = {delta:.3g}, about
{_one_in(delta)}, for which nothing is promised.</p></section>"""


def _row(before: float, low: float, high: float) -> str:
    return (
        f'<tr><th scope="row">{_in_hundred(before)}</th><td><span class="track" '
        f'aria-hidden="true"><i style="left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%">'
        f'</i><i class="before" style="left:{100 * before:.2f}%"></i></span></td>'
        f"<td>{_in_hundred(low).removesuffix(' in 100')} to {_in_hundred(high)}</td></tr>"
    )


def _in_hundred(share: float) -> str:
    if share < 0.001:
        return "almost 0 in 100"
    if share > 0.999:
        return "almost 100 in 100"
    # 99.6 must not read as certain, nor .4 as never.
    digits = 1 if share < 0.0095 or share > 0.9905 else 0
    return f"{100 * share:.{digits}f} in 100"


def _one_in(delta: float) -> str:
    return f"one in {1 / delta:,.0f}" if delta > 1e-15 else "none"


def _size(epsilon: float) -> str:
    if epsilon <= 1:
        return "This is a strong promise."
    if epsilon <= 5:
        return "This is a moderate promise."
    return "This is a weak promise: somebody who was in doubt may become nearly sure."


def releases_section(reports: Mapping[str, PrivacyReport], total: tuple[float, float]) -> str:
    """Every release with its noise and cost, folded."""
    rows = "".join(
        _release_row(step, row, share)
        for step, report in reports.items()
        for row, share in zip(report.rows, report.fractions, strict=True)
    )
    notes = dict.fromkeys(note for report in reports.values() for note in report.notes)
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Step", "Release", "Noise"))
    for name in ("Sensitivity", "σ", "μ", "ε", "Uses", "Share"):
        head += f'<th scope="col" class="number">{name}</th>'
    return (
        '<details><summary><h2>Privacy report</h2></summary><div class="scroll" tabindex="0" '
        'role="region" aria-label="Privacy report"><table class="report">'
        "<caption>Every point at which data became public. Sensitivity: how far one unit "
        "moves the statistic. σ: standard deviation of the noise. The cost of each use is μ = "
        "sensitivity / σ for Gaussian noise, ε for pure noise. Share: how much of its step's "
        f"budget a release took in all its uses, {_shares_of(reports)}.</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
        f'<tfoot><tr><th scope="row" colspan="3">Total of all steps</th>'
        '<td class="number" colspan="6">'
        f"ε = {total[0]:.6g} at δ = {total[1]:.3g}</td></tr></tfoot></table></div>"
        + (f"<ul>{items}</ul>" if items else "")
        + "</details>"
    )


def _shares_of(reports: Mapping[str, PrivacyReport]) -> str:
    kinds = {report.fractions_of for report in reports.values()}
    if kinds == {"mu^2"}:
        return "as a fraction of μ²"
    return "as a fraction of ε" if kinds == {"epsilon"} else "of μ² or, if its noise is pure, of ε"


def _release_row(step: str, row: ReleaseRecord, share: float | None) -> str:
    cells = [f"{value:.4g}" for value in (row.sensitivity, row.sigma)]
    # What a release does not cost is left empty: 0 would read as free.
    cells += [f"{value:.4g}" if value else "" for value in (row.mu, row.epsilon)]
    cells += [str(row.uses), "" if share is None else f"{100 * share:.1f} %"]
    numbers = "".join(f'<td class="number">{cell}</td>' for cell in cells)
    return (
        f"<tr><td>{escape(step)}</td><td><b>{escape(row.name)}</b><br>"
        f"<small>{escape(row.description)}</small></td><td>{escape(row.mechanism)}</td>"
        f"{numbers}</tr>"
    )


@dataclass(frozen=True)
class Topic:
    """A topic as people read it.

    Attributes
    ----------
    number : int
        What it is called on the page.
    weight : float
        Its share of all text, from 0 to 1.
    words : tuple of str
        Its most probable words, the most probable first.
    below_noise : bool, default=False
        Whether noise hides what sets it apart; the page marks it.
    distinctive : tuple of str, default=()
        Words that set it apart from others, the most relevant first.
    interval : tuple of float or None, default=None
        Where its share lies at 90 %, for the noise.
    """

    number: int
    weight: float
    words: tuple[str, ...]
    below_noise: bool = False
    distinctive: tuple[str, ...] = ()
    interval: tuple[float, float] | None = None


def write_topic_page(
    path: str | Path,
    *,
    topics: Sequence[Topic] | None = None,
    reports: Mapping[str, PrivacyReport] | None = None,
    total: tuple[float, float] | None = None,
    model: Any = None,
    feature_names: Sequence[str] | NDArray[Any] | None = None,
    title: str = "Private topics",
    facts: Mapping[str, str] | None = None,
    warnings: Sequence[str] = (),
    figure_png: bytes | None = None,
    snippet: str | None = None,
) -> Path:
    """Write topics, their guarantee and every release behind them to one HTML file.

    Parameters
    ----------
        path : str or Path
            Where to write; an existing file is replaced.
        topics : sequence of Topic, default=None
            The topics, shown in this order; by default those of `model`.
        reports : mapping of str to PrivacyReport, default=None
            The report of each step, by the name of the step; by default that of `model`.
        total : tuple of float, default=None
            (epsilon, delta) of all steps together, as ``BudgetAccountant.total()`` gives it; by
            default those of the one report there is.
        model : PrivateSpectralLDA, default=None
            Fitted topics, which the page then lets people explore: a map beside ranked words with
            their intervals, words by topic, two topics beside each other.
        feature_names : sequence of str of length n_features, default=None
            Names of the model's words; by default its own.
        title : str, default="Private topics"
            Heading of the page.
        facts : mapping of str to str, default=None
            Public facts about the run, by name: parameters, versions.
        warnings : sequence of str, default=()
            What the fit warned of, from released values and public numbers alone, as
            ``NotEnoughDataWarning`` and ``PrivacyLeakWarning`` do.
        figure_png : bytes, default=None
            A PNG image of the topics, embedded in the page.
        snippet : str, default=None
            Python code that makes topics in the same way.

    Returns
    -------
        Path
            The file written.

    Raises
    ------
        ValueError
            If there is no topic or no report, several reports without their total, or names that
            do not fit the model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sktensor_dp import PrivacyReport
    >>> from sktensor_dp.topic_page import Topic, write_topic_page
    >>> report = PrivacyReport(1.0, 1e-6, "document", "replace_one", 20, False, ())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_topic_page(
    ...         Path(folder, "topics.html"), topics=[Topic(1, 1.0, ("ship", "sail"))],
    ...         reports={"topics": report}, total=(1.0, 1e-6),
    ...     )
    ...     "<b>ship</b> sail" in page.read_text(encoding="utf-8")
    True
    """
    explorer = None
    if model is not None:
        model.top_words(1, feature_names)  # refuses names that do not fit
        names = _names(model, feature_names)
        found = topics_of(model, names)
        topics = found if topics is None else topics
        reports = {"topics": model.privacy_report_} if reports is None else reports
        explorer = Explorer.of(model, names, [topic.below_noise for topic in found])
    if not topics:
        raise ValueError("topics must hold at least one Topic")
    if not reports:
        raise ValueError("reports must hold the PrivacyReport of at least one step")
    total = _total_of(reports) if total is None else total
    first, problem = next(iter(reports.values())), _why_not_private(reports, total)
    sections = [
        _headline(title, first, total, problem, len(topics)),
        _warnings_section(warnings) if warnings else "",
        "" if explorer is None else explorer_section(explorer),
        _topics_section(topics),
        _figure_section(figure_png, len(topics)) if figure_png else "",
        "" if problem else odds_section(*total, escape(first.unit), _comes_and_goes(first)),
        "" if problem else _protection_section(first),
        releases_section(reports, total),
        _facts_section(facts) if facts else "",
        _snippet_section(snippet) if snippet else "",
    ]
    path = Path(path)
    path.write_text(_page(title, sections, explorer), encoding="utf-8")
    return path


def topics_of(model: Any, names: Sequence[str] | NDArray[Any], n_words: int = 10) -> list[Topic]:
    """Topics of a fitted model by falling share, numbered in this order.

    Parameters
    ----------
    model : PrivateSpectralLDA
        Fitted topics.
    names : sequence of str of length n_features
        The words.
    n_words : int, default=10
        How many of each kind.

    Returns
    -------
    list of Topic
        Made of released values alone.
    """
    shares = model.topic_prior_ / model.topic_prior_.sum()
    low, high = model.shares_interval()
    known = getattr(model, "topic_prior_std_", None) is not None
    words = model.top_words(n_words, names)
    distinctive = model.top_words(n_words, names, relevance=0.6)
    hidden = model.below_noise()
    return [
        Topic(
            number, float(shares[row]), tuple(words[row]), bool(hidden[row]),
            tuple(distinctive[row]), (float(low[row]), float(high[row])) if known else None,
        )
        for number, row in enumerate(np.argsort(-shares, kind="stable"), start=1)
    ]  # fmt: skip


def _total_of(reports: Mapping[str, PrivacyReport]) -> tuple[float, float]:
    if len(reports) > 1:
        raise ValueError("total must be given where reports are several: they share it")
    (report,) = reports.values()
    return report.epsilon, report.delta


def _names(model: Any, feature_names: Any) -> Any:
    if feature_names is not None:
        return feature_names
    numbers = [str(column) for column in range(model.n_features_in_)]
    return getattr(model, "feature_names_in_", numbers)


def _page(title: str, sections: Sequence[str], explorer: Explorer | None) -> str:
    here = Path(__file__).parent
    template, style, program = (
        here.joinpath(f"page.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")
    )
    policy, script = "default-src 'none'; img-src data:; style-src 'unsafe-inline'", ""
    if explorer is not None:
        digest = base64.b64encode(hashlib.sha256(program.encode("utf-8")).digest()).decode("ascii")
        # This script and no other, whatever a word of the page may say.
        policy += f"; script-src 'sha256-{digest}'"
        script = script_of(explorer, program)
    body = "\n".join(filter(None, sections))
    return template.format(
        title=escape(title), policy=policy, style=style, body=body, script=script
    )


# ------------------------------------------------------------------ sections


def _headline(
    title: str,
    report: PrivacyReport,
    total: tuple[float, float],
    problem: str | None,
    n_topics: int,
) -> str:
    unit, units = escape(report.unit), _plural(report.unit)
    made = f"{n_topics} topics learned from {report.n_units:,} {units}."
    if problem:
        box = f'<p class="box alarm"><strong>Not private.</strong> {escape(problem)}</p>'
    else:
        number = "is public; what each of them says"
        if _comes_and_goes(report):
            number = f"was counted with noise; whether any {unit} is among them"
        made += f" The number of {units} {number} is protected as stated below."
        box = f'<div class="box">{_guarantee(unit, total, _comes_and_goes(report))}</div>'
    return f"<header><h1>{escape(title)}</h1><p>{made}</p>{box}</header>"


def _warnings_section(warnings: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(printable(warning))}</li>" for warning in warnings)
    return f'<section><h2>Warnings</h2><ul class="box alarm">{items}</ul></section>'


def _why_not_private(
    reports: Mapping[str, PrivacyReport], total: tuple[float, float]
) -> str | None:
    if any(report.seeded for report in reports.values()):
        return "The noise was seeded, so whoever knows the seed can take it off again."
    if not math.isfinite(total[0]):
        return "This run added no noise: it is the baseline, and anything may leak from it."
    return None


def _comes_and_goes(report: PrivacyReport) -> bool:
    return report.neighbours == "add_remove"


def _guarantee(unit: str, total: tuple[float, float], comes_and_goes: bool) -> str:
    """Statement of the guarantee; `unit` is escaped."""
    epsilon, delta = total
    change, told = "replacing", f"Replace any one {unit} by any other"
    if comes_and_goes:
        change, told = "adding or removing", f"Add any one {unit}, or remove one"
    return (
        f"<p><strong>(ε = {epsilon:.4g}, δ = {delta:.3g})-differential privacy for {change} "
        f"one {unit}.</strong></p><p>{told}: whatever is shown "
        f"here becomes at most e<sup>ε</sup> = {_factor(epsilon)} times as likely, up to an added "
        f"probability of δ. Smaller ε and δ protect more.</p>"
    )


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):,.3g}" if epsilon < 20 else f"10^{epsilon / math.log(10):.0f}"


def _topics_section(topics: Sequence[Topic]) -> str:
    largest = max(topic.weight for topic in topics) or 1.0
    rows = "".join(
        f'<tr data-number="{topic.number}" data-share="{topic.weight:.6g}">'
        f'<th scope="row">{topic.number}</th>'
        f'<td class="weight"><span class="bar" aria-hidden="true">'
        f'<i style="width:{100 * max(topic.weight, 0.0) / largest:.1f}%"></i></span>'
        f'<span class="share">{100 * topic.weight:.1f} %</span>{_interval(topic)}</td>'
        f'<td class="words">{_both_words(topic)}{_mark(topic)}</td></tr>'
        for topic in topics
    )
    told = "its most probable words, the most probable first"
    if any(topic.distinctive for topic in topics):
        told = "the words that set it apart, and below them its most probable ones"
    return (
        '<section><h2>Topics</h2><div class="scroll"><table id="topics-table" class="stack">'
        f"<caption>Each topic with its share of the text and {told}.</caption>"
        '<thead><tr><th scope="col" data-sort="number">Topic</th>'
        '<th scope="col" data-sort="share">Weight</th>'
        f'<th scope="col">Words</th></tr></thead><tbody>{rows}</tbody></table></div></section>'
    )


def _interval(topic: Topic) -> str:
    if topic.interval is None:
        return ""
    low, high = topic.interval
    return f"<br><small>{100 * low:.1f} to {100 * high:.1f} %</small>"


def _both_words(topic: Topic) -> str:
    if not topic.distinctive:
        return _words(topic.words)
    return f"{_words(topic.distinctive)}<small>{_words(topic.words)}</small>"


def _mark(topic: Topic) -> str:
    if not topic.below_noise:
        return ""
    return (
        '<small class="hidden">Below its noise: too little sets it apart from the word '
        "frequencies of all texts.</small>"
    )


def _words(words: Iterable[str]) -> str:
    first, *others = [escape(printable(word)) for word in words] or [""]
    return " ".join([f"<b>{first}</b>", *others]) if others else first


def _figure_section(figure_png: bytes, n_topics: int) -> str:
    source = base64.b64encode(figure_png).decode("ascii")
    return (
        '<section><h2>Probabilities</h2><figure><img alt="Bar charts of the most probable words '
        f'of {n_topics} topics; the table above lists the same words." '
        f'src="data:image/png;base64,{source}"></figure></section>'
    )


def _plural(unit: str) -> str:
    """Name of several units, escaped."""
    one = "group of "
    return escape(f"groups of {unit.removeprefix(one)}" if unit.startswith(one) else f"{unit}s")


def _protection_section(report: PrivacyReport) -> str:
    unit, units = escape(report.unit), _plural(report.unit)
    public = f"The number of {units} and the settings of the run: they are public."
    protected = "it says one thing or any other"
    if _comes_and_goes(report):
        public, protected = "The settings of the run: they are public.", "it is among them or not"
    return f"""<section class="columns"><div><h2>What is protected</h2><ul>
<li>Every single {unit}: whether {protected}.</li>
<li>To the extent that ε and δ state, against anybody, whatever else they know.</li>
<li>In everything on this page: word list, topics, weights, charts.</li></ul></div>
<div><h2>What is not</h2><ul>
<li>{public}</li>
<li>A person behind several {units}: for m of them, ε grows to m ε, and δ by more.</li>
<li>What holds for the collection as a whole: showing that is the purpose.</li>
<li>The input itself, its other copies, and how long the run took.</li>
<li>Further runs on the same {units}: each costs anew, and costs add up.</li></ul></div>
</section>"""


def _facts_section(facts: Mapping[str, str]) -> str:
    items = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in facts.items()
    )
    return f"<section><h2>Settings</h2><dl>{items}</dl></section>"


def _snippet_section(snippet: str) -> str:
    return (
        "<section><h2>Do the same in Python</h2><p>Noise is drawn afresh each time, so topics "
        "differ a little from run to run, and every run on private data spends budget.</p>"
        f"<pre><code>{escape(snippet)}</code></pre></section>"
    )
