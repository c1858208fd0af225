"""Differences of shares between groups, and changes over time, lie in their intervals."""

import math
import re

import numpy as np
import pytest

from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.spectral_lda.share_differences import OTHERS, are_dates, are_in_order

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
K, VALUES = 3, ["2025-01", "2025-02", "2025-03", "2025-04"]
TEXTS = np.kron(np.eye(K), [[6, 3]])  # of one topic each, which nobody can mistake
LDA = PrivateSpectralLDA(K, doc_topic_prior=0, epsilon=math.inf)
LDA.fit(np.repeat(TEXTS, 500, axis=0))
ORDER = LDA.transform(TEXTS).argmax(axis=0)  # kind of text of each topic of the model
SIZES = np.array([0.1, 0.2, 0.3, 0.4])  # of the groups


def shares_of_groups(change):
    """Shares of the kinds of text in each group; the first kind grows by `change` in all."""
    first = 0.2 + change * np.linspace(0, 1, 4)
    return np.column_stack([first, 0.3 * np.ones(4), 0.7 - first])


def draw(rng, n, change):
    group = rng.choice(4, n, p=SIZES)
    kind = (rng.random((n, 1)) > shares_of_groups(change)[group].cumsum(axis=1)).sum(axis=1)
    return TEXTS[np.minimum(kind, K - 1)], group


def contrasts(shares, sizes):
    """Differences to all others and to the second, and the change along a line."""
    places, others = np.arange(4) - 1.5, 1 - np.eye(4)
    to_others = shares - (others * sizes) @ shares / (others @ sizes)[:, None]
    to_second = (shares - shares[1])[[0, 2, 3]]
    return to_others, to_second, 3 * places / (places @ places) @ shares


@pytest.mark.parametrize(
    ("epsilon", "sampling"),
    [(1.0, True), (8.0, False),
     *(pytest.param(*case, marks=pytest.mark.nightly) for case in ((1.0, False), (8.0, True)))],
)  # fmt: skip
def test_differences_lie_in_their_intervals(epsilon, sampling, seed):
    rng, inside = np.random.default_rng(seed), []
    for _ in range(60):
        X, group = draw(rng, 3000, 0.15)
        found = LDA.shares_by(X, np.array(VALUES)[group], VALUES, epsilon=epsilon)
        truth, sizes = shares_of_groups(0.15)[:, ORDER], SIZES
        if not sampling:  # of the texts that were drawn
            each = LDA.transform(X)
            truth = np.array([each[group == one].mean(axis=0) for one in range(4)])
            sizes = np.bincount(group, minlength=4)
        given = {"level": 0.9, "sampling": sampling}
        to_second = np.array(found.differences(to=VALUES[1], **given))[:, [0, 2, 3]]
        of_fit = found.differences(**given), to_second, found.trend(**given)
        for true, (_, low, high) in zip(contrasts(truth, sizes), of_fit, strict=True):
            inside += [*((low <= true) & (true <= high)).flat]
    assert 0.85 < np.mean(inside) < 0.97


def test_clear_differences_are_seldom_found_where_there_are_none(seed):
    rng, claims = np.random.default_rng(seed), []
    for _ in range(40):
        X, group = draw(rng, 3000, 0.0)
        found = LDA.shares_by(X, np.array(VALUES)[group], VALUES, epsilon=4.0)
        claims.append(found.difference_table().groupby("compared").clear.any()[["pair", "trend"]])
    assert (np.mean(claims, axis=0) < 0.25).all()
    assert ("No topic differs clearly; those not found may. Marks" in str(found)) is not claims[
        -1
    ].any()


def test_trends_and_differences_of_groups_are_families_of_marks_of_their_own(seed):
    X, group = draw(np.random.default_rng(seed), 3000, 0.15)
    found = LDA.shares_by(X, np.array(VALUES)[group], VALUES, epsilon=4.0)
    families = {"trend": 1 * K, "pair": 6 * K}
    for kind, n in families.items():
        level = {"level": 1 - 0.1 / n}  # Bonferroni
        marked, wider = (
            table[table.compared == kind]
            for table in (found.difference_table(), found.difference_table(**level))
        )
        np.testing.assert_array_equal(marked.clear, (wider.low > 0) | (wider.high < 0))
    assert "all 3 trends together: an interval without 0 and without ! may be" in str(found)
    of_words = LDA.shares_by(X, np.array([*"abcd"])[group], [*"abcd"], epsilon=4.0)
    assert "all 18 differences together: an interval without 0 and" in str(of_words)


def test_each_two_of_few_groups_are_compared_with_the_same_numbers_everywhere(seed):
    X, group = draw(np.random.default_rng(seed), 20_000, 0.3)
    names = ["north", "south", "east"]
    by = np.array(names)[np.minimum(group, 2)]
    for values in (names[:2], names, [*names, "never"]):
        found = LDA.shares_by(X, by, values, epsilon=8.0)
        table, said = found.difference_table(), str(found)
        n = len(values)
        assert len(table) == K * n * (n - 1) // 2
        assert {*table.compared} == {"pair"}
        for one in table.itertuples():
            row, topic = values.index(one.group), one.topic - 1
            ends = [part[row, topic] for part in found.differences(to=one.other_group)]
            np.testing.assert_array_equal((one.difference, one.low, one.high), ends)
            cell = f"{one.low:+.1%} to {one.high:+.1%}{'!' * one.clear}"
            assert f"{one.group} minus {one.other_group}" in said
            # Nothing was written in one group, which is hidden but in one of 40 fits, by noise.
            assert cell in said or np.isnan(one.low)
            assert np.isnan(one.low) == found.hidden_[[row, values.index(one.other_group)]].any()
    # Of two groups that is the gap, which differences to all others have with either sign.
    gap = LDA.shares_by(X, by, names[:2], epsilon=8.0)
    of_others, to_first = (np.array(gap.differences(to=to)) for to in (None, "north"))
    np.testing.assert_allclose(of_others[:, 1], to_first[:, 1])
    np.testing.assert_allclose(of_others[:, 0], -of_others[[0, 2, 1], 1])
    truth = np.diff(shares_of_groups(0.3)[:2], axis=0)[0, ORDER]
    assert (np.abs(gap.shares_[1] - gap.shares_[0] - of_others[0, 1]) < 1e-12).all()
    assert (np.abs(of_others[0, 1] - truth) < 0.06).all()
    for wrong in ({"level": 1.0}, {"to": "west"}):
        with pytest.raises(ValueError, match="must be"):
            gap.differences(**wrong)
    with pytest.raises(ValueError, match="a trend needs values in order"):
        gap.trend()
    alone = LDA.shares_by(X, by, names[:1], epsilon=8.0)
    assert not len(alone.difference_table())
    assert "differs clearly" not in str(alone)


def test_many_groups_are_compared_with_all_others_and_dates_have_a_trend(seed):
    X, group = draw(np.random.default_rng(seed), 20_000, 0.3)
    days = [f"2025-01-{day}" for day in range(1, 9)]
    found = LDA.shares_by(X, np.array(days)[2 * group], days[::2], epsilon=8.0)
    table, growing = found.difference_table(), int(np.flatnonzero(ORDER == 0)[0])
    trend = table[table.compared == "trend"].reset_index()
    assert (trend.group[0], trend.other_group[0]) == ("2025-01-7", "2025-01-1")
    np.testing.assert_allclose(trend[["difference", "low", "high"]].T, found.trend())
    assert trend.clear[growing]
    assert trend.low[growing] > 0
    assert "minus" not in str(found)  # the trend says it
    n_clear = int(
        table[table.compared == "pair"].groupby(["group", "other_group"]).clear.any().sum()
    )
    clear = f" ({n_clear} with a clear difference)" * bool(n_clear)
    assert f"6 comparisons{clear} not shown here are in topic" in " ".join(str(found).split())
    of_days = LDA.shares_by(X, np.array(days)[2 * group], days, epsilon=8.0)
    many = of_days.difference_table()
    assert {*many.compared} == {"others", "trend"}
    assert of_days.hidden_[-1]
    assert many.group[many.compared == "trend"].iloc[0] == "2025-01-7"  # the last that can be seen
    assert {*many.other_group[many.compared == "others"]} == {OTHERS}
    of_numbers = LDA.shares_by(X, group, range(8), epsilon=8.0)
    clear = of_numbers.difference_table().query("clear")
    n_rows = clear.group.nunique()  # of more than six the largest differences alone are shown
    shown = re.findall(f"(.) minus {OTHERS}", str(of_numbers))
    assert (len({*shown}) == n_rows) if n_rows <= 6 else len(shown) == min(len(clear), 12)
    if n_rows > 6:
        assert f"The largest of {len(clear)} clear differences; all are in" in str(of_numbers)
        first = clear.assign(sure=clear[["low", "high"]].abs().min(axis=1)).nlargest(1, "sure")
        (low, high, name, topic), *_ = first[["low", "high", "group", "topic"]].to_numpy()
        cell = f"{low:+.1%} to {high:+.1%}!"
        assert re.search(
            rf"\n{re.escape(cell)} +{name} minus {OTHERS}, topic {topic}\n", str(of_numbers)
        )
    for line in str(of_days).splitlines():
        assert len(line) <= 80 or "% to" not in line  # a terminal's width
    of_others = many.low[many.compared == "others"].to_numpy().reshape(-1, K)
    np.testing.assert_array_equal(np.isnan(of_others).all(axis=1), of_days.hidden_)


def test_dates_are_years_months_or_days_in_order():
    assert are_dates([2023, 2024])
    assert are_dates(["2025-9", "2025-10"])
    assert not are_dates(["2025-10", "2025-09"])
    assert not are_dates([1, 2, 3])
    assert not are_dates(["2025-01", "later"])


def test_dates_and_numbers_that_rise_are_in_order():
    for values in (
        ["2025-9", "2025-10"],
        [1, 2, 3],
        ["18-29", "30-44", "60+"],
        ["0.1 mg", "0.2 mg"],
    ):
        assert are_in_order(values)
    for values in (["men", "women"], [1, 3, 2], [1, 1], ["18-29", "older"]):
        assert not are_in_order(values)
