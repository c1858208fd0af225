"""What completions refuse before any budget is spent."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from small_completions import X0, Y0, build

from sktensor_dp import BudgetAccountant, BudgetError, PrivateCPCompletion, PrivateTuckerCompletion

pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


@pytest.mark.parametrize("perturbation", ["input", "sufficient_statistics", "gradient", "output"])
def test_modes_may_have_ranks_of_their_own(perturbation):
    """Gradients were paid for, and then refused factors of different widths."""
    model = build(
        PrivateTuckerCompletion, rank=(3, 2, 1), perturbation=perturbation, epsilon=20.0
    ).fit(X0, Y0)
    assert np.isfinite(model.predict(X0)).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PrivateCPCompletion(2, bounds=(0, 1), epsilon=0.1), "Components are not sought"),
        (PrivateTuckerCompletion(51, bounds=(0, 1), shape=(60, 60), perturbation="input"),
         "will take minutes"),
    ],
)  # fmt: skip
def test_who_makes_errors_of_warnings_pays_nothing_where_public_numbers_cause_them(model, message):
    accountant = BudgetAccountant(1.0, 1e-6)
    before = accountant.remaining()
    model.set_params(accountant=accountant)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=message):
            model.fit([[0, 0], [1, 1]], [0.0, 1.0])
        assert accountant.remaining() == before
        with pytest.raises(BudgetError):  # no result is promised where none is to come
            model.set_params(epsilon=2.0).fit([[0, 0], [1, 1]], [0.0, 1.0])
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
        model = PrivateCPCompletion(0, bounds=(0, 1), shape=(30, 5), unit_mode=0, row_names=names)
        with pytest.raises((ValueError, TypeError)) as error:
            model.fit(X, y)
        assert error.value.__context__ is None
        assert re.search(r"1_?71[01]|3422", str(error.value)) is None, name


def test_no_error_tells_how_many_entries_a_partition_has():
    da = pytest.importorskip("dask.array", reason="the extra [dask] is not installed")
    X = da.from_array(np.zeros((N_ENTRIES, 2)), chunks=(N_ENTRIES, 2))
    model = PrivateCPCompletion(0, bounds=(0, 1), shape=(30, 5), unit_mode=0)
    for y in (np.ones((N_ENTRIES, 2)), np.ones(N_ENTRIES).astype(str)):
        with pytest.raises(ValueError, match="y must") as error:
            model.fit(X, da.from_array(y, chunks=N_ENTRIES))
        assert re.search(r"1_?71[01]|3422", str(error.value)) is None
