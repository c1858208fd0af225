"""Buckets of words and votes for words: values, sensitivity, and the threshold's law."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from sktensor_dp import PrivacyLeakWarning, unsafe_seeded_noise
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.partition_selection import (
    STEP,
    gaussian_partition_selection,
    largest_share,
    selection_threshold,
)
from sktensor_dp.privacy.plan import PrivacyCost
from sktensor_dp.statistics import text
from sktensor_dp.statistics.text import (
    N_BUCKETS,
    VOTE,
    DocumentFrequencies,
    TextChunks,
    WordBuckets,
    Words,
    WordVotes,
    checksums,
)

WORDS = [f"w{i}" for i in range(30)]


def word_buckets(words):
    return checksums(words) % N_BUCKETS


def corpus_of(rng, n, longest=25):
    return [list(map(str, rng.choice(WORDS, rng.integers(0, longest)))) for _ in range(n)]


def weighted(rng, m, largest=None):
    """Votes by weights of very different sizes, some of them 0."""
    weights = np.where(rng.random(N_BUCKETS) < 0.3, 0.0, 10.0 ** -rng.uniform(0, 8, N_BUCKETS))
    return WordVotes(m, math.sqrt(m) if largest is None else largest, weights)


def queries(rng, m):
    known = tuple(map(str, rng.permutation(WORDS)[: rng.integers(1, 31)]))
    largest = rng.uniform(1, math.sqrt(m))
    return [WordBuckets(m), WordBuckets(m, known), weighted(rng, m), weighted(rng, m, largest)]


def vector(total):
    """A total as an array, in the order of the test's words where it is by word."""
    if isinstance(total, Counter):
        return np.array([total[word] for word in [*WORDS, "x", "y"]])
    return total


def moved(query, one, other):
    return vector(query.total(one)) - vector(query.total(other))


def test_documents_count_once_in_every_bucket_of_their_words():
    found = WordBuckets(3).total([["a", "a", "b"], ["a"], []])
    assert found.shape == (N_BUCKETS,)
    assert found.sum() == 3
    assert list(found[word_buckets(["a", "b"])]) == [2, 1]


def test_known_words_are_buckets_and_the_others_take_no_place():
    # The unknown word is used most, and would be the one that counts.
    found = WordBuckets(1, ("b", "a", "z")).total([["c", "c", "c", "a", "a", "b"], ["b"]])
    assert list(found) == [1, 1, 0]


def test_votes_are_shared_out_by_weight():
    weights = np.zeros(N_BUCKETS)
    weights[word_buckets(["a", "b"])] = 0.3, 0.4
    votes = WordVotes(4, 2.0, weights).total([["a", "b", "c", "c"], ["b"], ["c"], []])
    # A norm of 2, in the shares .6 and .8, and all of it for the one candidate of the second.
    assert set(votes) == {"a", "b"}
    assert votes["a"] == pytest.approx(1.2, abs=1e-5)
    assert votes["b"] == pytest.approx(1.6 + 2.0, abs=1e-5)
    capped = WordVotes(4, 1.5, weights).total([["a", "b"], ["b"]])
    assert capped["b"] == 3.0
    assert WordVotes(4, 2.0, np.zeros(N_BUCKETS)).total([["a"]]) == {}


def test_votes_of_full_documents_are_ones():
    votes = WordVotes(3, 3**0.5, np.ones(N_BUCKETS)).total([["a", "b", "c", "d"]])
    np.testing.assert_allclose(sorted(votes.values()), 1.0, atol=2 * VOTE)
    assert len(votes) == 3


def test_sums_of_votes_are_exact_in_any_order(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    documents, query = corpus_of(rng, 60), weighted(rng, 5)
    whole = query.total(documents)
    shuffled = [documents[i] for i in rng.permutation(60)]
    monkeypatch.setattr(text, "CHUNK_SIZE", 7)
    parts = Counter()
    for chunk in TextChunks(shuffled, list):
        parts.update(query.total(chunk))
    assert parts == whole
    assert all((value / VOTE).is_integer() for value in whole.values())


def within(query, difference):
    """Whether a difference is one that the query's bounds allow; none of it is rounding."""
    return np.linalg.norm(difference) <= query.l2_sensitivity * (1 + 1e-12) and np.abs(
        difference
    ).sum() <= query.l1_sensitivity * (1 + 1e-12)


@pytest.mark.dealt
@pytest.mark.parametrize("m", [1, 3, 8])
def test_random_neighbours_stay_within_the_sensitivity(seed, m):
    rng = np.random.default_rng(seed)
    for query in queries(rng, m):
        for _ in range(8):
            rest, pair = corpus_of(rng, 5), corpus_of(rng, 2)
            assert within(query, moved(query, [pair[0], *rest], [pair[1], *rest]))
            alone = vector(query.total([pair[0], *rest])) - vector(query.total(rest))
            assert np.linalg.norm(alone) <= query.l2_contribution * (1 + 1e-12)
            assert np.abs(alone).sum() <= query.l1_contribution * (1 + 1e-12)


@pytest.mark.dealt
@pytest.mark.parametrize("m", [2, 6])
def test_searched_neighbours_stay_within_the_sensitivity(seed, m):
    """Words of the two documents are changed one at a time, as long as they part."""
    rng = np.random.default_rng(seed)
    for query in queries(rng, m):
        pair, best = corpus_of(rng, 2, 12), 0.0
        for _ in range(60):
            side, tried = rng.integers(2), [list(document) for document in pair]
            if tried[side] and rng.random() < 0.5:
                tried[side].pop(rng.integers(len(tried[side])))
            else:
                tried[side].append(str(rng.choice(WORDS)))
            difference = moved(query, tried[:1], tried[1:])
            assert within(query, difference)
            if np.linalg.norm(difference) >= best:
                pair, best = tried, float(np.linalg.norm(difference))
        # Half of the bound at least is found: the search goes somewhere.
        if not isinstance(query, WordBuckets) and query.largest == math.sqrt(m):
            assert best > 0.5 * query.l2_sensitivity


@pytest.mark.parametrize("m", [1, 4, 9])
def test_the_sensitivities_are_attained(m):
    half = [[f"w{i}" for i in range(start, start + m)] for start in (0, 15)]
    even = WordVotes(m, math.sqrt(m), np.full(N_BUCKETS, 0.2))
    for query in (WordBuckets(m), WordBuckets(m, tuple(WORDS)), even):
        difference = moved(query, half[:1], half[1:])
        # Votes lose a step of 2^-20 each.
        assert np.linalg.norm(difference) == pytest.approx(query.l2_sensitivity, rel=3e-6)
        assert np.abs(difference).sum() == pytest.approx(query.l1_sensitivity, rel=3e-6)
        assert within(query, difference)


def test_weights_however_small_give_no_more_votes_than_allowed():
    for size in (1.0, 1e-100, 1e-200, 5e-324):
        votes = WordVotes(9, 3.0, np.full(N_BUCKETS, size)).total([WORDS[:4]])
        assert 2.9 < math.hypot(*votes.values()) <= 3.0


@pytest.mark.parametrize("m", [1, 10**6, 10**9, 10**12, 10**15, 2**52])
def test_votes_leave_room_for_rounded_squares_of_as_many_words_as_may_count(m):
    """A sum of m rounded squares errs by m 2^-53 of itself, and its root by half of that."""
    given = WordVotes(m, math.sqrt(m), np.ones(N_BUCKETS)).total([["a"]])["a"] / math.sqrt(m)
    assert given <= 1 - min(m * 2.0**-54, 0.49)
    # No more room than is of use: what a vote has below 10^6 words stays as it was.
    least = 1 - 1e-9 if m <= 10**6 else max(1 - 1.1e-15 * m, 0.5)
    assert given >= least * (1 - 1e-12) - VOTE


def test_many_words_of_one_bucket_count_once(monkeypatch):
    """Counted each, they would move one number as far as a document has words."""
    monkeypatch.setattr(Words, "checksums", property(lambda words: np.full(len(words.names), 7)))
    found = WordBuckets(20).total([WORDS])
    assert found[7] == found.sum() == 1


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
    delta = 5e-7
    cost = PrivacyCost(mu=mu, delta=delta)
    even, worst = WordVotes(m, math.sqrt(m), np.ones(N_BUCKETS)), []
    sensitivity = even.l2_sensitivity
    for largest in (math.sqrt(m), largest_share(m, sensitivity, cost)[0]):
        query = WordVotes(m, largest, np.ones(N_BUCKETS))
        threshold, sigma = selection_threshold(query, sensitivity, cost), sensitivity / mu
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


def test_the_threshold_for_ones_would_not_do():
    """A deliberate mistake: one document with one candidate then fails far too often."""
    m, cost = 100, PrivacyCost(mu=20.0, delta=5e-7)
    sigma = math.sqrt(2 * m) / cost.mu
    ones = 1 - sigma * ndtri(cost.delta / m)
    assert ndtr((math.sqrt(m) - ones) / sigma) > 1e4 * cost.delta


@pytest.mark.parametrize("query", [WordVotes(9, 3.0, np.ones(N_BUCKETS)), DocumentFrequencies(9)])
def test_the_threshold_counts_on_the_grid_that_noise_is_drawn_on(query):
    """Beyond 2^31 a grid has fewer than 2^-20 steps, and more noise than a threshold is for."""
    sensitivity = query.l2_sensitivity
    for sigma in [*np.geomspace(1e-3, 2.0**30, 400), 2.0**30]:
        grid = NoiseSource().grid(sigma, 1.0, diameter=STEP)
        # Scales are rounded up by 2^-50.
        assert grid.scale <= sigma * (1 + STEP) * (1 + 2.0**-49)
        assert grid.step <= STEP * (1 + 2.0**-49)
        assert (
            selection_threshold(query, sensitivity, PrivacyCost(sensitivity / sigma, delta=1e-9))
            > 1
        )
    for sigma in (1.001 * 2.0**30, 2.0**31, 2.0**40):
        cost = PrivacyCost(mu=sensitivity / sigma, delta=1e-13)
        for asked, of in ((selection_threshold, query), (largest_share, query.max_partitions)):
            with pytest.raises(
                ValueError, match=r"deviation of at most 1.07374e.09, got .*epsilon"
            ):
                asked(of, sensitivity, cost)


@pytest.mark.dealt
def test_votes_of_one_document_leave_with_probability_delta_at_most(seed):
    m, delta, n_trials = 5, 0.2, 4000
    query = WordVotes(m, math.sqrt(m), np.ones(N_BUCKETS))
    cost = PrivacyCost(mu=0.8, delta=delta)
    threshold = selection_threshold(query, query.l2_sensitivity, cost)
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        noise = NoiseSource()
    totals = {f"{i} {j}": 1.0 for i in range(n_trials) for j in range(m)}
    keys, _ = gaussian_partition_selection(totals, query.l2_sensitivity / 0.8, threshold, noise)
    share = len({key.split()[0] for key in keys}) / n_trials
    # Five standard deviations of .0063; a threshold for one word would give .67.
    assert 0.1 < share < delta + 5 * math.sqrt(delta * (1 - delta) / n_trials)


@pytest.mark.parametrize("largest", [0.5, 2.1, math.nan, math.inf])
def test_a_largest_vote_out_of_range_is_refused(largest):
    with pytest.raises(ValueError, match="largest must be from 1 to 2"):
        WordVotes(4, largest, np.ones(N_BUCKETS))


@pytest.mark.parametrize("weights", [np.ones(3), np.full(N_BUCKETS, 1.1), np.full(N_BUCKETS, -1.0)])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(ValueError, match="numbers from 0 to 1"):
        WordVotes(4, 1.0, weights)
