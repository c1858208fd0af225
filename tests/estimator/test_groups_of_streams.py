"""Streams of groups, each of which is in one batch."""

from typing import Any

import numpy as np
import pytest
from replaying import state
from small_groups import COMPONENTS, model, persons, seeded

from sktensor_dp.privacy.calibration import gaussian_mu

pytestmark = [
    pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning"),
    pytest.mark.filterwarnings("ignore:noise is seeded"),
]


def stream_of(kind: str, **options: Any) -> Any:
    return model(kind, **({} if kind == "topics" else COMPONENTS["stream"]), **options)


@pytest.mark.parametrize("kind", ["topics", "components"])
def test_batches_have_groups_all_or_none(kind):
    X, groups = persons(np.random.default_rng(0), kind, "stream", 9)
    for first, second in ((groups, None), (None, groups)):
        estimator = seeded(lambda g=first: stream_of(kind).partial_fit(X, groups=g))
        before = state(vars(estimator))
        with pytest.raises(ValueError, match="must come with groups, or none"):
            estimator.partial_fit(X, groups=second)
        assert state(vars(estimator)) == before


def test_chunks_have_groups_all_or_none(seed):
    rng = np.random.default_rng(seed)
    source = [persons(rng, "components", "stream", 5) for _ in range(2)]
    with pytest.raises(ValueError, match="must come with groups, or none"):
        stream_of("components").fit_chunks([source[0], source[1][0]])


def test_fits_are_disjoint_batches(seed):
    """A fit deals every group into one batch, at the whole budget."""
    X, groups = persons(np.random.default_rng(seed), "components", "stream", 5)
    fitted = stream_of("components").fit(X, groups=groups)
    report = fitted.privacy_report_
    assert "disjoint" in report.notes[-1]
    assert report.rows[0].mu == pytest.approx(gaussian_mu(1.0, 1e-6))
