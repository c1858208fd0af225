"""One question asked several times: read once, and paid for with noise of its own each time."""

import math
import weakref
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from internals import data_of, kept_mean

from sktensor_dp import unsafe_seeded_noise
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.counts import Clip, CountChunks, CountNorm, NormHistogram, WordFrequencies
from sktensor_dp.queries.moments import PairMoments

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.PrivacyLeakWarning")

N, D = 50, 8
FREQUENCIES = WordFrequencies(Clip(CountNorm(1), 5.0))
PAIRS = PairMoments(Clip(CountNorm(1), 5.0), 1.0)
NORMS = NormHistogram(CountNorm(1), np.array([1.0, 10.0, 40.0]))


class Counted(CountChunks):
    """Documents that know how often they were read."""

    readings = 0

    def __iter__(self) -> Iterator:
        self.readings += 1
        return super().__iter__()


def opened(name: str, epsilon: float, seed: int) -> DataCurator:
    X = np.random.default_rng(seed).poisson(1.0, (N, D))
    chunks = Counted(sp.csr_matrix(X, dtype=float), N, D)
    uses = {name: 4, "norm_histogram": 1}
    plan = ReleasePlan.split(epsilon, 1e-6, {name: 4.0, "norm_histogram": 1.0}, uses)
    return DataCurator(chunks, plan, spender="test", unit="document", accountant=None)


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
@pytest.mark.parametrize(
    ("name", "query"), [("word_frequencies", FREQUENCIES), ("pair_moments", PAIRS)]
)
def test_answers_are_those_of_as_many_questions(name, query, epsilon, seed):
    """Were noise added to a sum that is kept, or a cost left out, the two would differ."""
    found, readings = {}, {}
    for repeats in (False, True):
        with unsafe_seeded_noise(seed), opened(name, epsilon, seed) as curator:
            chunks = data_of(curator)
            ask = partial(curator.noisy, name, query)
            if repeats:
                ask = curator.repeatedly(name, query)
            answers = [ask(), ask(), curator.noisy("norm_histogram", NORMS), ask(), ask()]
            with pytest.raises(RuntimeError, match="used up"):
                ask()
            found[repeats] = [(one.value.tobytes(), one.sigma) for one in answers]
            report = curator.report()
        readings[repeats] = chunks.readings
        uses = [(row.name, row.uses) for row in report.rows]
        assert uses == [(name, 2), ("norm_histogram", 1), (name, 2)]
        assert math.isclose(report.epsilon, epsilon, rel_tol=1e-9)
    assert found[True] == found[False]
    assert readings == {False: 5, True: 2}
    values = [value for value, _ in found[True]]
    assert len({values[0], values[1], values[3], values[4]}) == (1 if math.isinf(epsilon) else 4)


def test_an_answer_that_is_written_on_changes_no_other(seed):
    with opened("word_frequencies", math.inf, seed) as curator:
        ask = curator.repeatedly("word_frequencies", FREQUENCIES)
        first = ask().value
        as_it_was = first.copy()
        first += 1.0
        second = ask().value
        assert np.array_equal(second, as_it_was)
        second += 1.0
        assert np.array_equal(ask().value, as_it_was)


@pytest.mark.parametrize("by", ["closing", "another"])
def test_the_sum_is_dropped(by, seed):
    with opened("word_frequencies", 1.0, seed) as curator:
        ask = curator.repeatedly("word_frequencies", FREQUENCIES)
        ask()
        kept = weakref.ref(kept_mean(curator))
        if by == "another":
            curator.repeatedly("norm_histogram", NORMS)
            assert kept() is None
    assert kept() is None
    with pytest.raises(RuntimeError, match="closed"):
        ask()
