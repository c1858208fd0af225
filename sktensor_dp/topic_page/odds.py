"""What an epsilon means, in odds before and after reading."""

import math

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


def odds_section(epsilon: float, delta: float, unit: str) -> str:
    """Table with a small picture in each row; `unit` is escaped."""
    rows = "".join(_row(before, *odds_after(before, epsilon)) for before in BEFORE)
    return f"""<section><h2>What ε = {epsilon:.4g} means</h2>
<p>Suppose that somebody knows everything about all the others here, and suspects something of
one {unit}. This page can make them surer, or less sure, but only so far:</p>
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
