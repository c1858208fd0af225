"""Expected counts of rare words get less of the noise than those of frequent ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from sktensor_dp.spectral_topics.refinement import scales_of_words

pytestmark = pytest.mark.usefixtures("seeded_noise")


def zipfian(seed, n=4000, d=600, k=4):
    rng = np.random.default_rng(seed)
    unigram = 1 / np.arange(3.0, d + 3)
    topics = rng.dirichlet(60 * unigram / unigram.sum(), k)
    shares = rng.dirichlet(np.full(k, 0.2), n)
    counts = rng.multinomial(60, shares @ topics).astype(float)
    return sp.csr_matrix(counts[:-500]), sp.csr_matrix(counts[-500:])


def test_scales_leave_the_length_of_counts_and_are_within_what_a_query_takes():
    for unigram in (np.full(50, 0.02), np.eye(50)[0], np.geomspace(1, 1e-9, 100_000)):
        unigram = unigram / unigram.sum()
        scales = scales_of_words(unigram)
        # A token of each word by its frequency has a squared length of 1 on average.
        assert unigram @ scales**-2.0 == pytest.approx(1)
        assert (np.diff(scales[np.argsort(unigram)]) >= 0).all()
        assert 1e-3 < scales.min() <= 1 + 1e-9
        assert 1 - 1e-9 <= scales.max() < 1e3
