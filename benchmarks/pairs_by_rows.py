"""Topics of so many words that memory does not hold their pairs.

Documents of twenty words and one topic each, three topics without a word in common, seed 0,
epsilon = 3000, so that the pairs of all words are released, and no EM steps. The process may
use 16 GB, less than the pairs need; the largest amount that it held is printed.

    python -m benchmarks.pairs_by_rows 50000 20000

fits 20,000 documents of 50,000 words.
"""

import resource
import sys
import time

import numpy as np
import scipy.sparse as sp

from benchmarks.peak_memory import peak
from benchmarks.seeding import reproducible_noise
from sktensor_dp import PrivateSpectralLDA

LENGTH, N_TOPICS, MEMORY = 20, 3, 16 * 10**9


def texts(n: int, d: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Counts of documents, and topics of which each has a Zipf law on words of its own."""
    rng = np.random.default_rng(0)
    topics = np.zeros((N_TOPICS, d))
    for topic in range(N_TOPICS):
        topics[topic, topic::N_TOPICS] = 1 / (10 + np.arange(len(range(topic, d, N_TOPICS))))
    topics /= topics.sum(axis=1, keepdims=True)
    below = topics.cumsum(axis=1)
    of = rng.integers(N_TOPICS, size=n)
    words = np.array([np.searchsorted(below[topic, :-1], rng.random(LENGTH)) for topic in of])
    ends = np.arange(0, n * LENGTH + 1, LENGTH)
    X = sp.csr_matrix((np.ones(n * LENGTH), words.ravel(), ends), (n, d))
    X.sum_duplicates()
    return X, topics


def main(n_words: int, n_documents: int) -> None:
    """Fit, and print what it took."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    X, topics = texts(n_documents, n_words)
    start, cpu = time.perf_counter(), time.process_time()
    with reproducible_noise(0):
        model = PrivateSpectralLDA(N_TOPICS, epsilon=3000.0, n_refinements=0, random_state=0)
        model.fit(X)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    apart = 0.5 * np.abs(model.components_[:, None] - topics).sum(axis=2).min(axis=0)
    unigram = 0.5 * np.abs(model.unigram_ - topics).sum(axis=1)
    print(f"{n_words} words, {n_documents} documents: {wall:.0f} s, {cpu:.0f} s of processors")
    whole = 8 * n_words**2 / 2**30
    print(f"at the peak {peak() / 2**30:.2f} GiB; a matrix of pairs has {whole:.1f} GiB")
    print(f"error of topics {apart.round(3)}; of word frequencies {unigram.round(3)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
