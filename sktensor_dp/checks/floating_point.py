"""Floating-point errors of numpy in public methods, whatever a caller's ``np.seterr`` says."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

Method = TypeVar("Method", bound=Callable[..., Any])

# Error state of the package: an overflow that raises after the charge would lose a paid fit, and
# before it may depend on one unit.
OWN: dict[Any, Any] = {"all": "ignore"}


def under_own_errors(method: Method) -> Method:
    """Decorator of a method that runs under the package's own error state."""

    @wraps(method)
    def run(*args: object, **options: object) -> Any:
        with np.errstate(**OWN):
            return method(*args, **options)

    return run  # type: ignore[return-value]


class OwnErrors:
    """Mixin whose subclasses run their public methods under the package's own error state."""

    # Methods behind ``available_if`` are no functions; they carry the decorator themselves.

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for name, value in list(vars(cls).items()):
            if inspect.isfunction(value) and not name.startswith("_"):
                setattr(cls, name, under_own_errors(value))
