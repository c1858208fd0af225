"""Interrupts at any call of one of the package's functions."""

import inspect
import sys
from pathlib import Path
from typing import Any

import sktensor_dp

PACKAGE = str(Path(sktensor_dp.__file__).parent)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C at a moment that the test chooses."""


class Interrupting:
    """Lists calls of the package's functions, and interrupts one of them."""

    def __init__(self, place: int | None = None) -> None:
        self.calls: list[str] = []
        self._place = place

    def __enter__(self) -> "Interrupting":
        sys.setprofile(self._see)
        return self

    def __exit__(self, *exc_info: Any) -> None:
        sys.setprofile(None)

    def _see(self, frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        # What is raised while a generator is thrown away is lost.
        counts = event == "call" and not code.co_flags & inspect.CO_GENERATOR
        if counts and code.co_filename.startswith(PACKAGE):
            self.calls.append(code.co_qualname)
            if len(self.calls) - 1 == self._place:
                raise Interrupted
