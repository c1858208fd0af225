"""What completions refuse, before any budget is spent."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from small_completions import INF, MODELS, SHAPE, SLICE, T0, X0, Y0, build

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    NotEnoughDataWarning,
    PrivateCPCompletion,
    PrivateTuckerCompletion,
)

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")
all_models = pytest.mark.parametrize("model", MODELS)

WRONG = {
    "no bounds": ({"bounds": None}, "bounds"),
    "reversed": ({"bounds": (2, 1)}, "low < high"),
    "equal": ({"bounds": (2, 2)}, "low < high"),
    "nan": ({"bounds": (0, np.nan)}, "bounds"),
    "infinite": ({"bounds": (-INF, 1)}, "bounds"),
    "three": ({"bounds": (0, 1, 2)}, "bounds"),
    "strings": ({"bounds": ("0", "1")}, "bounds"),
    "an array of no dimension": ({"bounds": np.array(3.0)}, "bounds"),
    "too wide to be squared": ({"bounds": (-1e200, 1e200)}, "bounds"),
    "too narrow to be squared": ({"bounds": (0, 1e-200)}, "apart"),
    "a mode too few": ({"shape": (9, 8)}, "shape"),
    "shape of floats": ({"shape": (9.0, 8, 6)}, "shape"),
    "no rows": ({"shape": (9, 8, 0)}, "shape"),
    "too small": ({"shape": (9, 8, 5)}, "beyond shape"),
    "unknown": ({"perturbation": "none"}, "perturbation"),
    "unknown unit": ({"privacy_unit": "user"}, "privacy_unit"),
    "units without shape": ({"privacy_unit": "slice"}, "shape"),
    "units of no mode": ({**SLICE, "unit_mode": 3}, "unit_mode"),
    "negative mode": ({**SLICE, "unit_mode": -1}, "unit_mode"),
    "units, gradient": ({**SLICE, "perturbation": "gradient"}, "slice"),
    "units, input": ({**SLICE, "perturbation": "input"}, "slice"),
    "units, output": ({**SLICE, "perturbation": "output"}, "slice"),
    "no steps": ({"perturbation": "gradient", "max_iter": 0}, "max_iter"),
    "fractional steps": ({"max_iter": 1.5}, "max_iter"),
    "negative rank": ({"rank": -1}, "rank"),
    "epsilon 0": ({"epsilon": 0}, "epsilon"),
    "regularization 0": ({"regularization": 0}, "regularization"),
    "regularization inf": ({"regularization": INF}, "regularization"),
    "epsilon beyond numbers": ({"epsilon": 1e300}, "epsilon"),
    "too small for the law": ({"epsilon": 1e-10}, "epsilon"),
    "half is too small": ({"epsilon": 1.5e-9, "perturbation": "output"}, "epsilon"),
}


@all_models
@pytest.mark.parametrize("name", WRONG)
def test_wrong_parameters_cost_nothing(name, model):
    parameters, message = WRONG[name]
    accountant = BudgetAccountant(100.0, 1e-6)
    estimator = build(model, accountant=accountant, **parameters)
    with pytest.raises(ValueError, match=message):
        estimator.fit(X0, Y0)
    assert accountant.entries == ()
    assert not hasattr(estimator, "shape_")


@pytest.mark.parametrize(
    "rank", [0, (2, 2), (2, 2, 0), (2, 2, 7), (2, 2, 1.5), "2", None, np.ones((3, 1))], ids=str
)
def test_wrong_ranks_of_modes_cost_nothing(rank):
    accountant = BudgetAccountant(100.0, 1e-6)
    with pytest.raises(ValueError, match="rank"):
        build(PrivateTuckerCompletion, rank=rank, accountant=accountant).fit(X0, Y0)
    assert accountant.entries == ()


def replaced(array, value, dtype=float):
    result = array.astype(dtype)
    result.flat[4] = value
    return result


WRONG_DATA = {
    "fractional": (replaced(X0, 1.5), Y0, "integer"),
    "negative": (replaced(X0, -1), Y0, "Negative values"),
    "nan coordinate": (replaced(X0, np.nan), Y0, "NaN"),
    "infinite coordinate": (replaced(X0, INF), Y0, "infinite"),
    "enormous coordinate": (replaced(X0, 1e30), Y0, "too large"),
    "strings": (X0.astype(str), Y0, "OrdinalEncoder"),
    "a secret string": (replaced(X0, "secret", object), Y0, "OrdinalEncoder"),
    "complex": (X0 * 1j, Y0, "Complex"),
    "one mode": (X0[:, :1], Y0, "minimum of 2"),
    "no table": (X0[:, 0], Y0, "2D"),
    "nan value": (X0, replaced(Y0, np.nan), "y contains NaN"),
    "infinite value": (X0, replaced(Y0, -INF), "y contains NaN or infinity"),
    "no values": (X0, None, "y"),
    "too few values": (X0, Y0[1:], "y must"),
    "values of strings": (X0, replaced(Y0, "secret", object), "y must hold numbers"),
    "nothing": (X0[:0], Y0[:0], "no entries"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_DATA)
def test_wrong_data_costs_nothing_and_is_not_shown(name):
    X, y, message = WRONG_DATA[name]
    accountant = BudgetAccountant(100.0, 1e-6)
    with pytest.raises(ValueError, match=message) as caught:
        build(accountant=accountant).fit(X, y)
    assert "secret" not in str(caught.value)
    assert accountant.entries == ()


@all_models
def test_wrong_tensors_cost_nothing(model):
    accountant = BudgetAccountant(100.0, 1e-6)
    estimator = build(model, accountant=accountant)
    with pytest.raises(ValueError, match="mask must have shape"):
        estimator.fit_tensor(T0, np.ones((9, 8), bool))
    with pytest.raises(ValueError, match="T must have shape"):
        clone(estimator).set_params(shape=(9, 8, 7)).fit_tensor(T0)
    with pytest.raises(ValueError, match="y contains NaN"):
        estimator.fit_tensor(replaced(T0, np.nan), np.ones(SHAPE, bool))
    with pytest.raises(ValueError):
        estimator.fit_tensor(T0[0, 0])
    assert accountant.entries == ()


def test_a_fit_that_cannot_be_paid_changes_nothing():
    accountant = BudgetAccountant(1.0, 1e-6)
    for parameters in ({}, SLICE):
        estimator = build(accountant=accountant, epsilon=2.0, **parameters)
        with pytest.raises(BudgetError):
            estimator.fit(X0, Y0)
        assert not hasattr(estimator, "mean_")
    assert accountant.entries == ()


@pytest.mark.parametrize("perturbation", ["input", "sufficient_statistics", "gradient", "output"])
def test_modes_may_have_ranks_of_their_own(perturbation):
    """Gradients were paid for, and then refused factors of different widths."""
    model = build(
        PrivateTuckerCompletion, rank=(3, 2, 1), perturbation=perturbation, max_iter=1, epsilon=20.0
    ).fit(X0, Y0)
    assert np.isfinite(model.predict(X0)).all()


def test_who_makes_errors_of_warnings_pays_nothing_where_public_numbers_show_no_components():
    accountant = BudgetAccountant(1.0, 1e-6)
    before = accountant.remaining()
    model = PrivateCPCompletion(2, bounds=(0, 1), epsilon=0.1, accountant=accountant)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotEnoughDataWarning)
        with pytest.raises(NotEnoughDataWarning, match="no components"):
            model.fit([[0, 0], [1, 1]], [0.0, 1.0])
    assert accountant.remaining() == before
    assert not hasattr(model, "mean_")


N_ENTRIES = 1711
WRONG_COORDINATES = {
    "a vector": np.ones(N_ENTRIES), "three axes": np.ones((N_ENTRIES, 2, 2)),
    "no columns": np.ones((N_ENTRIES, 0)), "one column": np.ones((N_ENTRIES, 1)),
    "three columns": np.ones((N_ENTRIES, 3)), "ragged": [[0, 0]] * (N_ENTRIES - 1) + [[0]],
    "text": [["a", "b"]] * N_ENTRIES, "fractions": np.full((N_ENTRIES, 2), 0.5),
    "beyond": np.full((N_ENTRIES, 2), 99), "below": np.full((N_ENTRIES, 2), -1),
    "sparse": sp.csr_array(np.ones((N_ENTRIES, 2))), "None": None,
}  # fmt: skip
WRONG_VALUES = {
    "too few": np.ones(N_ENTRIES - 1), "two columns": np.ones((N_ENTRIES, 2)),
    "three axes": np.ones((N_ENTRIES, 1, 1)), "text": ["a"] * N_ENTRIES,
    "NaN": np.full(N_ENTRIES, np.nan), "a scalar": 3.0, "None": None,
    "sparse": sp.csr_array(np.ones((1, N_ENTRIES))),
    "ragged": [[1.0]] * (N_ENTRIES - 1) + [[1.0, 2.0]],
}  # fmt: skip


@pytest.mark.parametrize("names", [None, (None, [0, 1, 2, 3, 4])], ids=["numbers", "names"])
def test_no_error_tells_how_many_entries_units_have(names):
    """For slices that is private: a unit may have any number of them."""
    right = np.zeros((N_ENTRIES, 2), int), np.ones(N_ENTRIES)
    fine = {"beyond", "below", "text"} if names else set()  # ids like others
    wrong = [(name, X, right[1]) for name, X in WRONG_COORDINATES.items() if name not in fine]
    wrong += [(name, right[0], y) for name, y in WRONG_VALUES.items()]
    for name, X, y in wrong:
        model = PrivateCPCompletion(
            0, bounds=(0, 1), shape=(30, 5), privacy_unit="slice", row_names=names
        )
        with pytest.raises((ValueError, TypeError)) as error:
            model.fit(X, y)
        assert error.value.__context__ is None
        assert re.search(r"1_?71[01]|3422", str(error.value)) is None, name


def test_no_error_tells_how_many_entries_a_partition_has():
    da = pytest.importorskip("dask.array", reason="the extra [dask] is not installed")
    X = da.from_array(np.zeros((N_ENTRIES, 2)), chunks=(N_ENTRIES, 2))
    model = PrivateCPCompletion(0, bounds=(0, 1), shape=(30, 5), privacy_unit="slice")
    for y in (np.ones((N_ENTRIES, 2)), np.ones(N_ENTRIES).astype(str)):
        with pytest.raises(ValueError, match="y must") as error:
            model.fit(X, da.from_array(y, chunks=N_ENTRIES))
        assert re.search(r"1_?71[01]|3422", str(error.value)) is None
