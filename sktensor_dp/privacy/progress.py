"""How far a fit has come: which of its planned releases is being made.

Names and numbers of releases are public before a fit begins. Times are shown on a terminal alone,
and nowhere kept: how long a release takes depends on the data.
"""

import sys
import threading
import time
from typing import Protocol, TextIO

# Of seconds: when a bar appears, and how often it is drawn.
PATIENCE, BETWEEN = 2.0, 0.25
WIDTH = 20


class Progress(Protocol):
    """What a curator tells of a fit; of the data nothing."""

    def begins(self, name: str, number: int, count: int) -> None:
        """A release begins, by its name and its number among so many."""

    def ends(self) -> None:
        """The fit is over, well or not."""


class Lines:
    """A line for each release, without times: a log may be read by others."""

    def __init__(self, spender: str, stream: TextIO) -> None:
        self._spender, self._stream = spender, stream

    def begins(self, name: str, number: int, count: int) -> None:
        """Print the line."""
        told = f"[{self._spender}] release {number} of {count}: {name}"
        print(told, file=self._stream, flush=True)

    def ends(self) -> None:
        """Nothing."""


class Bar:
    """A bar with the time left, on one line of a terminal that is cleared in the end."""

    def __init__(self, spender: str, stream: TextIO, patience: float = PATIENCE) -> None:
        self._spender, self._stream, self._patience = spender, stream, patience
        self._begun = time.monotonic()
        self._now = ("", 0, 1)
        self._over = threading.Event()
        self._ticker: threading.Thread | None = None

    def begins(self, name: str, number: int, count: int) -> None:
        """Go on; the line is drawn by a thread, as long as it is needed."""
        self._now = (name, number, count)
        if self._ticker is None:
            self._ticker = threading.Thread(target=self._tick, daemon=True)
            self._ticker.start()

    def ends(self) -> None:
        """Clear the line."""
        self._over.set()
        if self._ticker is not None:
            self._ticker.join()

    def line(self, seconds: float) -> str:
        """What is shown so many seconds after the beginning."""
        name, number, count = self._now
        done = number - 1
        full = round(WIDTH * done / count)
        told = f"[{self._spender}] {'#' * full}{'.' * (WIDTH - full)} {number}/{count} {name}"
        if done == 0:
            return f"{told}, {seconds:.0f} s"
        left = seconds * (count - done) / done
        return f"{told}, {seconds:.0f} s, about {left:.0f} s left"

    def _tick(self) -> None:
        if self._over.wait(self._patience):
            return
        while True:
            seconds = time.monotonic() - self._begun
            print(f"\r\x1b[K{self.line(seconds)}", end="", file=self._stream, flush=True)
            if self._over.wait(BETWEEN):
                break
        print("\r\x1b[K", end="", file=self._stream, flush=True)


def progress_on(spender: str, stream: TextIO | None = None) -> Progress:
    """A bar on a terminal, lines elsewhere."""
    stream = sys.stderr if stream is None else stream
    return Bar(spender, stream) if stream.isatty() else Lines(spender, stream)
