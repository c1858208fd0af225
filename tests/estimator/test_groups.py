"""Steps of one pipeline protect the same unit."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sktensor_dp import (
    BudgetAccountant,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateKFold,
    PrivateOneHotEncoder,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    check_inputs,
    make_private_scorer,
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
        (OWNERS, None, "replace_one", r"spent .* call fit\(.*, groups=groups\)"),
        (None, OWNERS, "replace_one", r"spent .* call fit\(.*\(texts\)\);"),
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


FRAME = pd.DataFrame(np.ones((1200, 3), int), columns=["a", "b", "c"])
CELLS = np.argwhere(np.ones((30, 8)))
SIZES = {"n_samples": 37, "n_features": 3}
SCORED = PrivateSpectralLDA(1, epsilon=np.inf)
LABELLED = {
    "texts": lambda X, labels, **paid: PrivateCountVectorizer(
        max_words_per_document=2, **paid).fit(X["a"].map(lambda _: "cats"), groups=labels),
    "categories": lambda X, labels, **paid: PrivateOneHotEncoder(**paid).fit(
        X.astype(str), groups=labels),
    "counts": lambda X, labels, **paid: PrivateSpectralLDA(1, **paid).fit(X, groups=labels),
    "batches": lambda X, labels, **paid: PrivateSpectralLDA(1, **paid).partial_fit(
        X, groups=labels),
    "chunks": lambda X, labels, **paid: PrivateSpectralLDA(1, **paid).fit_chunks(
        [(X, labels)], **SIZES),
    "samples": lambda X, labels, **paid: PrivateGaussianMixture(1, data_norm=2.0, **paid).fit(
        X, groups=labels),
    "stream": lambda X, labels, **paid: PrivateTensorPowerMethod(
        1, data_norm=2.0, perturbation="stream", **paid).fit(X, groups=labels),
    "search": lambda X, labels, **paid: PrivateSearchCV(
        PrivateSpectralLDA(1), {}, n_trials=1, anyway=True, **paid).fit(X, groups=labels),
    "score": lambda X, labels, **paid: make_private_scorer(
        "log_likelihood_per_token", **paid)(SCORED.fit(X), X, groups=labels),
    "folds": lambda X, labels, **paid: next(PrivateKFold(2).split(X, groups=labels)),
    "check": lambda X, labels, **paid: check_inputs({"one": X["a"] == 1}, groups=labels, **paid),
    "folded in": lambda X, labels, **paid: PrivateCPCompletion(
        0, bounds=(0, 7), shape=(30, 8), unit_mode=0, epsilon=np.inf).fit(
            CELLS, CELLS[:, 1]).fold_in(X[["a", "b"]], labels / 6),
    "values": lambda X, labels, **paid: PrivateCPCompletion(
        1, bounds=(0, 40), shape=(2, 2), unit_mode=0, **paid).fit(X[["a", "b"]], labels),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*(topics asked for|above 1 in|deviations from)")
@pytest.mark.parametrize("door", LABELLED)
def test_labels_in_another_order_are_refused_before_the_charge(door):
    owners, budget = pd.Series(OWNERS % 37, name="owner"), BudgetAccountant(9.0)
    with pytest.raises(ValueError, match=r"Pass (groups|y).reindex\(X.index\)"):
        LABELLED[door](FRAME, owners.sort_values(), epsilon=9.0, accountant=budget)
    assert budget.total()[0] == 0
    sessions = pd.MultiIndex.from_arrays([FRAME.index, FRAME.index])  # an index of another kind
    LABELLED[door](FRAME.set_axis(sessions), owners, epsilon=9.0, accountant=budget)
