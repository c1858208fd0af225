"""What fits that release values times directions show follows from what was released."""

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
    """Small tables are given directions too."""
    monkeypatch.setattr(plan, "folding_share", lambda *_: (1 / 4, 2))
    monkeypatch.setattr(plan, "values_pay", lambda *_: False)


fit_and_use = partial(folded_tables.fit_and_use, "entry_directions")


# Bits are compared, and ways are what options choose: a seed would add nothing.
@pytest.mark.parametrize("kind", ["noise", "zeros", "enormous"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("epsilon", [1.0, 1e4])
def test_directions_follow_from_their_releases(epsilon, model, kind):
    def make() -> Any:
        return build(model, shape=SHAPE, epsilon=epsilon, random_state=np.random.RandomState(0))

    first, second = (X, values("components")), (X, values(kind))
    for data, other in ((first, second), (second, first)):
        replaying.replay(make, fit_and_use, data, other)


@pytest.mark.parametrize("model", MODELS)
def test_with_next_to_no_noise_components_are_there_to_be_followed(model):
    made = build(model, shape=SHAPE, epsilon=1e4, random_state=np.random.RandomState(0))
    assert fit_and_use(made, (X, values("components")))._shared.components is not None
