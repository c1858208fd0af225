"""Run other libraries on raw data, and raise their errors again without their text."""

import dis
import os
import re
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")

# Messages of numpy and scikit-learn that name shapes, types and (public) names of columns, but no
# entry. All other messages are taken to quote data.
SHOWS_NONE = re.compile(
    "|".join(
        (
            r"float\(\) argument must be a string or a real number, not '[\w.]+'",
            r"setting an array element with a sequence\..*",
            r"Found array with \d+ (sample|feature)\(s\) \(shape=\([\d, ]*\)\) while .*",
            r"Found array with dim \d+[,.]? .*",
            r"X has \d+ features, but \w+ is expecting \d+ features as input\.?",
            r"Input (X |y )?contains (NaN|infinity)\b.*",
            r"Expected 2D input, got input with shape \([\d, ]*\)\..*",
            r"Expected sequence or array-like, got <class '[\w.]+'>",
            r"np\.matrix is not supported\..*",
            r"dtype='numeric' is not compatible with arrays of bytes/strings\..*",
            r"Expected a 2-dimensional container but got <class '[\w.]+'> instead\..*",
            r"Sparse data was passed( for X)?, but dense data is required\..*",
            r"The feature names should match those that were passed during fit\..*",
            r"Feature names are only supported if all input features have string names, .*",
            r"y should be a 1d array, got an array of shape \([\d, ]*\) instead\.",
            r"Found input variables with inconsistent numbers of samples: \[[\d, ]*\]",
            r"Iterable over raw text documents expected, string object received\.",
            r"np\.nan is an invalid document, expected byte or unicode string\.",
            r"'[\w.]+' object has no attribute '(lower|decode|read)'",
            r"Vocabulary not fitted or provided",
            r"This \w+ instance is not fitted yet\. .*",
        )
    ),
    re.DOTALL,
)
# Exceptions that take other arguments than a message, quote it, or stop generators; and the base
# classes of all exceptions.
NO_MESSAGE = {
    UnicodeDecodeError, UnicodeEncodeError, UnicodeTranslateError, ExceptionGroup,
    BaseExceptionGroup, KeyError, StopIteration, StopAsyncIteration, Exception, BaseException,
    object,
}  # fmt: skip
# Messages of numpy and Python that name the type of an entry that is no single number.
NO_NUMBER = re.compile(
    r"(float|int)\(\) argument must be [a-z, -]+, not '[\w.]+'|must be real number, not [\w.]+"
)
# Replaces scikit-learn's advice to use an imputer, which would learn from private data.
NO_GAPS = (
    "Put a public constant in place of missing values, chosen without the data: an imputer would "
    "learn from private values. PrivateGaussianMixture takes missing cells, and "
    "PrivateCPCompletion completes tables with gaps."
)
# Messages that name a number of rows, which may be private.
SHOWS_ROWS = re.compile(r"shape|samples?\b")
OWN = __name__.split(".")[0]
# Exceptions that end a program or a generator. Other exceptions that are no `Exception`, such as
# panics of libraries in Rust, may quote data.
PASSED = (KeyboardInterrupt, SystemExit, GeneratorExit)
END = object()


def call_unquoted(
    call: Callable[[], Result],
    name: str,
    reword: Callable[[str], str | None] = lambda message: None,
) -> Result:
    """Return ``call()``, in which another library reads `name`; its errors are raised unquoted."""
    # In this order: ``reword(message)`` as a ValueError; a known error of conversion, explained;
    # the old error if its text shows no data; else one of its nearest built-in type. None of them,
    # nor its context, holds an entry of the data.

    def replaced(error: BaseException) -> BaseException:
        """Error to raise in the place of one that may quote data."""
        if text := reword(_message(error)):
            return ValueError(text)
        hidden = _kind(error)(
            f"{name} cannot be read: {type(error).__name__}. The message may quote data and is "
            "not shown."
        )
        return _of_conversion(error, name) or _if_safe(error) or hidden

    return _replacing_errors(call, replaced)


def call_untrusted(call: Callable[[], Result], doing: str, *, rows_private: bool = False) -> Result:
    """Return ``call()``, untrusted code on raw data; its errors tell only type and place."""
    # `doing` begins the message; `rows_private` hides numbers of rows. Errors of this package, and
    # those of scikit-learn that are known to show no data, keep their text.
    return _replacing_errors(call, lambda error: _named_by_place(error, doing, rows_private))


def _replacing_errors(
    call: Callable[[], Result], replaced: Callable[[BaseException], BaseException]
) -> Result:
    """Return ``call()``; raise ``replaced(error)`` in the place of its errors."""
    try:
        with np.errstate(all="ignore"):
            return call()
    except PASSED:
        raise
    except BaseException as error:
        raised = replaced(error)
    # Raised after the handler, which would keep the old error as the context of this one.
    raise raised


def error_or(doing: str, call: Callable[..., Result], *given: object) -> Result | Exception:
    """Return ``call(*given)`` on a worker, or its error without data."""
    # Schedulers log raised errors together with the data: return the error instead.
    try:
        return call_untrusted(lambda: call(*given), doing)
    except Exception as error:
        return error.with_traceback(None)


def read_each(source: Iterable[object], doing: str) -> Iterator[Any]:
    """Yield the items of a caller's iterable; its errors are raised again without data."""
    items = call_untrusted(lambda: iter(source), doing)
    while (item := call_untrusted(lambda: next(items, END), doing)) is not END:
        yield item


def _of_conversion(error: BaseException, name: str) -> Exception | None:
    """Translate errors for tables that hold no numbers; None for other errors."""
    if isinstance(error, np.exceptions.DTypePromotionError):
        return ValueError(
            f"{name} must hold numbers; its columns have types that do not go together, such "
            "as dates or text beside numbers."
        )
    if isinstance(error, OverflowError):
        return ValueError(f"{name} must hold numbers within those of double precision.")
    message = _message(error)
    if gap := re.match(r"Input (X |y )?contains NaN\b", message):
        return ValueError(f"{gap.group()}. {NO_GAPS}")
    if message.startswith("Expected unique column names"):
        return ValueError(f"{name} must have columns of different names; or pass an array.")
    # Mixed types, and objects that are no number.
    if isinstance(error, TypeError) and NO_NUMBER.fullmatch(message):
        return TypeError(f"{name} must hold numbers: {message}.")
    if isinstance(error, ValueError) and message.startswith("setting an array element"):
        return ValueError(f"{name} must be a table of numbers with rows of equal length.")
    return None


def _if_safe(error: BaseException) -> BaseException | None:
    """Return the error without its context if its message shows no data; or None."""
    origin = _origin(error)
    # Raised by a ``raise`` statement of this package, and not by C code that it called.
    opcode = origin.tb_frame.f_code.co_code[origin.tb_lasti]
    is_own = _package(origin) == OWN and dis.opname[opcode] == "RAISE_VARARGS"
    if not (is_own or SHOWS_NONE.fullmatch(_message(error))):
        return None
    # Causes, traceback and notes may hold data.
    error.__cause__ = error.__context__ = error.__traceback__ = None
    error.__dict__.pop("__notes__", None)
    return error


def _named_by_place(error: BaseException, doing: str, rows_private: bool) -> BaseException:
    """Return the error if it shows no data, or one of its type with file and line only."""
    origin = _origin(error)
    file = origin.tb_frame.f_code.co_filename
    # Messages of scikit-learn may be known to hold no data, but some name a number of rows.
    shows_rows = rows_private and SHOWS_ROWS.search(_message(error))
    is_judged = _package(origin) == OWN or (_package(origin) == "sklearn" and not shows_rows)
    if is_judged and (safe := _if_safe(error)) is not None:
        return safe
    what = f"{type(error).__name__} ({os.path.basename(file)}, line {origin.tb_lineno})"
    return _kind(error)(f"{doing} failed with {what}. The message may quote data and is not shown.")


def _origin(error: BaseException) -> TracebackType:
    """Last frame of the error's traceback, where it was raised."""
    trace = error.__traceback__
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _package(trace: TracebackType) -> str:
    """Top-level package whose code runs in the frame."""
    return str(trace.tb_frame.f_globals.get("__name__")).split(".")[0]


def _message(error: BaseException) -> str:
    """Text of the error; empty if making it fails."""
    try:
        return str(error)
    except Exception:  # of a class of the caller's
        return ""


def _kind(error: BaseException) -> type[BaseException]:
    """Nearest built-in exception class of the error that takes a plain message."""
    for kind in type(error).__mro__:
        if kind.__module__ == "builtins" and kind not in NO_MESSAGE:
            return kind
    return RuntimeError
