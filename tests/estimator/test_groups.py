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
    fit_in_chunks,
    fit_whole,
    model,
    options_of,
    persons,
    public_state,
    seeded,
)

from sktensor_dp import (
    BudgetAccountant,
    PrivateCountVectorizer,
    PrivateSearchCV,
    PrivateSpectralLDA,
)
from sktensor_dp.privacy.calibration import gaussian_mu
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
    X = data(np.random.default_rng(seed), kind, mode)
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
    X = data(np.random.default_rng(seed), kind, mode)
    for name in (int, "p{:05d}".format):
        groups = labels_dealt_to(places, FIRST_KEY, name)

        def fit(of, groups=groups):
            if of is None and "stream" in mode:
                NoiseSource()  # as groups have one for their coins
            return model(kind, **options_of(kind, mode)).fit(X, groups=of)

        plain, grouped = (seeded(partial(fit, of), seed) for of in (None, groups))
        assert public_state(plain) == public_state(grouped)
        assert grouped.privacy_report_.unit == "person"


# Replay in tests/contracts shows that nothing tells their number. Here chunks are batches of a
# stream; topics without noise are computed from the data.
WHOLE = [one for one in MODES if "stream" not in one[1]]


@pytest.mark.parametrize(("kind", "mode"), WHOLE)
def test_straddling_groups_are_fitted_as_whole_ones(kind, mode, seed):
    """In chunks cut anywhere; up to the last digits, as rows are added up in another order."""
    rng = np.random.default_rng(seed)
    X, groups = persons(rng, kind, mode, 20)
    # Before noise all seeds are well: with it a digit could decide what is found.
    options = {**options_of(kind, mode), "epsilon": 1e6}
    whole, chunked = (
        seeded(lambda f=f: f(model(kind, **options), (X, groups)), seed)
        for f in (fit_whole, fit_in_chunks)
    )
    for name in ("components_", "weights_" if kind == "components" else "topic_prior_"):
        np.testing.assert_allclose(
            getattr(chunked, name), getattr(whole, name), rtol=1e-4, atol=1e-6
        )
    assert public_state(whole)[0] == public_state(chunked)[0]
    assert whole.privacy_report_ == chunked.privacy_report_


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


@every_mode
def test_reports_and_ledgers_count_groups(kind, mode, seed):
    rng, payer = np.random.default_rng(seed), BudgetAccountant(1.0, 1e-6)
    X, groups = persons(rng, kind, mode, 30)
    options = {**options_of(kind, mode), "accountant": payer}
    if "exact" in mode:
        options["accountant"] = None
    fitted = model(kind, **options).fit(X, groups=groups)
    report = fitted.privacy_report_
    if "stream" in mode:
        assert "disjoint" in report.notes[-1]
        assert report.rows[0].mu == pytest.approx(gaussian_mu(options.get("epsilon", 1.0), 1e-6))
    assert (report.unit, report.n_units) == ("person", 40)
    assert {entry.unit for entry in payer.entries} <= {"person"}
    if "exact" not in mode:
        assert "replacing one person of 40" in str(report)
        assert payer.entries
