"""Interrupts (Ctrl-C) of a run: what is paid for is finished and written first."""

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from sktensor_dp.privacy.payer import BEGUN_FITS


class Interrupts:
    """Block in which a first Ctrl-C after a charge waits for `stop_if_asked`; a second does not."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note, self._is_asked = note, False
        self._begun = BEGUN_FITS.get()  # fits that had begun when the run last could stop
        self._handler_before = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> Self:
        in_main = threading.current_thread() is threading.main_thread()
        # Another handler than Python's own ignores or holds the signal.
        if in_main and self._handler_before is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if signal.getsignal(signal.SIGINT) == self._interrupt:
            signal.signal(signal.SIGINT, self._handler_before)

    def stop_if_asked(self) -> None:
        """Stop between two charges, after a first Ctrl-C: what was paid for is written by now."""
        if self._is_asked:
            raise KeyboardInterrupt
        self._begun = BEGUN_FITS.get()

    def _interrupt(self, *_: object) -> None:
        """Note a first interrupt after something was paid; end the run at a second, or before."""
        if self._is_asked or BEGUN_FITS.get() == self._begun:
            raise KeyboardInterrupt
        self._is_asked = True
        with suppress(RuntimeError):  # of a line that the interrupt met half written
            self._note("\nWhat is paid for is finished and written first. Ctrl-C again loses it")
