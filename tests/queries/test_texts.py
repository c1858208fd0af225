"""Queries on words of texts: frequencies, buckets and votes, and the laws of their threshold."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from sktensor_dp.data.labels import checksums
from sktensor_dp.data.texts import TextChunks, WordCounts
from sktensor_dp.privacy.noise_source import NoiseSource
from sktensor_dp.privacy.partition_selection import (
    STEP,
    gaussian_partition_selection,
    largest_weight,
    selection_threshold,
)
from sktensor_dp.privacy.plan import PrivacyCost, ReleasePlan
from sktensor_dp.privacy.session import Session
from sktensor_dp.queries.texts import (
    N_BUCKETS,
    VOTE,
    DocumentFrequencies,
    NumberOfWords,
    WordBuckets,
    WordVotes,
)

WORDS = [f"w{i}" for i in range(30)]


def corpus_of(rng, n, longest=25):
    return [list(map(str, rng.choice(WORDS, rng.integers(0, longest)))) for _ in range(n)]


def total_in_chunks(query, documents):
    totals = Counter()
    for chunk in TextChunks(documents, list):
        totals.update(query.total(chunk))
    return totals


def total_of(query, *documents):
    return query.total(WordCounts.of(documents))


def test_frequencies_are_those_of_documents_however_they_are_cut(seed):
    documents = corpus_of(np.random.default_rng(seed), 5000)
    assert len(list(TextChunks(documents, list))) == 2
    expected = Counter(word for document in documents for word in set(document))
    query = DocumentFrequencies(30, tuple(WORDS))
    whole = sum(query.total(chunk) for chunk in TextChunks(documents, list))
    assert list(whole) == [expected[word] for word in WORDS]
    numbers = NumberOfWords(tuple(WORDS[5:])).of(WordCounts.of(documents))
    assert list(numbers) == [len({*document} & {*WORDS[5:]}) for document in documents]
    query = DocumentFrequencies(4, tuple(WORDS))
    parts = sum(total_of(query, *documents[first : first + 1000]) for first in range(0, 5000, 1000))
    whole = sum(query.total(chunk) for chunk in TextChunks(documents, list))
    np.testing.assert_array_equal(whole, parts)


CCAABBBBD = ["c"] * 3 + ["a"] * 2 + ["b"] * 4 + ["d"]


@pytest.mark.parametrize(
    ("most", "documents", "expected"),
    [
        (2, [CCAABBBBD], {"b": 1, "c": 1}),
        (3, [[], CCAABBBBD, []], {"a": 1, "b": 1, "c": 1}),
        (3, [[], []], {}),
        (4, [["\ud800", "ß", "", "日本"], ["ß"]], {"\ud800": 1, "ß": 2, "": 1, "日本": 1}),
    ],
)
def test_a_document_counts_towards_the_words_it_uses_most(most, documents, expected):
    names = ("z", "日本", *"dcba", "ß", "", "\ud800")
    found = total_of(DocumentFrequencies(most, names), *documents)
    assert dict(zip(names, found, strict=True)) == {name: expected.get(name, 0) for name in names}
    # An unknown word takes no place, however often it is used.
    assert list(total_of(DocumentFrequencies(1, ("b", "a")), ["c", "c", "a"], ["b"])) == [1, 1]


# The threshold


class ManyWords(WordVotes):
    """20 000 words, each in a million documents."""

    def total(self, chunk):
        return Counter({f"{i:05d}": 1_000_000 for i in range(20_000)})


def session_of(delta):
    reserved = {"word_votes": 5e-7} if delta else {}
    plan = ReleasePlan.split(1.0, delta, {"word_votes": 1}, reserved_delta=reserved)
    chunks = TextChunks([["a"]], list)
    return Session(chunks, plan)


@pytest.mark.usefixtures("seeded_noise")
def test_noise_has_the_reported_scale(seed):
    with session_of(1e-6) as ask:
        answer = ask(ManyWords(8, 1.0, np.ones(N_BUCKETS)))
        report = ask.report()
    words, noisy = answer.keys, answer.value
    residuals, (row,) = noisy - 1_000_000, report.rows
    assert len(words) == 20_000
    assert (row.sensitivity, row.delta) == (pytest.approx(4.0), 5e-7)
    assert row.sigma == pytest.approx(4.0 / row.mu)
    # Standard deviation of 20,000 draws: its relative error is 1 / sqrt(2 * 20000) = .5 %, five of
    # them; noise scaled by 1.1 lies twenty away.
    assert np.std(residuals) == pytest.approx(row.sigma, rel=0.025)
    assert np.std(1.1 * residuals) != pytest.approx(row.sigma, rel=0.025)
    assert abs(residuals.mean()) < 5 * row.sigma / math.sqrt(20_000)
    assert report.epsilon == pytest.approx(1.0, rel=1e-6)
    assert report.epsilon <= 1.0 + 1e-9
    # Rounded to a grid that no property of the corpus decides.
    step = NoiseSource().grid(row.sigma, 1.0, rounding_cost=STEP).step
    assert step <= STEP
    assert np.array_equal(np.rint(noisy / step) * step, noisy)


def test_words_leave_in_alphabetical_order_and_nothing_else_leaves():
    totals = {"z": 500, "rare": 1, "a": 400}
    keys, noisy = gaussian_partition_selection(totals, 0.0, 2.0, NoiseSource())
    assert keys == ["a", "z"]
    assert list(noisy) == [400, 500]
    assert gaussian_partition_selection({}, 3.0, 2.0, NoiseSource())[0] == []


@pytest.mark.usefixtures("seeded_noise")
def test_noise_decides_which_words_leave():
    """Of 400 at the threshold as many as heads of coins: 150 to 250 but for a chance of 6e-7."""
    totals = {f"{i:03d}": 2.0 for i in range(400)}
    keys, noisy = gaussian_partition_selection(totals, 3.0, 2.0, NoiseSource())
    assert noisy.min() >= 2
    assert 150 <= len(keys) <= 250


def test_no_votes_are_given_without_a_threshold():
    asked = WordVotes(2, 1.0, np.ones(N_BUCKETS))
    with session_of(1e-6) as ask:
        assert ask(asked).keys == []
        with pytest.raises(RuntimeError, match="used up"):
            ask(asked)
    with session_of(0.0) as ask, pytest.raises(RuntimeError, match="no law for a pure epsilon"):
        ask(asked)


# Buckets and votes


def bucket_of(*words):
    return checksums(words) % N_BUCKETS


def test_a_document_gives_every_bucket_of_its_words_alike():
    found = total_of(WordBuckets(), ["a", "a", "b", "c", "d"], ["a"], [])
    assert found.shape == (N_BUCKETS,)
    assert list(found[bucket_of("a", "b")]) == [1.5, 0.5]
    assert found.sum() == 3
    # Many words of one bucket, each counted, would move one number as far as there are words.
    words = [f"word{number}" for number in range(N_BUCKETS)]
    buckets = bucket_of(*words)
    bucket = np.bincount(buckets).argmax()
    alike = [words[place] for place in np.flatnonzero(buckets == bucket)]
    assert len(alike) > 4
    found = total_of(WordBuckets(), alike)
    assert found[bucket] == found.sum() == 1
    # However many buckets, the squares add up to 1 at most: they are rounded down.
    squares = np.square(total_of(WordBuckets(), words))
    assert 0.99 < math.fsum(squares) <= 1


def test_votes_go_to_the_words_of_largest_weight_and_then_to_those_used_most():
    weights = np.zeros(N_BUCKETS)
    weights[bucket_of(*"abcd")] = 0.5, 0.7, 0.7, 0.0
    assert set(total_of(WordVotes(1, 1.0, weights), [*"aaabbcd"])) == {"b"}
    assert set(total_of(WordVotes(2, 1.0, weights), [*"aaabbcd"])) == {"b", "c"}


def test_votes_are_shared_out_by_weight():
    weights = np.zeros(N_BUCKETS)
    weights[bucket_of("a", "b")] = 0.3, 0.4
    votes = total_of(WordVotes(4, 2.0, weights), ["a", "b", "c", "c"], ["b"], ["c"], [])
    # A norm of 2, in the shares .6 and .8, and all of it for the one candidate of the second.
    assert votes == pytest.approx({"a": 1.2, "b": 1.6 + 2.0}, abs=1e-5)
    assert total_of(WordVotes(4, 1.5, weights), ["a", "b"], ["b"])["b"] == 3.0
    assert total_of(WordVotes(4, 2.0, 0 * weights), ["a"]) == {}
    full = total_of(WordVotes(3, 3**0.5, np.ones(N_BUCKETS)), ["a", "b", "c", "d"])
    np.testing.assert_allclose(list(full.values()), [1.0] * 3, atol=2 * VOTE)


def test_sums_of_votes_are_exact_in_any_order(seed):
    rng = np.random.default_rng(seed)
    # Weights of very different sizes, some of them 0.
    weights = np.where(rng.random(N_BUCKETS) < 0.3, 0.0, 10.0 ** -rng.uniform(0, 8, N_BUCKETS))
    documents, query = corpus_of(rng, 5000), WordVotes(5, math.sqrt(5), weights)
    whole = total_of(query, *documents)
    assert total_in_chunks(query, [documents[i] for i in rng.permutation(5000)]) == whole
    assert all((value / VOTE).is_integer() for value in whole.values())


@pytest.mark.parametrize("size", [1.0, 1e-100, 1e-200, 5e-324])
def test_weights_however_small_give_no_more_votes_than_allowed(size):
    votes = total_of(WordVotes(9, 3.0, np.full(N_BUCKETS, size)), WORDS[:4])
    assert 2.9 < math.hypot(*votes.values()) <= 3.0


def even_votes(m, largest=None):
    return WordVotes(m, math.sqrt(m) if largest is None else largest, np.ones(N_BUCKETS))


@pytest.mark.parametrize("m", [1, 10**6, 10**9, 10**12, 10**15, 2**52])
def test_votes_leave_room_for_rounded_squares_of_as_many_words_as_may_count(m):
    """A sum of m rounded squares errs by m 2^-53 of itself, and its root by half of that."""
    given = total_of(even_votes(m), ["a"])["a"] / math.sqrt(m)
    assert given <= 1 - min(m * 2.0**-54, 0.49)
    # No more room than is of use: what a vote has below 10^6 words stays as it was.
    least = 1 - 1e-9 if m <= 10**6 else max(1 - 1.1e-15 * m, 0.5)
    assert given >= least * (1 - 1e-12) - VOTE


def shapes(m, largest):
    """Votes of one document: even for any number of words, falling, and one for all."""
    even = [np.full(k, min(math.sqrt(m / k), largest)) for k in range(1, m + 1)]
    falling = []
    for rate in (0.3, 0.6, 0.9):
        votes = rate ** np.arange(m)
        falling.append(np.minimum(votes * math.sqrt(m / (votes @ votes)), largest))
    first = [
        np.r_[v, np.full(m - 1, math.sqrt(max(m - v * v, 0) / max(m - 1, 1)))]
        for v in np.linspace(1, largest, 15)
    ]
    return [*even, *falling, *(votes for votes in first if votes.max() <= largest)]


@pytest.mark.parametrize("mu", [0.1, 0.5, 2.0, 10.0, 100.0])
@pytest.mark.parametrize("m", [1, 5, 100])
def test_no_shape_of_votes_fails_with_more_than_delta(m, mu):
    delta, worst = 5e-7, []
    cost, sensitivity = PrivacyCost(mu=mu, delta=delta), even_votes(m).l2_sensitivity
    sigma = sensitivity / mu
    for largest in (math.sqrt(m), largest_weight(m, sensitivity, cost)[0]):
        threshold = selection_threshold(even_votes(m, largest), sensitivity, cost)
        failures = [
            -math.expm1(np.log1p(-ndtr((votes - threshold) / sigma)).sum())
            for votes in shapes(m, largest)
        ]
        assert max(failures) <= delta
        worst.append(max(failures))
        # No larger than one for ones by more than a tenth and the largest vote.
        ones = 1 - sigma * ndtri(delta / m)
        assert threshold <= 1.1 * ones + largest - 1
    # The bound is right within a factor of six in delta: a twentieth of the threshold.
    assert max(worst) > delta / 6


def test_without_noise_there_is_no_threshold_and_without_delta_none_is_proved():
    assert selection_threshold(even_votes(9), 3.0, PrivacyCost(mu=math.inf)) == 0.0
    with pytest.raises(ValueError, match="delta > 0"):
        selection_threshold(even_votes(9), 3.0, PrivacyCost(mu=0.2))


def test_the_threshold_counts_on_the_grid_that_noise_is_drawn_on():
    """Beyond 2^31 a grid has fewer than 2^-20 steps, and more noise than a threshold is for."""
    query = even_votes(9)
    sensitivity = query.l2_sensitivity
    for sigma in [*np.geomspace(1e-3, 2.0**30, 100), 2.0**30]:
        grid = NoiseSource().grid(sigma, 1.0, rounding_cost=STEP)
        # Scales are rounded up by 2^-50.
        assert grid.scale <= sigma * (1 + STEP) * (1 + 2.0**-49)
        assert grid.step <= STEP * (1 + 2.0**-49)
        cost = PrivacyCost(sensitivity / sigma, delta=1e-9)
        assert selection_threshold(query, sensitivity, cost) > 1
    for sigma in (1.001 * 2.0**30, 2.0**31, 2.0**40):
        cost = PrivacyCost(mu=sensitivity / sigma, delta=1e-13)
        for asked, of in ((selection_threshold, query), (largest_weight, 9)):
            with pytest.raises(
                ValueError, match=r"deviation of at most 1.07374e.09, got .*epsilon"
            ):
                asked(of, sensitivity, cost)
