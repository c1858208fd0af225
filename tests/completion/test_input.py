"""What completions refuse before any budget is spent, and entries in partitions of Dask."""

import logging
import re
import warnings
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from person_entries import BOUNDS, SHAPE, N, entries
from small_completions import X0, Y0, build

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivateCPCompletion,
    PrivateTuckerCompletion,
)

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
        (PrivateCPCompletion(2, bounds=(0, 1), epsilon=0.1), "No components can be seen"),
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


CHUNKS = (200, 1, 399, 300)
SECRET = 987654321


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def lazy(X: Any, y: Any) -> tuple[Any, Any]:
    return da.from_array(X, chunks=(CHUNKS, (3,))), da.from_array(y, chunks=250)


class Reading:
    """Entries that say when they are computed."""

    def __init__(self, n_modes: int = 3) -> None:
        self.n, self.n_modes = 0, n_modes

    def block(self, part: int) -> np.ndarray:
        self.n += 1
        return entries()[part]

    def arrays(self) -> tuple[Any, Any]:
        read = dask.delayed(self.block, pure=False, traverse=False)
        shapes = (np.nan, self.n_modes), (np.nan,)
        return tuple(
            da.from_delayed(read(part), shape, dtype=float) for part, shape in enumerate(shapes)
        )  # type: ignore[return-value]


def test_nothing_is_computed_before_the_charge():
    source, budget = Reading(), BudgetAccountant(0.5, 1e-6)
    of: dict[str, Any] = {
        "bounds": BOUNDS, "shape": SHAPE, "unit_mode": 0, "accountant": budget
    }  # fmt: skip
    with pytest.raises(BudgetError):
        PrivateCPCompletion(1, **of).fit(*source.arrays())
    assert source.n == 0
    PrivateCPCompletion(1, epsilon=0.5, **of).fit(*source.arrays())
    assert source.n > 0


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no shape": (Reading().arrays(), {"shape": None}, "'shape' parameter must be given"),
    "another shape": (Reading(2).arrays(), {}, "shape must hold one int >= 1 for each of the 2"),
    "no such mode": (Reading().arrays(), {"unit_mode": 3}, r"unit_mode must be one of 0\.\.2"),
    "few values": (lazy(entries()[0], entries()[1][:-1]), {}, "y must hold one value for each row"),
    "columns": (lazy(entries()[0], entries()[1][:, None]), {}, "y must hold one value"),
    "no values": ((lazy(*entries())[0], None), {}, "requires y to be passed"),
    "text": (lazy(entries()[0].astype(str), entries()[1]), {}, "encode categories first"),
    "values of text": (lazy(entries()[0], entries()[1].astype(str)), {}, "got text; encode it"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_not_charged(case):
    data, given, message = REFUSED[case]
    budget = BudgetAccountant(1.0, 1e-6)
    of = {"bounds": BOUNDS, "shape": SHAPE, "unit_mode": 0, "accountant": budget}
    with pytest.raises((ValueError, TypeError), match=message):
        PrivateCPCompletion(1, **{**of, **given}).fit(*data)
    assert budget.total()[0] == 0


def raising(block: np.ndarray) -> np.ndarray:
    raise KeyError(f"entry {block[0]} {SECRET}")


FAULTS: dict[str, Any] = {
    "beyond the shape": lambda X, y: lazy(X + SECRET, y),
    "negative": lambda X, y: lazy(X - SECRET, y),
    "fractions": lambda X, y: lazy(X + 0.5, y),
    "not finite": lambda X, y: lazy(X, y + np.inf),
    "a block that raises": lambda X, y: (
        lazy(X, y)[0], lazy(X, y)[1].map_blocks(raising, meta=np.zeros(0))
    ),
    "fewer values than told": lambda X, y: (
        lazy(X, y)[0].rechunk((N, 3)),
        da.from_delayed(dask.delayed(y[1:]), (N,), dtype=float),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_faults_end_the_fit_with_the_charge_and_show_no_data(case, caplog):
    budget = BudgetAccountant(1.0, 1e-6)
    model = PrivateCPCompletion(1, bounds=BOUNDS, shape=SHAPE, unit_mode=0, accountant=budget)
    with caplog.at_level(logging.DEBUG), pytest.raises((ValueError, LookupError)) as caught:
        model.fit(*FAULTS[case](*entries()))
    error: BaseException | None = caught.value
    while error is not None:
        assert str(SECRET) not in repr(error)
        error = error.__cause__ or error.__context__
    assert str(SECRET) not in caplog.text
    assert budget.total()[0] > 0
    assert not hasattr(model, "mean_")
