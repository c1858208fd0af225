"""Steps of one pipeline protect the same unit."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

from sktensor_dp import (
    BudgetAccountant,
    PrivateCountVectorizer,
    PrivateSearchCV,
    PrivateSpectralLDA,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:noise is seeded"),
]

TEXTS, OWNERS = ["cats dogs", "dogs birds"] * 600, np.repeat(np.arange(400), 3)
KINDS = {
    "memory": lambda words, groups: words.fit_transform(TEXTS, groups=groups),
    "later": lambda words, groups: words.fit(TEXTS, groups=groups).transform(TEXTS),
    "dask": lambda words, groups: words.fit(TEXTS, groups=groups).transform(
        da.from_array(TEXTS, 600)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("first", "second", "neighbours", "said"),
    [
        (OWNERS, None, "replace_one", "by a vocabulary fitted with them"),
        (None, OWNERS, "replace_one", "by a vocabulary fitted without them"),
        (None, None, "add_remove", "neighbours must be 'replace_one'"),
        (OWNERS, OWNERS, "replace_one", None),
        (None, None, "replace_one", None),
    ],
)
def test_the_next_fit_refuses_another_unit_before_its_charge(kind, first, second, neighbours, said):
    counts = KINDS[kind](PrivateCountVectorizer(max_words_per_document=2, epsilon=9.0), first)
    budget = BudgetAccountant(9.0)
    topics = PrivateSpectralLDA(1, neighbours=neighbours, accountant=budget)
    others = counts.copy() if kind == "memory" else None  # loses the mark, as other data have none
    n = {}
    if kind == "dask":
        second = None if second is None else da.from_array(second, 600)
        n = {"n_samples": len(TEXTS) if second is None else 400}
        n = {} if neighbours == "add_remove" else n
    if said is None:
        assert topics.fit(counts, groups=second, **n).privacy_report_.rows
        return
    with pytest.raises(ValueError, match=said):
        topics.fit(counts, groups=second, **n)
    if kind != "dask":
        search = PrivateSearchCV(clone(topics).set_params(accountant=None), {}, accountant=budget)
        with pytest.raises(ValueError, match=said):
            search.fit(counts, groups=second)
    assert budget.entries == ()
    if others is not None:
        assert topics.fit(others, groups=second).privacy_report_.rows
