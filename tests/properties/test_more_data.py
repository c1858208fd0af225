"""A longer stream is no worse, and documents of one distribution have one topic."""

from functools import partial

import numpy as np
import pytest

from sktensor_dp import PrivateSpectralLDA, PrivateTensorPowerMethod
from sktensor_dp.metrics import match_topics

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.usefixtures("seeded_noise")
]  # fmt: skip
RNG = np.random.default_rng(0)
AXES, TOPICS = np.linalg.qr(RNG.standard_normal((20, 2)))[0].T, RNG.dirichlet(np.full(30, 0.1), 3)


def samples(rng, n):
    return 0.7 * AXES[rng.integers(2, size=n)] + 0.05 * rng.standard_normal((n, 20))


def documents(rng, n):
    return rng.multinomial(20, rng.dirichlet(np.full(3, 0.3), n) @ TOPICS)


def overlap(model):
    return np.abs(model.components_ @ AXES.T).max(axis=0, initial=0).mean()


def similarity(model):
    return float(np.mean(match_topics(TOPICS, model.components_)[2]))


STREAMS = {
    "components": (
        partial(PrivateTensorPowerMethod, 2, data_norm=1.0, epsilon=4.0, random_state=0),
        samples, overlap, 24, 4000,
    ),
    "topics": (
        partial(PrivateSpectralLDA, 3, epsilon=8.0, random_state=0), documents, similarity, 3, 4000
    ),
}  # fmt: skip


@pytest.mark.parametrize("n_last", [1, 20, pytest.param(200, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", STREAMS)
def test_a_small_batch_spoils_no_stream(name, n_last, seed):
    """Noise of a mean over few rows is larger, and a model must not follow it."""
    build, draw, good, n_batches, size = STREAMS[name]
    rng, model = np.random.default_rng(seed), build()
    for _ in range(n_batches):
        model.partial_fit(draw(rng, size))
    before = good(model)
    assert before > 0.8
    assert good(model.partial_fit(draw(rng, n_last))) > before - 0.05


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [1.0, 4.0, 16.0])
def test_documents_of_one_distribution_have_one_topic(epsilon, seed):
    X = np.random.default_rng(seed).multinomial(20, np.full(200, 1 / 200), 20_000)
    assert len(PrivateSpectralLDA(3, epsilon=epsilon, random_state=0).fit(X).components_) == 1
