"""Differences of shares between groups, and changes over time, lie in their intervals."""

import math
import re

import numpy as np
import pytest

from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.spectral_lda.share_differences import are_dates, clear_differences

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
    """Differences to the whole, and the change from first to last along a line."""
    places = np.arange(4) - 1.5
    return shares - sizes / sizes.sum() @ shares, 3 * places / (places @ places) @ shares


@pytest.mark.parametrize("sampling", [True, False])
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
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
        pairs = zip(
            contrasts(truth, sizes),
            (found.differences(0.9, sampling=sampling), found.trend(0.9, sampling=sampling)),
            strict=True,
        )
        for true, (_, low, high) in pairs:
            inside += [*((low <= true) & (true <= high)).flat]
    assert 0.85 < np.mean(inside) < 0.97


def test_clear_differences_are_seldom_found_where_there_are_none(seed):
    rng, claims = np.random.default_rng(seed), []
    for _ in range(40):
        X, group = draw(rng, 3000, 0.0)
        found = LDA.shares_by(X, np.array(VALUES)[group], VALUES, epsilon=4.0)
        claims.append("Differ clearly from all groups" in clear_differences(found))
    assert np.mean(claims) < 0.25
    assert "No topic differs clearly over time." in clear_differences(found)


def test_what_differs_is_said_and_stands_in_the_table(seed, monkeypatch):
    monkeypatch.setattr("sktensor_dp.spectral_lda.share_differences.LISTED", 2)
    X, group = draw(np.random.default_rng(seed), 20_000, 0.3)
    found = LDA.shares_by(X, np.array(VALUES)[group], VALUES, epsilon=8.0)
    growing, said = int(np.flatnonzero(ORDER == 0)[0]) + 1, clear_differences(found)
    assert f"topic {growing} from first to last (+" in said.split("over time: ")[1]
    assert said in str(found)
    table = found.table().set_index(["group", "topic"])
    first = table.loc[VALUES[0], growing]
    assert first.difference_low < first.difference < first.difference_high < 0 < first.trend_low
    assert table.trend.groupby("topic").nunique().eq(1).all()
    # Columns mark what print lists, of which it names the first few alone.
    of_groups, over_time = said.split("over time: ")
    more = re.search(r"\), and (\d+) more \(all are marked in column difference_clear", of_groups)
    assert table.difference_clear.sum() == 2 + int(more[1])
    marked = table.trend_clear.groupby("topic").all()
    assert {*map(int, re.findall(r"topic (\d)", over_time))} <= {*marked.index[marked]}
    clear = table[table.difference_clear]
    assert ((clear.difference_low > 0) | (clear.difference_high < 0)).all()
    # Of names there is no first one, and of hidden groups no difference.
    names = ["north", "south", "east", "never"]
    found = LDA.shares_by(X, np.array(names)[np.minimum(group, 2)], names, epsilon=8.0)
    assert "over time" not in clear_differences(found)
    difference, low, high = found.differences()
    # The group without texts is hidden but in one of 40 fits, by noise.
    assert not found.hidden_[:3].any()
    for numbers in (difference, low, high):
        assert np.array_equal(np.isnan(numbers).any(axis=1), found.hidden_)
    assert np.isnan(found.table().trend).all()
    assert np.isfinite(found.trend()).all()  # in the order of the values
    with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
        found.differences(1.0)


def test_dates_are_years_months_or_days_in_order():
    assert are_dates([2023, 2024])
    assert are_dates(["2025-9", "2025-10"])
    assert not are_dates(["2025-10", "2025-09"])
    assert not are_dates([1, 2, 3])
    assert not are_dates(["2025-01", "later"])
