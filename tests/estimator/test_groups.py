"""Fits of groups: of single rows they are those of rows, and no number of rows is shown."""

import pickle
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
import pytest
from dealt_labels import FIRST_KEY, labels_dealt_to
from sklearn.base import clone
from small_groups import (
    MODES,
    D,
    N,
    data,
    every_mode,
    model,
    options_of,
    public_state,
    seeded,
)

from sktensor_dp import (
    BudgetAccountant,
    PrivateCountVectorizer,
    PrivateSearchCV,
    PrivateSpectralLDA,
)
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.parts import public_ranks

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:noise is seeded"),
]

# Groups of one row


def fit_chunks(estimator: Any, X: np.ndarray, labels: Any) -> Any:
    cuts = np.split(np.arange(N), [70])
    source = [X[rows] if labels is None else (X[rows], labels[rows]) for rows in cuts]
    return estimator.fit_chunks(source, n_samples=N, n_features=D)


def fit_batches(estimator: Any, X: np.ndarray, labels: Any) -> Any:
    for rows in np.split(np.arange(N), 3):
        estimator.partial_fit(X[rows], groups=None if labels is None else labels[rows])
        estimator = pickle.loads(pickle.dumps(estimator))
    return estimator


BATCHES = [("topics", "whitened", fit_batches), ("components", "stream", fit_batches)]


@pytest.mark.parametrize(
    ("kind", "mode", "fit"), [*((*mode, fit_chunks) for mode in MODES), *BATCHES]
)
def test_rows_in_parts_with_a_label_each_are_rows(kind, mode, fit, seed):
    X = data(np.random.default_rng(seed), kind)
    plain, grouped = (
        seeded(lambda of=of: fit(model(kind, **options_of(kind, mode)), X, of), seed)
        for of in (None, np.arange(N))
    )
    assert public_state(plain) == public_state(grouped)


@every_mode
def test_groups_of_single_rows_are_rows(kind, mode, seed, secret_integers):
    """In batches as well, once groups are dealt to them as rows are."""
    secret_integers(lambda _, size: FIRST_KEY if size == 4 else None)
    places = public_ranks(N, 0)
    X = data(np.random.default_rng(seed), kind)
    for name in (int, "p{:05d}".format):
        groups = labels_dealt_to(places, FIRST_KEY, name)

        def fit(of, groups=groups):
            if of is None and "stream" in mode:
                NoiseSource()  # as groups have one for their coins
            return model(kind, **options_of(kind, mode)).fit(X, groups=of)

        plain, grouped = (seeded(partial(fit, of), seed) for of in (None, groups))
        assert public_state(plain) == public_state(grouped)
        assert grouped.privacy_report_.unit == "person"


# Steps of one pipeline

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
        (OWNERS, None, "replace_one", "groups must be given to both"),
        (None, OWNERS, "replace_one", "groups must be given to both"),
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


# Reports and ledgers
