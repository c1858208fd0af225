"""Progress of a run on standard error: the step, and its time so far."""

import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from sktensor_dp.exceptions import (
    DoubtfulParameterWarning,
    NotEnoughDataWarning,
    PrivacyLeakWarning,
)


class Progress:
    """Printer of progress."""

    def __init__(self) -> None:
        self.warnings: list[str] = []  # that protection is weak, by public numbers alone
        self.doubts: list[str] = []  # about the results, by released numbers alone

    def note(self, text: str) -> None:
        """Print a line."""
        print(text, file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        """Print a warning of protection, and keep it for the pages."""
        self.note(f"warning: {text}")
        self.warnings.append(text)

    @contextmanager
    def step(self, label: str) -> Iterator[None]:
        """Announce a step and time it; every ten seconds say that it goes on."""
        seconds_between = 10.0
        begin, ended = time.monotonic(), threading.Event()

        def tell() -> None:
            while not ended.wait(seconds_between):
                self.note(f"  {label}: {time.monotonic() - begin:.0f} s")

        self.note(f"{label} ...")
        threading.Thread(target=tell, daemon=True).start()
        try:
            yield
        finally:
            ended.set()
        self.note(f"  done in {time.monotonic() - begin:.1f} s")

    @contextmanager
    def warned(self) -> Iterator[None]:
        """Show warnings as lines."""

        def show(message: Warning | str, *_: object, **__: object) -> None:
            if isinstance(message, PrivacyLeakWarning):
                self.warn(str(message))
            elif not isinstance(message, NotEnoughDataWarning):  # a run has its own words for it
                self.note(f"warning: {message}")
                # Others may be about rows: no page shows them.
                self.doubts += [str(message)] * isinstance(message, DoubtfulParameterWarning)

        with warnings.catch_warnings():
            for kind in (UserWarning, RuntimeWarning):
                warnings.simplefilter("default", kind)
            # A run says this itself, before it spends anything.
            warnings.filterwarnings("ignore", "delta .* is above 1 in", PrivacyLeakWarning)
            # A command that would pay again is refused, unless asked for.
            warnings.filterwarnings("ignore", "This budget paid for the same", UserWarning)
            # A run says this after the fit, some of it by names of columns.
            said = "A group has nearly one value|The averages of .* lie at the end|Unless all cells"
            warnings.filterwarnings("ignore", said, UserWarning)
            warnings.showwarning = show
            yield
