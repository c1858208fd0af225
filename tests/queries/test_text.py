"""Document frequencies: values, and the threshold's law."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.special import ndtri

from sktensor_dp import PrivacyLeakWarning, unsafe_seeded_noise
from sktensor_dp.privacy.curator import DataCurator
from sktensor_dp.privacy.noise import NoiseSource
from sktensor_dp.privacy.plan import PrivacyCost, ReleasePlan
from sktensor_dp.privacy.selection import (
    STEP,
    gaussian_partition_selection,
    selection_threshold,
)
from sktensor_dp.queries.text import DocumentFrequencies, TextChunks


def corpus_of(rng, n_documents, n_words=30, longest=25):
    words = np.array([f"w{i}" for i in range(n_words)])
    lengths = rng.integers(0, longest, n_documents)
    return [list(map(str, rng.choice(words, length))) for length in lengths]


def frequencies(documents, m):
    totals = Counter()
    for chunk in TextChunks(documents, list):
        totals.update(DocumentFrequencies(m).total(chunk))
    return totals


def test_uncapped_frequencies_are_document_frequencies(seed):
    documents = corpus_of(np.random.default_rng(seed), 200)
    expected = Counter(word for document in documents for word in set(document))
    assert frequencies(documents, 30) == expected


def test_a_document_counts_towards_the_words_it_uses_most():
    document = ["c"] * 3 + ["a"] * 2 + ["b"] * 4 + ["d"]
    assert frequencies([document], 2) == {"b": 1, "c": 1}
    assert frequencies([[], document, []], 3) == {"a": 1, "b": 1, "c": 1}
    assert frequencies([[], []], 3) == {}


def test_chunks_add_up(seed):
    documents = corpus_of(np.random.default_rng(seed), 5000)
    assert len(list(TextChunks(documents, list))) == 2
    parts = Counter()
    for first in range(0, 5000, 1000):
        parts.update(frequencies(documents[first : first + 1000], 4))
    assert frequencies(documents, 4) == parts


def test_words_are_any_unicode():
    documents = [["\ud800", "ß", "", "日本"], ["ß"]]
    assert frequencies(documents, 4) == {"\ud800": 1, "ß": 2, "": 1, "日本": 1}


def seeded(seed):
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        return NoiseSource()


N_TRIALS = 20_000


def share_of_failures(threshold, m, sigma, noise):
    """How often at least one of m words of a single document leaves."""
    totals = {f"{trial} {word}": 1 for trial in range(N_TRIALS) for word in range(m)}
    keys, noisy = gaussian_partition_selection(totals, sigma, threshold, noise)
    assert (noisy >= threshold).all()
    return len({key.split()[0] for key in keys}) / N_TRIALS


@pytest.mark.nightly
def test_threshold_fails_with_probability_delta(seed):
    m, delta = 5, 0.2
    query, cost = DocumentFrequencies(m), PrivacyCost(mu=0.8, delta=delta)
    sigma = query.l2_sensitivity / cost.mu
    noise = seeded(seed)
    # Standard deviation of the share .0028: five of them. What STEP adds to the
    # threshold moves the failures by less than 2**-20.
    tolerance = 5 * math.sqrt(delta * (1 - delta) / N_TRIALS) + 2.0**-20
    right = selection_threshold(query, query.l2_sensitivity, cost)
    assert abs(share_of_failures(right, m, sigma, noise) - delta) < tolerance
    # Forgetting that m words may fail gives .67, forgetting their own count .31.
    for_one_word = 1 + sigma * -ndtri(delta)
    assert share_of_failures(for_one_word, m, sigma, noise) > delta + tolerance
    assert share_of_failures(right - 1, m, sigma, noise) > delta + tolerance


def test_threshold_at_practical_delta():
    """Against logarithms of the survival probability, far in the tail."""
    query, cost = DocumentFrequencies(100), PrivacyCost(mu=0.2, delta=5e-7)
    threshold = selection_threshold(query, query.l2_sensitivity, cost)
    z = (threshold - 1) / (query.l2_sensitivity / cost.mu)
    failure = 1 - (1 - math.erfc(z / math.sqrt(2)) / 2) ** 100
    assert failure == pytest.approx(5e-7, rel=1e-3)
    assert failure <= 5e-7
    assert selection_threshold(query, 1.0, PrivacyCost(mu=math.inf)) == 1.0
    with pytest.raises(ValueError, match="delta > 0"):
        selection_threshold(query, 1.0, PrivacyCost(mu=0.2))


class ManyWords(DocumentFrequencies):
    """20 000 words, each in a million documents."""

    def total(self, chunk):
        return Counter({f"{i:05d}": 1_000_000 for i in range(20_000)})


def test_noise_has_the_reported_scale(seed):
    plan = ReleasePlan.split(
        1.0, 1e-6, {"document_frequencies": 1}, reserved_delta={"document_frequencies": 5e-7}
    )
    with pytest.warns(PrivacyLeakWarning), unsafe_seeded_noise(seed):
        curator = DataCurator(
            TextChunks([["a"]], list), plan, spender="test", unit="document", accountant=None
        )
    with curator:
        words, noisy = curator.release_partitions("document_frequencies", ManyWords(8))
        report = curator.report()
    residuals = noisy - 1_000_000
    (row,) = report.rows
    assert len(words) == 20_000
    assert row.sensitivity == 4.0
    assert row.delta == 5e-7
    assert row.sigma == pytest.approx(4.0 / row.mu)
    # The relative standard deviation of the estimate is 1 / sqrt(2 * 20000) = .5 %: five of
    # them. Noise scaled by 1.1 lies twenty away.
    assert np.std(residuals) == pytest.approx(row.sigma, rel=0.025)
    assert np.std(1.1 * residuals) != pytest.approx(row.sigma, rel=0.025)
    assert abs(residuals.mean()) < 5 * row.sigma / math.sqrt(20_000)
    assert report.epsilon == pytest.approx(1.0, rel=1e-6)
    assert report.epsilon <= 1.0 + 1e-9
    # Rounded to a grid that no property of the corpus decides.
    step = NoiseSource().grid(row.sigma, 1.0, diameter=STEP).step
    assert step <= STEP
    assert np.array_equal(np.rint(noisy / step) * step, noisy)


def test_words_leave_in_alphabetical_order_and_nothing_else_leaves():
    totals = {"z": 500, "rare": 1, "a": 400}
    keys, noisy = gaussian_partition_selection(totals, 0.0, 2.0, NoiseSource())
    assert keys == ["a", "z"]
    assert list(noisy) == [400, 500]
    assert gaussian_partition_selection({}, 3.0, 2.0, NoiseSource())[0] == []


def test_the_curator_gives_no_frequencies_without_a_threshold():
    plan = ReleasePlan.split(
        1.0, 1e-6, {"document_frequencies": 1}, reserved_delta={"document_frequencies": 5e-7}
    )
    chunks = TextChunks([["a"]], list)
    arguments = {"spender": "test", "unit": "document", "accountant": None}
    query = DocumentFrequencies(2)
    with DataCurator(chunks, plan, **arguments) as curator:
        with pytest.raises(RuntimeError, match="not made by"):
            curator.release("document_frequencies", query)
        assert curator.report().rows == ()
        curator.release_partitions("document_frequencies", query)
        with pytest.raises(RuntimeError, match="used up"):
            curator.release_partitions("document_frequencies", query)
    pure = ReleasePlan.split(1.0, 0.0, {"document_frequencies": 1})
    with (
        DataCurator(chunks, pure, **arguments) as curator,
        pytest.raises(RuntimeError, match="not made by"),
    ):
        curator.release_partitions("document_frequencies", query)
