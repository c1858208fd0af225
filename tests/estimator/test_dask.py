"""Dask collections give what rows at hand give; nothing is computed before the charge."""

import pickle
from functools import partial
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from small_corpora import INF, tiny

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
)
from sktensor_dp.data.units import gathered, split_by_group
from sktensor_dp.privacy.execution import FAN_IN, DaskPartitions

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


def test_no_partition_sees_other_groups_than_its_own(seed):
    """And every group is whole in one: the same in whatever partition its labels are read."""
    rng, X = np.random.default_rng(seed), documents(seed)
    groups = np.array([f"person {n}" for n in rng.integers(0, 200, N)])
    parts = [
        split_by_group(X[rows], groups[rows].astype(f"U{width}"), 5)
        for rows, width in ((slice(0, 300), 10), (slice(300, N), 40))
    ]
    whole = [gathered([part[place] for part in parts]) for place in range(5)]
    seen = [set(labels.tolist()) for _, labels in whole]
    assert sum(map(len, seen)) == len(np.unique(groups))
    # 200 labels over 5 parts: a part without any has probability 5 (4/5)**200 < 1e-18.
    assert all(seen)
    rows = np.concatenate([rows for rows, _ in whole])
    assert sorted(rows.tolist()) == sorted(X.tolist())


class Counting:
    """Blocks that say when they are computed."""

    def __init__(self, X: np.ndarray) -> None:
        self.X, self.n = X, 0

    def block(self, rows: slice) -> np.ndarray:
        self.n += 1
        return self.X[rows]

    def array(self, sizes: bool = True) -> Any:
        read, parts = dask.delayed(self.block, pure=False, traverse=False), []
        for rows in (slice(0, 300), slice(300, N)):
            length = rows.stop - rows.start if sizes else np.nan
            parts.append(da.from_delayed(read(rows), (length, D), dtype=float))
        return da.concatenate(parts, allow_unknown_chunksizes=True)


STREAM = partial(components, perturbation="stream")
REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "unknown number": ("unknown", {}, "n_samples must be given: the number of rows"),
    "another number": ("rows", {"n_samples": N + 1}, f"n_samples is {N + 1}, but there are {N}"),
    "no number": ("rows", {"n_samples": 0}, "n_samples must be an int >= 1"),
    "private number": ("rows", {"n_samples": N}, "n_samples must not be given"),
    "groups": ("rows", {"groups": np.arange(N) % 9}, "must be given: the number of groups"),
    "one group": ("rows", {"groups": np.ones(N), "n_samples": 1}, "at least two different labels"),
    "few labels": ("rows", {"groups": np.arange(5), "n_samples": 5}, "one label for each row"),
    "weights": ("rows", {"sample_weight": np.ones(N)}, "takes no sample_weight"),
    "at hand": ("at hand", {"n_samples": N}, "takes no n_samples: rows that are at hand"),
    "stream": ("rows", {}, "parts of them that stand for all to partial_fit"),
    "dates": (
        lambda: frame(documents()).astype("datetime64[ns]"),
        {"n_samples": N},
        "dates and times are none",
    ),
    "text": (lambda: lazy(documents().astype(str)), {"n_samples": N}, "got text"),
    "three axes": (lambda: da.zeros((4, 3, 2)), {"n_samples": N}, "with 3 axes"),
    "a bag of columns": (lambda: da.zeros(4), {"n_samples": N}, "with 1 axes"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_neither_charged_nor_computed(case):
    kind, given, message = REFUSED[case]
    source, model = Counting(documents()), STREAM() if case == "stream" else topics()
    if case == "private number":
        model.set_params(neighbours="add_remove")
    if callable(kind):
        X = kind()
    else:
        X = documents() if kind == "at hand" else source.array(kind == "rows")
    budget = BudgetAccountant(1.0, 1e-6)
    with pytest.raises((ValueError, TypeError), match=message):
        model.set_params(accountant=budget).fit(X, **given)
    assert source.n == 0
    assert budget.entries == ()


def test_nothing_is_computed_before_the_charge_or_until_it_is_asked_for():
    source, budget = Counting(documents()), BudgetAccountant(0.5, 1e-6)
    with pytest.raises(BudgetError):
        PrivateSpectralLDA(2, accountant=budget).fit(source.array())
    model = PrivateSpectralLDA(2, epsilon=INF, accountant=BudgetAccountant()).fit(documents())
    shares = model.transform(source.array())
    model.score_samples(source.array())
    assert pickle.dumps(shares)  # as it goes to workers, which have no ledger
    assert source.n == 0
    PrivateSpectralLDA(2, epsilon=0.5, accountant=budget).fit(source.array(False), n_samples=N)
    assert source.n > 0


def raising(block: np.ndarray) -> np.ndarray:
    raise KeyError(f"row {block[0, 0]} {SECRET}")


def one_block(X: np.ndarray) -> Any:
    """An array that is of another shape than it says."""
    return da.from_delayed(dask.delayed(X), (N, D), dtype=float)


FAULTS = {
    "fractions": lambda: lazy(documents() + 0.5 * SECRET),
    "negative": lambda: lazy(documents() - SECRET),
    "a block that raises": lambda: lazy(documents()).map_blocks(raising, meta=np.zeros((0, 0))),
    "a block of another width": lambda: one_block(np.full((N, D + 1), SECRET)),
    "fewer rows than told": lambda: one_block(documents()[1:]),
}


@pytest.mark.parametrize("case", FAULTS)
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_faults_end_the_fit_with_the_charge_and_show_no_data(case, scheduler):
    model = PrivateSpectralLDA(2, accountant=BudgetAccountant(1.0, 1e-6))
    scoring = PrivateSpectralLDA(2, epsilon=INF).fit(documents()).score
    # A score shows no data either.
    for call in (model.fit, scoring) if case == "a block that raises" else (model.fit,):
        with (
            dask.config.set(scheduler=scheduler),
            pytest.raises((ValueError, TypeError, LookupError, RuntimeError)) as caught,
        ):
            call(FAULTS[case]())
        assert str(SECRET) not in repr(caught.value)
        assert caught.value.__context__ is caught.value.__cause__ is None
    assert model.accountant.total()[0] == pytest.approx(1.0)
    assert not hasattr(model, "components_")


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


@pytest.mark.filterwarnings("error")
def test_fit_transform_stays_lazy():
    model = PrivateSpectralLDA(2, epsilon=INF)
    shares = model.fit_transform(unknown(documents()), n_samples=N)
    assert isinstance(shares, da.Array)
    assert shares.compute().shape == (N, model.n_components_)


def test_completions_predict_lazily(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 8, N), rng.integers(0, 5, N)])
    y = X.sum(axis=1) + 0.1 * rng.standard_normal(N)
    model = PrivateCPCompletion(1, bounds=(-1, 13), epsilon=INF).fit(X, y, repeated="distinct")
    Z = da.from_array(X, chunks=(CHUNKS, (2,)))
    assert isinstance(model.predict(Z), da.Array)
    np.testing.assert_array_equal(model.predict(Z).compute(), model.predict(X))
    assert model.score(Z, da.from_array(y, chunks=100)) == model.score(X, y)


def test_mixtures_take_lazy_rows_with_missing_cells(seed):
    X = samples(seed)
    X[::3, 1] = np.nan
    mixtures = partial(PrivateGaussianMixture, 2, data_norm=4.0, epsilon=INF, random_state=0)
    model, other = mixtures().fit(unknown(X), n_samples=N), mixtures().fit(X)
    for ask in (model.predict, model.predict_proba, model.score_samples):
        assert isinstance(ask(lazy(X)), da.Array)
        np.testing.assert_array_equal(ask(lazy(X)).compute(), ask(X))
    np.testing.assert_allclose(model.means_, other.means_, atol=1e-4)
    assert model.bic(lazy(X)) == pytest.approx(model.bic(X))


def test_there_may_be_more_partitions_than_persons():
    """Of ids that are text, too: partitions that none is dealt to are empty."""
    X, persons = samples(), np.array([f"person {row % 3}" for row in range(N)])
    model = partial(PrivateGaussianMixture, 2, data_norm=4.0, epsilon=INF, random_state=0)
    ids = dd.from_pandas(pd.Series(persons), npartitions=12, sort=False)
    found = model().fit(frame(X, 12), groups=ids, n_samples=3)
    np.testing.assert_allclose(found.means_, model().fit(X, groups=persons).means_, atol=1e-9)
