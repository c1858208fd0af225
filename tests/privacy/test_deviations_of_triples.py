"""Noise of third moments of counts has the deviation that a fit reckons with."""

import numpy as np
import pytest

from sktensor_dp.privacy.curators.documents import DocumentCurator
from sktensor_dp.privacy.plan import ReleasePlan
from sktensor_dp.queries.counts import CountChunks, as_counts
from sktensor_dp.tensor.symmetric import symmetric_to_coordinates

K, USES = 3, 400


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("name", ["whitened_triple_moments", "triple_moments"])
@pytest.mark.usefixtures("seeded_noise")
def test_noise_of_triples_has_the_deviation_that_is_told(name, delta, seed):
    rng = np.random.default_rng(seed)
    X = as_counts(rng.poisson(1.0, (50, 8)).astype(float))
    basis = np.linalg.qr(rng.standard_normal((8, K)))[0]
    plan = ReleasePlan.split(1.0, delta, {name: 1.0}, {name: USES})
    known = {"counts": 9.0, "triples": 5.0}
    with DocumentCurator(
        CountChunks(X, *X.shape), plan, known=known, spender="test", unit="document",
        accountant=None,
    ) as curator:  # fmt: skip
        counts = curator.count_clip(0.1)
        if name == "triple_moments":
            clip = counts if delta == 0 else curator.triple_clip(0.1)
            answers = [curator.triples(basis, clip, (counts,), None) for _ in range(USES)]
        else:
            clip = curator.whitened_triple_clip(0.1, basis, None, (counts,))
            answers = [curator.whitened_triples(basis, clip, (counts,), None) for _ in range(USES)]
    values = np.array([symmetric_to_coordinates(answer.value) for answer in answers])
    # Coordinates of spherical noise share their radius: its square deviates by a fifth at most.
    assert values.std(axis=0).mean() == pytest.approx(answers[0].sigma, rel=0.15)
