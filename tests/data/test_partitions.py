"""Sums over partitions that lie apart are those of one process, and errors show no data."""

import math
import os
import pickle
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from internals import reader_of
from parts_in_order import PartsInOrder
from small_corpora import INF, tiny

from sktensor_dp import (
    BudgetAccountant,
    PrivacyLeakWarning,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    unsafe_seeded_noise,
)
from sktensor_dp.data.counts import CountChunks
from sktensor_dp.data.partitions import PartialQuery, PartitionedSource
from sktensor_dp.data.sums import AccurateSum
from sktensor_dp.queries.clips import Clip, CountNorm
from sktensor_dp.queries.count_moments import WordFrequencies
from sktensor_dp.queries.texts import KeyedSum

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
SECRET = 987654321
N, D = 600, 7
CUTS = (0, 90, 91, 91, 350, N)

pytestmark = tiny


class Apart(PartitionedSource):
    """Partitions whose queries and sums travel as bytes, merged in pairs from the far end."""

    def __init__(self, parts: list[Any], *, grouped: bool = False) -> None:
        self.parts, self.grouped = parts, grouped

    def sum(self, query: PartialQuery) -> Any:
        sent = pickle.dumps(query)
        sums = [pickle.dumps(pickle.loads(sent)(part)) for part in self.parts]
        merged = query.merge([pickle.loads(sums[-1])])
        for other in reversed(sums[:-1]):
            merged = query.merge([pickle.loads(other), merged])
        return merged


def documents(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).poisson(1.0, (N, D))


def parts_of(X: Any) -> list[Any]:
    return [X[first:last] for first, last in pairwise(CUTS)]


def topics(**parameters: Any) -> PrivateSpectralLDA:
    return PrivateSpectralLDA(2, n_refinements=2, random_state=0, **parameters)


def fitted(model: Any, source: Any, n: int | None = N, seed: int = 0) -> Any:
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        return model.fit_chunks(source, n_samples=n, n_features=D)


def components(**parameters: Any) -> PrivateTensorPowerMethod:
    return PrivateTensorPowerMethod(
        2, data_norm=4.0, max_iter=2, epsilon=50.0, random_state=0, **parameters
    )


TRAVELLING = {
    "topics": topics(),
    "topics, no noise": topics(epsilon=INF),
    "whitened tensor": components(perturbation="whitened_tensor"),
    "moment tensor": components(perturbation="moment_tensor"),
    "iteration": components(perturbation="iteration"),
    "groups of mixtures, counted": topics(doc_topic_prior=0.5, neighbours="add_remove"),
    "groups of single topics": topics(doc_topic_prior=0),
}


@pytest.mark.parametrize("name", TRAVELLING)
def test_sums_that_travel_agree(name, seed):
    """Digits of sums differ by roundings, which noise on a grid hides or moves by a step of it."""
    model, grouped, n = TRAVELLING[name], name.startswith("groups"), N
    rng, X = np.random.default_rng(seed), documents(seed)
    if isinstance(model, PrivateTensorPowerMethod):
        X = rng.standard_normal((N, D)) + 1
    parts = parts_of(X)
    if grouped:
        groups = np.repeat(np.arange(60), 10)
        order = np.concatenate([rng.permutation(250), np.arange(250, N)])
        parts = [(X[order[at]], groups[order[at]]) for at in (slice(250), slice(250, None))]
        n = None if model.neighbours == "add_remove" else 60
    one = fitted(model, parts, n).components_.copy()
    apart = [fitted(model, Apart(parts, grouped=grouped), n).components_.copy() for _ in range(2)]
    # A step is 2**-20 of a deviation at most; eps = inf has roundings alone.
    np.testing.assert_allclose(apart[0], one, atol=1e-5)
    np.testing.assert_array_equal(*apart)
    assert (model.privacy_report_.unit == "person") == grouped


class Measured(PartitionedSource):
    """One partition, and the most memory that asking it took beside the partition."""

    def __init__(self, part: Any) -> None:
        self.part, self.peak = part, 0

    def sum(self, query: Any) -> Any:
        tracemalloc.start()
        answer = query(self.part)
        self.peak = max(self.peak, tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        return query.merge([answer])


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_workers_need_memory_by_blocks(kind):
    """A partition of four times as many rows takes no more memory beside it."""
    rng = np.random.default_rng(0)
    peaks = []
    for n in (2**15, 2**17):
        X = rng.poisson(1.0, (n, 4)) + 1
        source = Measured(X if kind == "dense" else sp.csr_array(X))
        PrivateSpectralLDA(1, n_refinements=0, random_state=0).fit_chunks(
            source, n_samples=n, n_features=4
        )
        peaks.append(source.peak)
    # A number of eight bytes for each row would be .8 MB.
    assert peaks[1] < peaks[0] + 2**19


HALVES = [documents(0)[:305], documents(0)[305:]]
GROUPS = np.repeat(np.arange(60), 10)


@pytest.mark.parametrize(
    ("source", "n", "message"),
    [
        # Rows without labels, told to be groups, would be protected one by one.
        (Apart([documents(0)], grouped=True), 60, "Every chunk must be a pair"),
        (Apart([(documents(0), GROUPS)]), 60, "Every chunk must be a pair"),
        # A group in two partitions is no unit twice.
        (Apart(list(zip(HALVES, (GROUPS[:305], GROUPS[305:]), strict=True)), grouped=True), 60,
         "The chunks have 61 groups in all; n_samples is 60"),
        (Apart(HALVES), N + 1, f"have {N} documents in all; n_samples is {N + 1}"),
    ],
    ids=["no labels", "labels", "a group in two", "one too few"],
)  # fmt: skip
def test_partitions_that_are_not_as_said_end_the_fit_with_the_charge(source, n, message):
    budget = BudgetAccountant(1.0, 1e-6)
    with pytest.raises(ValueError, match=message):
        topics(accountant=budget).fit_chunks(source, n_samples=n, n_features=D)
    assert budget.total()[0] == pytest.approx(1.0)


class Quoting:
    """Rows that no library can read without quoting them."""

    shape, dtype, ndim = (9, D), np.dtype(float), 2

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise KeyError(f"the entry {SECRET}")


WRONG = {
    "fractions": np.full((9, D), SECRET + 0.5),
    "negative": np.full((9, D), -SECRET),
    "another width": np.full((9, D + 1), SECRET),
    "text": np.full((9, D), str(SECRET)),
    "quoting": Quoting(),
    "raised by a class of the caller's": type("Rows", (), {"shape": property(lambda _: 1 / 0)})(),
}


@pytest.mark.parametrize("kind", WRONG)
def test_errors_of_partitions_show_no_data_and_leave_the_charge(kind):
    parts, budget = [*parts_of(documents(0)), WRONG[kind]], BudgetAccountant(1.0, 1e-6)
    # What cannot be pickled is not sent: only queries and sums are.
    source = Apart(parts)
    model = topics(accountant=budget)
    before = set(vars(model))
    with pytest.raises((ValueError, TypeError, RuntimeError, ArithmeticError)) as caught:
        model.fit_chunks(source, n_samples=N, n_features=D)
    error, trace = caught.value, caught.value.__traceback__
    assert error.__cause__ is error.__context__ is None
    assert str(SECRET) not in repr(error)
    while trace is not None:
        # Frames of a library that held the data would be in the traceback's locals.
        assert "as_counts" not in trace.tb_frame.f_code.co_name
        trace = trace.tb_next
    assert budget.total() == pytest.approx((1.0, 1e-6))
    assert set(vars(model)) == before


def test_merging_leaves_the_parts_as_they_are(seed):
    """Else a sum that a scheduler asks for again would count twice."""
    rng, sums = np.random.default_rng(seed), [AccurateSum() for _ in range(3)]
    for one in 3 * sums:
        one.add(rng.standard_normal(5) * 10.0 ** rng.integers(-9, 9))
    before, merged = [one.value().copy() for one in sums], [AccurateSum(), AccurateSum()]
    for whole in merged:
        for one in sums:
            whole.merge(one)
    np.testing.assert_array_equal(merged[0].value(), merged[1].value())
    np.testing.assert_array_equal([one.value() for one in sums], before)
    words, other = KeyedSum(), KeyedSum()
    words.add({"a": 2})
    other.merge(words)
    other.add({"a": 1})
    assert (words.value(), other.value()) == ({"a": 2}, {"a": 3})


def test_merged_sums_err_by_one_rounding(seed):
    """In any tree: numbers that cancel, from 1e-8 to 1e8, against exact sums."""
    rng = np.random.default_rng(seed)
    terms = rng.standard_normal(200) * 10.0 ** rng.integers(-8, 9, 200)
    leaves = [AccurateSum() for _ in range(23)]
    for leaf, part in zip(leaves, np.array_split(terms, 23), strict=True):
        for term in part:
            leaf.add(np.array([term]))
    while len(leaves) > 1:
        rng.shuffle(leaves)
        both = AccurateSum()
        both.merge(leaves.pop())
        both.merge(leaves.pop())
        leaves.append(both)
    # u |S| and gamma_200^2 times the moduli: (200 * 2**-53)**2 = 5e-28.
    bound = 2.0**-53 * abs(math.fsum(terms)) + 5e-28 * np.abs(terms).sum()
    assert abs(leaves[0].value()[0] - math.fsum(terms)) <= bound


def test_what_is_sent_holds_no_data():
    """The query of a fit whose chunks are at hand: neither they nor their number of rows."""
    chunks = CountChunks(PartsInOrder([documents(0)]), N, D)
    sent = pickle.dumps(PartialQuery(WordFrequencies(Clip(CountNorm(1), 5.0)), reader_of(chunks)))
    assert len(sent) < 2000


class Adding:
    """Sums of what it holds; no source until it is registered."""

    def __init__(self, answer: Callable[[PartialQuery], Any]) -> None:
        self.answer = answer

    def sum(self, query: PartialQuery) -> Any:
        return self.answer(query)


@pytest.mark.parametrize(
    "source",
    [
        pd.DataFrame(documents(0)), pd.Series([documents(0)]).to_frame(), dask.array.ones((N, D)),
        {"counts": documents(0)}, "counts", 3, Adding(None),
    ],
    ids=lambda source: type(source).__name__,
)  # fmt: skip
def test_other_data_that_adds_up_is_no_source(source):
    """Also that which has a method `sum`; it is refused before the charge."""
    budget = BudgetAccountant(1.0, 1e-6)
    with pytest.raises(TypeError, match="source must be an iterable of chunks, got"):
        topics(accountant=budget).fit_chunks(source, n_samples=N, n_features=D)
    assert budget.entries == ()


class Registered(Adding):
    pass


PartitionedSource.register(Registered)


def test_a_source_is_told_by_its_class_and_its_errors_show_no_data():
    X = documents(0)
    one = fitted(topics(), Registered(lambda query: query.merge(map(query, parts_of(X)))))
    np.testing.assert_array_equal(one.components_, fitted(topics(), parts_of(X)).components_)

    def fail(_: PartialQuery) -> Any:
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise ValueError(f"row {SECRET}") from error

    class Reading:
        def __iter__(self) -> Any:
            return fail(None)

    for source, said in (
        (Registered(fail), r"Adding up partitions failed with ValueError \(test_partitions.py"),
        (Registered(lambda query: X), "must return the PartialSum .* got a ndarray"),
        (Reading(), "The source of chunks failed with ValueError"),
    ):
        with pytest.raises((ValueError, TypeError), match=said) as caught:
            topics().fit_chunks(source, n_samples=N, n_features=D)
        assert str(SECRET) not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_stream_takes_no_source():
    with pytest.raises(TypeError, match="iterable of batches"):
        components(perturbation="stream").fit_chunks(Apart([]))


@pytest.mark.nightly
def test_the_example_of_the_page_runs(tmp_path):
    """As a program of its own, whose processes import it."""
    (example,) = re.findall(r"```python\n(import multi.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    script = tmp_path / "files.py"
    script.write_text(example, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=100,
        env={**os.environ, "PYTHONPATH": str(PAGE.parents[1])},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    row = np.array(re.findall(r"[\d.]+", ran.stdout), float)
    # Frequencies of eight words that are equally likely; noise is a percent of them.
    np.testing.assert_allclose(row, np.full(8, 0.125), atol=0.03)
