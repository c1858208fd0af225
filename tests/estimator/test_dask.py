"""Dask collections give what rows at hand give; nothing is computed before the charge."""

import logging
import pickle
from functools import partial
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from person_entries import BOUNDS, SHAPE, entries
from small_corpora import INF, tiny

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)
from sktensor_dp.data.partitions import FAN_IN, DaskPartitions

N, D, SECRET = 700, 6, 987654321
CHUNKS = (90, 1, 300, 309)

pytestmark = tiny


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def documents(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).poisson(1.0, (N, D))


def samples(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((N, D)) + 1


def lazy(X: Any, chunks: tuple[int, ...] = CHUNKS) -> Any:
    return da.from_array(X, chunks=(chunks, X.shape[1:]))


def frame(X: Any, n: int = 3) -> Any:
    return dd.from_pandas(pd.DataFrame(X, columns=list("abcdef")), npartitions=n, sort=False)


def unknown(X: Any) -> Any:
    """Rows that only computing counts."""
    blocks = [dask.delayed(part) for part in np.split(X, np.cumsum(CHUNKS)[:-1])]
    shapes = [da.from_delayed(block, (np.nan, D), dtype=X.dtype) for block in blocks]
    return da.concatenate(shapes, allow_unknown_chunksizes=True)


topics = partial(PrivateSpectralLDA, 2, n_refinements=2, random_state=0)
components = partial(PrivateTensorPowerMethod, 2, data_norm=4.0, random_state=0)


def never() -> Any:
    raise AssertionError("it was computed")


def unread(*shape: float) -> Any:
    return da.from_delayed(dask.delayed(never)(), shape, dtype=float)


def lazy_entries(X: Any, y: Any) -> tuple[Any, Any]:
    return lazy(X, (200, 1, 399, 300)), da.from_array(y, chunks=250)


COUNTED, STREAM = (
    partial(topics, neighbours="add_remove"),
    partial(components, perturbation="stream"),
)
words = partial(PrivateCountVectorizer, max_words_per_document=4)
slices = partial(PrivateCPCompletion, 1, bounds=BOUNDS, shape=SHAPE, unit_mode=0)
ROWS, UNKNOWN, TRIPLES = unread(N, D), unread(np.nan, D), (unread(np.nan, 3), unread(np.nan))
CELLS, VALUES = entries()
TEXTS = ["some words", f"other {SECRET}"] * (N // 2)
BAG = db.from_sequence(TEXTS, npartitions=4)
FEW = {"groups": np.arange(5), "n_samples": 5}
REFUSED: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "unknown number": (topics, [UNKNOWN], {}, "n_samples must be given: the number of rows"),
    "another number": (topics, [ROWS], {"n_samples": N + 1}, f"is {N + 1}, but there are {N}"),
    "no number": (topics, [ROWS], {"n_samples": 0}, "n_samples must be an int >= 1"),
    "private number": (COUNTED, [ROWS], {"n_samples": N}, "n_samples must not be given"),
    "groups": (topics, [ROWS], {"groups": np.arange(N) % 9}, "given: the number of groups"),
    "one group": (topics, [ROWS], {"groups": np.ones(N), "n_samples": 1}, "two different labels"),
    "few labels": (topics, [ROWS], FEW, "one label for each row"),
    "weights": (topics, [ROWS], {"sample_weight": np.ones(N)}, "takes no sample_weight"),
    "at hand": (topics, [documents()], {"n_samples": N}, "takes no n_samples: rows that are at ha"),
    "stream": (STREAM, [ROWS], {}, "batches that stand for all rows to partial_fit"),
    "dates": (
        topics,
        [frame(documents()).astype("datetime64[ns]")],
        {"n_samples": N},
        "dates and times are none",
    ),
    "text": (topics, [lazy(documents().astype(str))], {"n_samples": N}, "got text"),
    "three axes": (topics, [da.zeros((4, 3, 2))], {"n_samples": N}, "with 3 axes"),
    "a bag of columns": (topics, [da.zeros(4)], {"n_samples": N}, "with 1 axes"),
    "no shape": (slices, TRIPLES, {"shape": None}, "'shape' parameter must be given"),
    "another shape": (slices, (UNKNOWN, TRIPLES[1]), {}, "shape must hold one int >= 1 for each"),
    "no such mode": (slices, TRIPLES, {"unit_mode": 3}, r"unit_mode must be an int in \[0, 2\]"),
    "few values": (slices, lazy_entries(CELLS, VALUES[:-1]), {}, "y must hold one value for each"),
    "columns": (slices, lazy_entries(CELLS, VALUES[:, None]), {}, "y must hold one value"),
    "no values": (slices, (TRIPLES[0], None), {}, "requires y to be passed"),
    "categories": (
        slices,
        lazy_entries(CELLS.astype(str), VALUES),
        {},
        "for names give row_names=",
    ),
    "unknown texts": (words, [BAG], {}, "n_samples must be given: the number of documents"),
    "texts at hand": (words, [TEXTS], {"n_samples": N}, "takes no n_samples"),
    "two columns": (words, [frame(documents())], {"n_samples": N}, "Pass the column of the texts"),
    "values of text": (slices, lazy_entries(CELLS, VALUES.astype(str)), {}, "got text; encode it"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_neither_charged_nor_computed(case):
    build, data, given, message = REFUSED[case]
    budget = BudgetAccountant(1.0, 1e-6)
    of_model = {name: given[name] for name in ("shape", "unit_mode") if name in given}
    model = build(accountant=budget, **of_model)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(*data, **{name: given[name] for name in given if name not in of_model})
    assert budget.entries == ()


@pytest.mark.parametrize(("build", "data"), [(topics, [ROWS]), (slices, TRIPLES)])
def test_nothing_is_computed_before_the_charge_or_until_it_is_asked_for(build, data):
    with pytest.raises(BudgetError):
        build(accountant=BudgetAccountant(0.5, 1e-6)).fit(*data)
    if build is topics:
        model = topics(epsilon=INF, accountant=BudgetAccountant()).fit(documents())
        model.score_samples(ROWS)
        assert pickle.dumps(model.transform(ROWS))  # as it goes to workers, which have no ledger


def raising(block: np.ndarray) -> np.ndarray:
    raise KeyError(f"row {block.flat[0]} {SECRET}")


def one_block(X: np.ndarray) -> Any:
    return da.from_delayed(dask.delayed(X), (N, D), dtype=float)


def fewer_values() -> tuple[Any, Any]:
    whole = lazy_entries(CELLS, VALUES)[0].rechunk((len(CELLS), 3))
    return whole, da.from_delayed(dask.delayed(VALUES[1:]), (len(CELLS),), dtype=float)


def raising_entries() -> tuple[Any, Any]:
    X, y = lazy_entries(CELLS, VALUES)
    return X, y.map_blocks(raising, meta=np.zeros(0))


def failing(text: str) -> list[str]:
    raise KeyError(text)


NO_TEXTS, MORE = db.from_sequence([*TEXTS, 5], npartitions=4), {"n_samples": N + 5}
FAULTS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "fractions": (topics, [lazy(documents() + 0.5 * SECRET)], {}),
    "negative": (topics, [lazy(documents() - SECRET)], {}),
    "raises": (topics, [lazy(documents()).map_blocks(raising, meta=np.zeros((0, 0)))], {}),
    "a block of another width": (topics, [one_block(np.full((N, D + 1), SECRET))], {}),
    "fewer rows than told": (topics, [one_block(documents()[1:])], {}),
    "beyond the shape": (slices, lazy_entries(CELLS + SECRET, VALUES), {}),
    "entries below 0": (slices, lazy_entries(CELLS - SECRET, VALUES), {}),
    "entries of fractions": (slices, lazy_entries(CELLS + 0.5, VALUES), {}),
    "not finite": (slices, lazy_entries(CELLS, VALUES + np.inf), {}),
    "entries that raise": (slices, raising_entries(), {}),
    "fewer values than told": (slices, fewer_values(), {}),
    "fewer texts than told": (words, [BAG], MORE),
    "no text": (words, [NO_TEXTS], {"n_samples": N + 1}),
    "an analyzer that raises": (partial(words, analyzer=failing), [BAG], {"n_samples": N}),
}


@pytest.mark.parametrize("case", FAULTS)
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_faults_end_the_fit_with_the_charge_and_show_no_data(case, scheduler, caplog):
    (build, data, given), budget = FAULTS[case], BudgetAccountant(1.0, 1e-6)
    model = build(accountant=budget)
    calls = [partial(model.fit, **given)]
    if case == "raises":  # a score shows no data either
        calls.append(PrivateSpectralLDA(2, epsilon=INF).fit(documents()).score)
    for call in calls:
        with (
            caplog.at_level(logging.DEBUG),
            dask.config.set(scheduler=scheduler),
            pytest.raises((ValueError, TypeError, LookupError, RuntimeError)) as caught,
        ):
            call(*data)
        assert str(SECRET) not in repr(caught.value) + caplog.text
        assert caught.value.__context__ is caught.value.__cause__ is None
    assert budget.total()[0] == pytest.approx(1.0)
    assert [name for name in vars(model) if name.endswith("_")] == []


def test_sums_are_merged_as_a_tree():
    """No task takes more than so many sums, and each partition is asked once."""
    parts = [dask.delayed(np.ones((1, 2)), name=f"part-{n}") for n in range(FAN_IN**2 + 3)]
    asked: list[Any] = []

    class Query:
        def __call__(self, part: Any) -> Any:
            asked.append(part)
            return [1]

        def merge(self, sums: list[list[int]]) -> list[int]:
            assert len(sums) <= FAN_IN
            return [sum(count for one in sums for count in one)]

    assert DaskPartitions(parts).sum(Query()) == [len(parts)] == [len(asked)]  # type: ignore[arg-type, comparison-overlap]


def test_lazy_entries_are_scored_as_others():
    X = np.argwhere(np.ones((30, 20)))
    y = X.sum(axis=1)
    model = PrivateCPCompletion(1, bounds=(0, 50), epsilon=INF).fit(X, y)
    Z = da.from_array(X, chunks=(250, 2))
    assert model.score(Z, da.from_array(y, chunks=100)) == model.score(X, y)


def test_mixtures_take_lazy_rows_with_missing_cells(seed):
    X = samples(seed)
    X[::3, 1] = np.nan
    mixtures = partial(PrivateGaussianMixture, 2, data_norm=4.0, epsilon=INF, random_state=0)
    model, other = mixtures().fit(unknown(X), n_samples=N), mixtures().fit(X)
    np.testing.assert_array_equal(model.predict_proba(lazy(X)).compute(), model.predict_proba(X))
    np.testing.assert_allclose(model.means_, other.means_, atol=1e-4)
    assert model.bic(lazy(X)) == pytest.approx(model.bic(X))


def test_there_may_be_more_partitions_than_persons():
    """Of ids that are text, too: partitions that none is dealt to are empty."""
    X, persons = samples()[:40], np.array([f"person {row % 3}" for row in range(40)])
    model = partial(PrivateGaussianMixture, 1, data_norm=4.0, epsilon=INF, random_state=0)
    ids = dd.from_pandas(pd.Series(persons), npartitions=5, sort=False)
    found = model().fit(frame(X, 5), groups=ids, n_samples=3)
    np.testing.assert_allclose(found.means_, model().fit(X, groups=persons).means_, atol=1e-9)
