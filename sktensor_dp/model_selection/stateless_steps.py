"""Steps that learn nothing, asked so that no row of training data makes them fail."""

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from sktensor_dp.estimator.base import PrivateEstimatorMixin
from sktensor_dp.model_selection.unit_rows import n_rows, one_row
from sktensor_dp.queries.reading import as_numbers

# What may stand in the place of a row that is refused, by the kind of what holds it: the first
# that the step accepts.
NUMBERS, TEXTS = (0, 1), ("", "blank")
OBJECTS: tuple[Any, ...] = (*TEXTS, *NUMBERS, {}, [])

Fill = Callable[[Any, NDArray[np.intp]], Any]


@contextmanager
def asked_row_by_row(
    model: Any, public_steps: Collection[str], after: Any = None
) -> Iterator[None]:
    """While it is open, a pipeline's stateless steps do without the rows that they refuse.

    `after` is the step that comes after the pipeline, where there is one.
    """
    if not isinstance(model, Pipeline):
        yield
        return
    before = model.steps
    nexts = [*(step for _, step in before[1:]), after]
    with ExitStack() as inner:
        model.steps = [
            (name, step if name in public_steps else _guarded(step, public_steps, inner, later))
            for (name, step), later in zip(before, map(_first, _followers(nexts)), strict=True)
        ]
        try:
            yield
        finally:
            model.steps = [
                (name, step.step if isinstance(step, RowByRow) else step)
                for name, step in model.steps
            ]


def check_blank_rows(estimator: Any, public_steps: Collection[str], X: Any) -> None:
    """Refuse a first step that learns nothing and accepts no blank row; no row of X is read."""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[0]
        if name in public_steps or estimator is None or estimator == "passthrough":
            return
    if not isinstance(estimator, PrivateEstimatorMixin):
        with warnings.catch_warnings():  # what numpy says of a row of zeros
            warnings.simplefilter("ignore")
            step = RowByRow(estimator)
            step.blank(X, step._made)


def _followers(steps: Sequence[Any]) -> list[Any]:
    """Of each place, the first step from there on that does something."""
    found: list[Any] = []
    for step in reversed(steps):
        does = step is not None and not (isinstance(step, str) and step == "passthrough")
        found.append(step if does or not found else found[-1])
    return found[::-1]


def _first(step: Any) -> Any:
    """The first step of a pipeline, or what is none itself."""
    while isinstance(step, Pipeline):
        step = _followers([one for _, one in step.steps])[0]
    return step


def _guarded(step: Any, public_steps: Collection[str], inner: ExitStack, later: Any) -> Any:
    if isinstance(step, Pipeline):
        inner.enter_context(asked_row_by_row(step, public_steps, later))
        return step
    private = isinstance(step, PrivateEstimatorMixin)
    if private or step is None or step == "passthrough":
        return step
    return RowByRow(step, finite=isinstance(later, PrivateEstimatorMixin))


class RefusedRowError(ValueError):
    """What a step made of a row where it should have made one row of finite numbers."""


class RowByRow(BaseEstimator):
    """A stateless step in whose fit a public blank row stands for each row that it refuses.

    A row is refused by an error, by leaving it out, and, with `finite`, by making NaN or infinity
    of it, which the private step that comes next would refuse.
    """

    # That a step fails on a row is told neither by an error nor by the number of rows, and the
    # other rows go through as they are. A blank row is tried first, whatever the rows are: a step
    # that refuses it would fail on data with a row that it refuses, and on no other.

    def __init__(self, step: Any, finite: bool = False) -> None:
        self.step = step
        self.finite = finite

    def fit(self, X: Any, y: Any = None) -> "RowByRow":
        """Fit the step, which learns nothing."""
        self._asked(X, y, lambda step, rows, told: step.fit(rows, told))
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """What the step makes of rows."""
        return self._asked(X, y, self._made)

    def transform(self, X: Any) -> Any:
        """What the step makes of rows of other data."""
        return self.step.transform(X)

    def _made(self, step: Any, X: Any, y: Any) -> Any:
        """What a step makes of rows: one row of each."""
        found = _transformed(step, X, y)
        if n_rows(found) != n_rows(X):
            raise RefusedRowError("another number of rows")
        if self.finite and not _is_finite(found):
            raise RefusedRowError("NaN or infinity")
        return found

    def _asked(self, X: Any, y: Any, ask: Callable[[Any, Any, Any], Any]) -> Any:
        blank = self.blank(X, ask)
        with suppress(Exception):
            return ask(self.step, X, y)
        number, refused = n_rows(X), []
        rows = X.tocsr() if sp.issparse(X) else X  # of other formats none can be taken
        for row in range(number):
            try:
                ask(clone(self.step), one_row(rows, row), one_row(y, row))
            except Exception:  # whatever it says
                refused.append(row)
        with suppress(Exception):
            return ask(self.step, blank(X, np.array(refused, dtype=np.intp)), y)
        raise ValueError(
            f"A {type(self.step).__name__} of the estimator accepts rows one by one and not "
            "together: a step has to treat every row by itself."
        )

    def blank(self, X: Any, ask: Callable[[Any, Any, Any], Any]) -> Fill:
        """How to put blank rows in the place of some, as this step accepts them."""
        first, failed = np.zeros(1, dtype=np.intp), ""
        for fill in _fills(X):
            try:
                ask(clone(self.step), fill(one_row(X, 0), first), None)
                return fill
            except RefusedRowError as refused:
                failed = failed or f"makes {refused}"
            except Exception as error:
                failed = failed or f"fails with {type(error).__name__}"
        raise ValueError(
            f"A {type(self.step).__name__} of the estimator must accept a blank row (zeros or "
            "ones, or an empty text): such a row stands for each that the step refuses, as an "
            f"error would tell that there is one. On a blank row it {failed}."
        )


def _transformed(step: Any, X: Any, y: Any) -> Any:
    if hasattr(step, "fit_transform"):
        return step.fit_transform(X, y)
    return step.fit(X, y).transform(X)


def _is_finite(found: Any) -> bool:
    """Whether there is neither NaN nor infinity among numbers."""
    table = found.data if sp.issparse(found) else as_numbers(found, "X")
    numbers = getattr(getattr(table, "dtype", None), "kind", "") == "f"
    return not numbers or bool(np.isfinite(table).all())


def _fills(X: Any) -> Sequence[Fill]:
    """Ways to blank rows of a container, by its type and that of its columns alone."""
    if sp.issparse(X):
        return [_blank_sparse]
    if hasattr(X, "clear") and hasattr(X, "vstack"):  # a frame of polars
        return [_blank_polars]
    if hasattr(X, "iloc"):
        fill = _blank_frame if hasattr(X, "columns") else _blank_series
        return [partial(fill, *values) for values in zip(NUMBERS, TEXTS, strict=True)]
    if hasattr(X, "shape"):
        kind = X.dtype.kind
        values = OBJECTS if kind == "O" else TEXTS if kind in "US" else NUMBERS
        return [partial(_blank_items, value) for value in values]
    return [partial(_blank_items, value) for value in OBJECTS]


def _places(frame: Any, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    places = np.arange(n_rows(frame))
    places[rows] = len(places)
    return places


def _blank_polars(frame: Any, rows: NDArray[np.intp]) -> Any:
    # Each value goes to the columns of its kind.
    blank = frame.clear(1).fill_null(0).fill_null("")
    return frame.vstack(blank)[_places(frame, rows).tolist()]


def _blank_sparse(matrix: Any, rows: NDArray[np.intp]) -> Any:
    kept = np.ones(matrix.shape[0], dtype=matrix.dtype)
    kept[rows] = 0
    csr = matrix.tocsr(copy=True)
    csr.data[np.repeat(kept == 0, np.diff(csr.indptr))] = 0
    csr.eliminate_zeros()
    return csr.asformat(matrix.format)


def _blank_items(value: Any, items: Any, rows: NDArray[np.intp]) -> Any:
    items = items.copy() if hasattr(items, "shape") else list(items)
    for row in rows.tolist():
        items[row] = value
    return items


def _blank_frame(number: int, text: str, frame: Any, rows: NDArray[np.intp]) -> Any:
    frame = frame.copy()
    for column, kind in enumerate(map(str, frame.dtypes)):
        value: Any = text if kind in ("object", "str", "string") else None
        if kind.lower().startswith(("int", "uint", "float")):
            value = number
        elif kind.startswith("bool"):
            value = bool(number)
        frame.iloc[rows, column] = value
    return frame


def _blank_series(number: int, text: str, series: Any, rows: NDArray[np.intp]) -> Any:
    return _blank_frame(number, text, series.to_frame(), rows).iloc[:, 0]
