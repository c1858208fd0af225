"""Arguments of fits that would break a bound are refused with the reason, unspent."""

import numpy as np
import pytest

from sktensor_dp import (
    BudgetAccountant,
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateSearchCV,
    PrivateSpectralLDA,
    PrivateTensorPowerMethod,
    PrivateTuckerCompletion,
)

CELLS = np.argwhere(np.ones((6, 6)))
LABELS = np.repeat([f"person{i}" for i in range(6)], 6)
COMPLETIONS = [PrivateCPCompletion, PrivateTuckerCompletion]


@pytest.fixture
def budget():
    return BudgetAccountant(10.0, 1e-6)


@pytest.mark.parametrize("kind", COMPLETIONS)
@pytest.mark.parametrize("unit", ["entry", "slice"])
@pytest.mark.parametrize("method", ["fit", "fit_tensor"])
def test_completions_take_no_groups_and_say_what_protects_persons(kind, unit, method, budget):
    model = kind(1, bounds=(0, 1), shape=(6, 6), privacy_unit=unit, accountant=budget)
    data = (CELLS, np.zeros(36)) if method == "fit" else (np.zeros((6, 6)),)
    with pytest.raises(TypeError, match=rf"{method} takes no groups: .*privacy_unit='slice'") as e:
        getattr(model, method)(*data, groups=LABELS)
    assert "person0" not in str(e.value)
    with pytest.raises(TypeError, match=rf"{method} takes no sample_weight: how much"):
        getattr(model, method)(*data, sample_weight=np.ones(36))
    assert budget.entries == ()
    assert not hasattr(model, "shape_")


def test_tensors_take_no_groups(budget):
    model = PrivateTensorPowerMethod(1, accountant=budget)
    with pytest.raises(TypeError, match=r"fit_tensor takes no groups: its units are no rows"):
        model.fit_tensor(np.zeros((3, 3, 3)), groups=[0, 1, 2])
    assert budget.entries == ()


@pytest.mark.parametrize(
    ("model", "X"),
    [
        (PrivateSpectralLDA(2), np.ones((8, 4))),
        (PrivateTensorPowerMethod(2, data_norm=8.0), np.ones((8, 4))),
        (PrivateCountVectorizer(), ["a text"] * 8),
        (PrivateSearchCV(PrivateSpectralLDA(), {"n_components": [2]}), np.ones((8, 4))),
    ],
)
def test_weights_are_refused_everywhere(model, X, budget):
    model.set_params(accountant=budget)
    with pytest.raises(TypeError, match="takes no sample_weight: how much a row weighs"):
        model.fit(X, sample_weight=np.ones(8))
    assert budget.entries == ()
