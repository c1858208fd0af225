"""One self-contained web page that shows private topics and what they cost.

The page is made of released values and public parameters alone, so it may be
handed on wherever the topics may. It needs no script and loads nothing.
"""

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from sktensor_dp.privacy.report import PrivacyReport, ReleaseRecord

__all__ = ["Topic", "write_topic_page"]


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
    """

    number: int
    weight: float
    words: tuple[str, ...]
    below_noise: bool = False


def write_topic_page(
    path: str | Path,
    *,
    topics: Sequence[Topic],
    reports: Mapping[str, PrivacyReport],
    total: tuple[float, float],
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
    topics : sequence of Topic
        The topics, shown in this order.
    reports : mapping of str to PrivacyReport
        The report of each step, by the name of the step.
    total : tuple of float
        (epsilon, delta) of all steps together, as ``BudgetAccountant.total()`` gives it.
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
        If there is no topic or no report.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sktensor_dp import PrivacyReport
    >>> from sktensor_dp.topic_page import Topic, write_topic_page
    >>> report = PrivacyReport(1.0, 1e-6, "document", "replace_one", 20, "grid", False, ())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_topic_page(
    ...         Path(folder, "topics.html"), topics=[Topic(1, 1.0, ("ship", "sail"))],
    ...         reports={"topics": report}, total=(1.0, 1e-6),
    ...     )
    ...     "<b>ship</b> sail" in page.read_text(encoding="utf-8")
    True
    """
    if not topics:
        raise ValueError("topics must hold at least one Topic")
    if not reports:
        raise ValueError("reports must hold the PrivacyReport of at least one step")
    sections = [
        _headline(title, reports, total, len(topics)),
        _warnings_section(warnings),
        _topics_section(topics),
        _figure_section(figure_png, topics),
        _releases_section(reports, total),
        _protection_section(reports, total),
        _facts_section(facts or {}),
        _snippet_section(snippet),
    ]
    path = Path(path)
    page = _PAGE.format(title=escape(title), style=_STYLE, body="\n".join(filter(None, sections)))
    path.write_text(page, encoding="utf-8")
    return path


# ------------------------------------------------------------------ sections


def _headline(
    title: str, reports: Mapping[str, PrivacyReport], total: tuple[float, float], n_topics: int
) -> str:
    report = next(iter(reports.values()))
    unit, units = escape(report.unit), _several(report.unit)
    number = f"The number of {units} is public; what each of them says"
    if report.neighbours == "add_remove":
        number = f"The number of {units} was counted with noise; whether any {unit} is among them"
    made = (
        f"{n_topics} topics learned from {report.n_units:,} {units}. {number} is protected as "
        "stated below."
    )
    problem = _why_not_private(reports, total)
    if problem:
        made = f"{n_topics} topics learned from {report.n_units:,} {units}."
        box = f'<p class="box alarm"><strong>Not private.</strong> {escape(problem)}</p>'
    else:
        box = f'<div class="box">{_guarantee(report, total)}</div>'
    return f"<header><h1>{escape(title)}</h1><p>{made}</p>{box}</header>"


def _warnings_section(warnings: Sequence[str]) -> str:
    if not warnings:
        return ""
    items = "".join(f"<li>{escape(_printable(warning))}</li>" for warning in warnings)
    return f'<section><h2>Warnings</h2><ul class="box alarm">{items}</ul></section>'


def _why_not_private(
    reports: Mapping[str, PrivacyReport], total: tuple[float, float]
) -> str | None:
    if any(report.seeded for report in reports.values()):
        return "The noise was seeded, so whoever knows the seed can take it off again."
    if not math.isfinite(total[0]):
        return "This run added no noise: it is the baseline, and anything may leak from it."
    return None


def _guarantee(report: PrivacyReport, total: tuple[float, float]) -> str:
    epsilon, delta = total
    unit = escape(report.unit)
    return (
        f"<p><strong>(ε = {epsilon:.4g}, δ = {delta:.3g})-differential privacy for replacing "
        f"one {unit}.</strong></p><p>Replace any one {unit} by any other: whatever is shown "
        f"here becomes at most e<sup>ε</sup> = {_factor(epsilon)} times as likely, up to an added "
        f"probability of δ. Smaller ε and δ protect more.</p>"
    )


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):,.3g}" if epsilon < 20 else f"10^{epsilon / math.log(10):.0f}"


def _topics_section(topics: Sequence[Topic]) -> str:
    largest = max(topic.weight for topic in topics) or 1.0
    rows = "".join(
        f'<tr><th scope="row">{topic.number}</th>'
        f'<td class="weight"><span class="bar" aria-hidden="true">'
        f'<i style="width:{100 * max(topic.weight, 0.0) / largest:.1f}%"></i></span>'
        f'<span class="share">{100 * topic.weight:.1f} %</span></td>'
        f'<td class="words">{_words(topic.words)}{_mark(topic)}</td></tr>'
        for topic in topics
    )
    return (
        '<section><h2>Topics</h2><div class="scroll"><table>'
        "<caption>Each topic with its share of the text and its most probable words, the most "
        "probable first.</caption>"
        '<thead><tr><th scope="col">Topic</th><th scope="col">Weight</th>'
        f'<th scope="col">Words</th></tr></thead><tbody>{rows}</tbody></table></div></section>'
    )


def _mark(topic: Topic) -> str:
    if not topic.below_noise:
        return ""
    return (
        '<br><small class="hidden">Below its noise: too little sets it apart from the word '
        "frequencies of all texts.</small>"
    )


def _words(words: Iterable[str]) -> str:
    first, *others = [escape(_printable(word)) for word in words] or [""]
    return " ".join([f"<b>{first}</b>", *others]) if others else first


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _figure_section(figure_png: bytes | None, topics: Sequence[Topic]) -> str:
    if not figure_png:
        return ""
    source = base64.b64encode(figure_png).decode("ascii")
    return (
        '<section><h2>Probabilities</h2><figure><img alt="Bar charts of the most probable words '
        f'of {len(topics)} topics; the table above lists the same words." '
        f'src="data:image/png;base64,{source}"></figure></section>'
    )


def _releases_section(reports: Mapping[str, PrivacyReport], total: tuple[float, float]) -> str:
    rows = "".join(
        _release_row(step, row, share)
        for step, report in reports.items()
        for row, share in zip(report.rows, report.shares, strict=True)
    )
    notes = dict.fromkeys(note for report in reports.values() for note in report.notes)
    for report in reports.values():
        if report.sampler == "float":
            notes["Floating-point noise: open to attacks on low-order digits."] = None
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    head = "".join(
        f'<th scope="col"{kind}>{name}</th>'
        for name, kind in [
            ("Step", ""),
            ("Release", ""),
            ("Noise", ""),
            *(
                (name, ' class="number"')
                for name in ("Sensitivity", "σ", "μ", "ε", "Uses", "Share")
            ),
        ]
    )
    return (
        '<section><h2>Privacy report</h2><div class="scroll"><table class="report">'
        "<caption>Every point at which data became public. Sensitivity: how far one replacement "
        "moves the statistic. σ: standard deviation of the noise. The cost of each use is μ = "
        "sensitivity / σ for Gaussian noise, ε for pure noise. Share: how much of its step's "
        f"budget a release took in all its uses, {_shares_of(reports)}.</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
        f'<tfoot><tr><th scope="row" colspan="3">Total of all steps</th>'
        '<td class="number" colspan="6">'
        f"ε = {total[0]:.6g} at δ = {total[1]:.3g}</td></tr></tfoot></table></div>"
        + (f"<ul>{items}</ul>" if items else "")
        + "</section>"
    )


def _shares_of(reports: Mapping[str, PrivacyReport]) -> str:
    kinds = {report.shares_of for report in reports.values()}
    if kinds == {"mu^2"}:
        return "as a share of μ²"
    return "as a share of ε" if kinds == {"epsilon"} else "of μ² or, if its noise is pure, of ε"


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


def _several(unit: str) -> str:
    """Name of several units, escaped."""
    one = "group of "
    return escape(f"groups of {unit.removeprefix(one)}" if unit.startswith(one) else f"{unit}s")


def _protection_section(reports: Mapping[str, PrivacyReport], total: tuple[float, float]) -> str:
    if _why_not_private(reports, total):
        return ""
    report = next(iter(reports.values()))
    unit, units = escape(report.unit), _several(report.unit)
    public = "The settings of the run: they are public."
    if report.neighbours != "add_remove":
        public = f"The number of {units} and the settings of the run: they are public."
    return f"""<section class="columns"><div><h2>What is protected</h2><ul>
<li>Every single {unit}: whether it says one thing or any other.</li>
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
    if not facts:
        return ""
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(str(value))}</dd></div>"
        for name, value in facts.items()
    )
    return f"<section><h2>Settings</h2><dl>{items}</dl></section>"


def _snippet_section(snippet: str | None) -> str:
    if not snippet:
        return ""
    return (
        "<section><h2>Do the same in Python</h2><p>Noise is drawn afresh each time, so topics "
        "differ a little from run to run, and every run on private data spends budget.</p>"
        f"<pre><code>{escape(snippet)}</code></pre></section>"
    )


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" \
content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""

_STYLE = """
:root { --ink: #1f2933; --soft: #52606d; --line: #d9dfe5; --paper: #fff; --tint: #f3f6f9;
  --bar: #2f6690; --edge: #2f6690; --alarm: #a61b1b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaee; --soft: #a8b3bd; --line: #3a4550;
  --paper: #14191e; --tint: #1e262d; --bar: #6cabd8; --edge: #6cabd8; --alarm: #ff8f8f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
main { max-width: 66rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; }
p { max-width: 44rem; margin: .5rem 0; }
.box { border-left: 4px solid var(--edge); background: var(--tint); padding: .5rem 1rem;
  margin: 1rem 0; max-width: 44rem; }
.box p { margin: .25rem 0; }
ul.box { padding-left: 2rem; } .hidden { color: var(--alarm); word-spacing: 0; }
.alarm { border-color: var(--alarm); } .alarm strong { color: var(--alarm); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; color: var(--soft); font-size: .9rem; padding-bottom: .5rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .9rem .45rem 0;
  border-bottom: 1px solid var(--line); }
thead th, small { color: var(--soft); } thead th { font-size: .85rem; }
tfoot td, tfoot th { border-bottom: 0; font-weight: 700; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.report { font-size: .92rem; } .report td:nth-child(2) { min-width: 14rem; }
.weight { white-space: nowrap; font-variant-numeric: tabular-nums; }
.words { overflow-wrap: anywhere; min-width: 14rem; word-spacing: .2em; }
.share { display: inline-block; min-width: 3.6rem; text-align: right; }
.bar { display: inline-block; width: 6rem; height: .7rem; margin-right: .6rem;
  background: var(--tint); }
.bar i { display: block; height: 100%; background: var(--bar); }
figure { margin: 0; background: #fff; border: 1px solid var(--line); border-radius: 4px;
  padding: .75rem; }
img { display: block; width: 100%; height: auto; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr));
  gap: 0 2.5rem; }
ul { padding-left: 1.2rem; margin: .5rem 0; } li { margin: .3rem 0; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr));
  gap: .6rem 1.5rem; }
dt { color: var(--soft); font-size: .85rem; } dd { margin: 0; overflow-wrap: anywhere; }
pre { background: var(--tint); padding: 1rem; overflow-x: auto; font-size: .88rem;
  line-height: 1.5; border-radius: 4px; }
@media print { body { background: #fff; color: #000; font-size: 10pt; }
  main { padding: 0; max-width: none; } pre { white-space: pre-wrap; }
  .scroll { overflow: visible; }
  section, tr, figure { break-inside: avoid; }
  .bar, .bar i { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
