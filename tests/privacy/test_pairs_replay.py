"""What fits that release products of pairs show follows from what was released."""

from functools import partial
from typing import Any

import folded_tables
import numpy as np
import pytest
import replaying
from folded_tables import SHAPE, X, values
from small_completions import MODELS, build

from sktensor_dp.completion import plan


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are given pairs too."""
    monkeypatch.setattr(plan, "folding_share", lambda *_: (1 / 8, 0))


fit_and_use = partial(folded_tables.fit_and_use, "entry_pairs")


# Bits are compared, and ways are what options choose: a seed would add nothing.
@pytest.mark.parametrize("kind", ["noise", "zeros", "enormous", "tiny"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_pairs_follow_from_their_releases(delta, epsilon, model, kind):
    def make() -> Any:
        return build(
            model, shape=SHAPE, epsilon=epsilon, delta=delta,
            random_state=np.random.RandomState(0),
        )  # fmt: skip

    first, second = (X, values("components")), (X, values(kind))
    for data, other in ((first, second), (second, first)):
        replaying.replay(make, fit_and_use, data, other)


@pytest.mark.parametrize("model", MODELS)
def test_a_release_that_is_resolved_is_followed_too(model, monkeypatch):
    """Components are found, with noise of next to nothing."""
    monkeypatch.setattr(plan, "values_pay", lambda *_: False)

    def make() -> Any:
        return build(model, shape=SHAPE, epsilon=1e4, random_state=np.random.RandomState(0))

    data = X, values("components")
    assert fit_and_use(make(), data)._shared.components is not None
    replaying.replay(make, fit_and_use, data, (X, values("noise")))
    replaying.replay(make, fit_and_use, (X, values("noise")), data)
