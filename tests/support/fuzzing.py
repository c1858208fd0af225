"""Strange data and parameters for estimators, and what has to hold whatever they are."""

import contextlib
import copy
import math
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from sktensor_dp import BudgetAccountant, PrivateCountVectorizer

# Values that no message may show.
MARKER, WORD = 987654321.125, "zqxjmarkerword"
SHOWN = ("987654321", "9.87654321e", "9.876543e", WORD)

CELLS = [0, 1, 2, 3, 0.5, -1, -2.5, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 1e30]
CELLS.append(MARKER)
COUNTS = [0, 0, 1, 1, 2, 3, 7]
DTYPES = ["f8", "f4", "f2", "i8", "i4", "u1", "?", "O", "c16", "U12", "S12", "M8[s]", "m8[s]"]
NO_ARRAYS = [None, "text", b"bytes", 3, MARKER, {}, {1: 2}, set(), ..., [[]], [[1, 2], [3]],
             [["a", WORD]], [None], range(4), iter([[1, 2]])]  # fmt: skip


def _wrapped(array: np.ndarray, form: str) -> Any:
    """The array in another container, where it fits into it."""
    numeric = array.dtype.kind in "fiub" and array.dtype != np.float16
    if form == "list":
        return array.tolist()
    if form in ("csr", "csc", "coo") and array.ndim == 2 and numeric:
        return getattr(sp, f"{form}_array")(array)
    if form == "frame" and array.ndim == 2:
        import pandas as pd

        return pd.DataFrame(array)
    if form == "strided" and array.ndim:
        return np.repeat(array, 2, axis=0)[::2]
    if form == "fortran":
        return np.asfortranarray(array)
    if form == "foreign" and numeric:
        return array.astype(array.dtype.newbyteorder())
    if form == "frozen":
        array.flags.writeable = False
    return array


@st.composite
def arrays(
    draw: Any, cells: list[Any] = CELLS, ndims: tuple[int, ...] = (2, 2, 2, 2, 0, 1, 3)
) -> Any:
    """Arrays of few entries in all shapes, types and containers; mostly matrices."""
    shape = tuple(
        draw(st.sampled_from([0, 1, 2, 3, 5])) for _ in range(draw(st.sampled_from(ndims)))
    )
    values = draw(
        st.lists(st.sampled_from(cells), min_size=math.prod(shape), max_size=math.prod(shape))
    )
    array = np.empty(shape, dtype=object)
    array.flat = values
    dtype = draw(st.sampled_from(["f8"] * 8 + DTYPES))
    with warnings.catch_warnings(), contextlib.suppress(ValueError, TypeError, OverflowError):
        warnings.simplefilter("ignore")
        array = array.astype(dtype)
    forms = ["plain", "list", "csr", "csc", "coo", "frame", "strided", "fortran", "foreign"]
    forms.append("frozen")
    return _wrapped(array, draw(st.sampled_from(forms)))


def data(cells: list[Any] = CELLS) -> Any:
    """What may be passed as X: mostly arrays."""
    return st.one_of(arrays(cells), arrays(COUNTS), arrays(COUNTS), st.sampled_from(NO_ARRAYS))


def documents() -> Any:
    """What may be passed as documents: mostly lists of texts."""
    foreign = b"\xff\xfe" + WORD.encode()
    odd = [None, 3, MARKER, foreign, b"cats", [], "", "\ud800", "a\0b", math.nan]
    texts = st.sampled_from(["cats chase mice", WORD, "to be", "", "\u00e9t\u00e9", " "])
    lists = st.lists(texts, max_size=6)
    mixed = st.lists(st.one_of(texts, st.sampled_from(odd)), max_size=4)
    forms = st.sampled_from([list, tuple, np.array, lambda x: np.array(x, dtype=object), iter])
    return st.one_of(
        st.builds(lambda form, x: form(x), forms, lists), mixed, mixed, st.sampled_from(NO_ARRAYS)
    )


WILD = [
    None, True, False, -1, 0, 1, 2, 2.5, math.nan, math.inf, -math.inf, 1e-300, 1e300, "auto", "x",
    "", b"x", [], (), (0, 1), (1, 0), (1,), (2, 2), [1, 2, 3], (-4.0, 4.0), {}, {"counts": -1},
    {"counts": 2.0}, {"x": 1}, {1: 2}, set(), np.float64(0.5), np.int64(2), np.array([1.0, 2.0]),
    np.array(3.0), np.array([[1]]), np.array(["a"]), 1j, np.datetime64("NaT", "D"), ..., slice(3),
]  # fmt: skip
# Where memory or time grow with the number, a large one is a wish and no error. Costs are floats.
HUGE = [10**30, 2**63, 2**32, 10**400]
GROWING = {"n_restarts", "max_iter", "n_refinements", "rank", "epsilon"}


@st.composite
def parameters(draw: Any, estimator: Any, own: dict[str, list[Any]]) -> dict[str, Any]:
    """Some parameters of an estimator, each of its own values or of wild ones."""
    known = sorted(set(estimator.get_params()) - {"accountant"})
    chosen = {}
    for name in draw(st.lists(st.sampled_from(known), max_size=3, unique=True)):
        wild = WILD if name in GROWING else WILD + HUGE
        if name == "epsilon":  # squares of what it stands for have to be numbers
            wild = [value for value in wild if repr(value) != "1e+300"]
        chosen[name] = draw(st.sampled_from(own.get(name, []) * 4 + wild))
    return chosen


def same(first: Any, second: Any) -> bool:
    """Whether two pieces of data are equal, NaN to NaN."""
    if sp.issparse(first):
        return same(first.toarray(), second.toarray()) and first.format == second.format
    if hasattr(first, "to_numpy"):
        return same(first.to_numpy(), second.to_numpy())
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and same(first.tolist(), second.tolist())
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if hasattr(first, "__next__"):  # shown by its address, which a copy has not
        return type(first) is type(second)
    return repr(first) == repr(second)


def _copied(value: Any) -> Any:
    return value if hasattr(value, "__next__") else copy.deepcopy(value)


def _shown_parameters(estimator: Any) -> dict[str, str]:
    given = estimator.get_params()
    return {name: repr(value) for name, value in given.items() if name != "accountant"}


def attempt(estimator: Any, method: str, *passed: Any, **options: Any) -> BaseException | None:
    """Call a method on data; assert what has to hold, and return the error, if any."""
    accountant = estimator.get_params().get("accountant")
    spent = len(accountant.entries) if accountant is not None else 0
    before = _shown_parameters(estimator)
    copies = [_copied(value) for value in passed]
    error: BaseException | None = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(estimator, method)(*passed, **options)
    # Documented of all methods; NotFittedError and BudgetError are ValueErrors. Of a method
    # that some parameters have not, an AttributeError.
    except (ValueError, TypeError) as caught:
        error = caught
    except AttributeError as caught:
        # scikit-learn's own transform of texts asks what is no text for its methods.
        inherited = method == "transform" and isinstance(estimator, PrivateCountVectorizer)
        if method not in ("partial_fit", "fold_in") and not inherited:
            raise
        error = caught
    assert all(
        same(a, b) for a, b in zip(passed, copies, strict=True) if not hasattr(a, "__next__")
    )
    assert _shown_parameters(estimator) == before
    if error is not None:
        check_error(estimator, error)
        charged = accountant is not None and len(accountant.entries) > spent
        # Whether words remain is known after their release alone.
        late = isinstance(estimator, PrivateCountVectorizer) and " remains: " in str(error)
        assert not charged or late, f"charged before: {error!r}"
    return error


def check_error(estimator: Any, error: BaseException) -> None:
    """The chain of errors shows nothing of the data, to a reader of a traceback either."""
    own = repr(estimator.get_params())
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None:
            text = str(one) + repr(one)
            assert not any(part in text for part in SHOWN if part not in own), text[:300]
            assert len(text) < 5000
            # What ``from None`` hides is still there.
            waiting += [one.__cause__, one.__context__]


def funded(estimator: Any, **values: Any) -> Any:
    """The estimator with parameters, and with an accountant that can pay for anything."""
    return estimator.set_params(accountant=BudgetAccountant(1e9, 0.9), **values)
