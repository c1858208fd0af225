"""Progress of a run on standard error: the step, its time so far, and its expected time."""

import io
import re
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

from sktensor_dp.exceptions import NotEnoughDataWarning, PrivacyLeakWarning

# Form of the lines that estimators print before each release.
RELEASE = re.compile(r"release (\d+) of (\d+)")


class Progress(io.TextIOBase):
    """Printer of progress; it reads lines of estimators to estimate the end of a step."""

    def __init__(self) -> None:
        self._stream, self._done = sys.stderr, 0.0
        self.warnings: list[str] = []  # of protection, from public numbers alone

    def write(self, text: str) -> int:
        """Take a line of an estimator; note the fraction of releases made, if it says so."""
        if found := RELEASE.search(text):
            self._done = (int(found[1]) - 1) / int(found[2])
        return len(text)

    def note(self, text: str) -> None:
        """Print a line."""
        print(text, file=self._stream, flush=True)

    def warn(self, text: str) -> None:
        """Print a warning of protection, and keep it for the pages."""
        self.note(f"warning: {text}")
        self.warnings.append(text)

    @contextmanager
    def step(self, label: str) -> Iterator[None]:
        """Announce a step and time it; every ten seconds say how long it will take."""
        seconds_between = 10.0
        begin, ended = time.monotonic(), threading.Event()
        self._done = 0.0

        def tell() -> None:
            while not ended.wait(seconds_between):
                passed = time.monotonic() - begin
                # `_done` is the fraction of the step that took the time so far.
                left = passed * (1 / self._done - 1) if self._done else 0.0
                more = f", about {left:.0f} s to go" if left else ""
                self.note(f"  {label}: {passed:.0f} s{more}")

        self.note(f"{label} ...")
        threading.Thread(target=tell, daemon=True).start()
        try:
            with redirect_stderr(self):
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

        with warnings.catch_warnings():
            for kind in (UserWarning, RuntimeWarning):
                warnings.simplefilter("default", kind)
            # A run says this itself, before it spends anything.
            warnings.filterwarnings("ignore", "delta .* is above 1 in", PrivacyLeakWarning)
            # A command that would pay again is refused, unless asked for.
            warnings.filterwarnings("ignore", "This budget paid for the same", UserWarning)
            # A run says this after the fit, by names of columns.
            said = "A group has nearly one value|The averages of .* lie at the end"
            warnings.filterwarnings("ignore", said, UserWarning)
            warnings.showwarning = show
            yield
