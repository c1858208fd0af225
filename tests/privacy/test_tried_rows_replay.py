"""Fits that ask some rows first follow from what was released, whichever way they go on."""

from functools import partial
from typing import Any

import folded_tables
import numpy as np
import pytest
import replaying
from folded_tables import SHAPE, X, values
from small_completions import MODELS, build

from sktensor_dp.completion import plan, tried_rows


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are tried too."""
    monkeypatch.setattr(plan, "detectability", lambda *_: 2.0)
    monkeypatch.setattr(plan, "values_pay", lambda *_: True)
    monkeypatch.setattr(plan, "_tried", lambda *_: 4)


# Bits are compared, and ways are what options choose: a seed would add nothing.
@pytest.mark.parametrize("kind", ["noise", "zeros", "enormous"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("way", "least"), [("entries", -1e9), ("row_sums", 1e9)])
@pytest.mark.parametrize("paired", [0.0, 1 / 8])
def test_what_the_rest_is_asked_follows_from_the_first(
    paired, way, least, model, kind, monkeypatch
):
    monkeypatch.setattr(tried_rows, "_cost", lambda *_: 1.0)
    monkeypatch.setattr(tried_rows, "_least_shown", lambda *_: least)
    monkeypatch.setattr(tried_rows, "folding_share", lambda *_: (paired, 0))

    def make() -> Any:
        return build(model, shape=SHAPE, random_state=np.random.RandomState(0))

    first, second = (X, values("components")), (X, values(kind))
    for data, other in ((first, second), (second, first)):
        seen = replaying.replay(make, partial(folded_tables.fit_and_use, way), data, other)
        asked = [release[0] for release in seen.releases[::2]]
        rest = ["entries"] if way == "entries" else ["row_sums"] + ["entry_pairs"] * (paired > 0)
        assert asked == ["entries", *rest]


@pytest.mark.parametrize("model", MODELS)
def test_the_way_is_chosen_by_what_was_released(model):
    """With next to no noise components pay, and are followed."""

    def make() -> Any:
        return build(model, shape=SHAPE, epsilon=1e4, random_state=np.random.RandomState(0))

    data, use = (X, values("components")), partial(folded_tables.fit_and_use, "entries")
    assert use(make(), data).perturbation_ == "input"
    replaying.replay(make, use, data, (X, values("noise")))
    replaying.replay(make, use, (X, values("noise")), data)
