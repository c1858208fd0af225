"""Steps of a run with the time they take, and its warnings as lines."""

import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO, TypeVar

Item = TypeVar("Item")


class Progress:
    """Numbered steps with the time they take, on one stream."""

    def __init__(self, n_steps: int, stream: TextIO, seconds_between: float | None = None) -> None:
        self.n_steps = n_steps
        self.stream = stream
        self.live = stream.isatty()
        self.seconds_between = seconds_between or (0.5 if self.live else 15.0)
        self.started = 0

    @contextmanager
    def step(self, label: str, current: Callable[[], str] | None = None) -> Iterator[None]:
        """Announce a step and time it; `current` says which part of it is running."""
        self.started += 1
        head = f"[{self.started}/{self.n_steps}]"
        begin = time.monotonic()
        over = threading.Event()

        def beat() -> None:
            while not over.wait(self.seconds_between):
                self._show(f"{head} {current() if current else label} ...", begin)

        print(f"{head} {label} ...", end="" if self.live else "\n", file=self.stream, flush=True)
        ticker = threading.Thread(target=beat, daemon=True)
        ticker.start()
        try:
            yield
        finally:
            over.set()
            ticker.join()
            if self.live:
                print("\r\x1b[K", end="", file=self.stream)
        print(f"{head} {label}: {time.monotonic() - begin:.1f} s", file=self.stream, flush=True)

    def note(self, text: str) -> None:
        """Print a line that belongs to the last step."""
        print(f"      {text}", file=self.stream, flush=True)

    def _show(self, text: str, begin: float) -> None:
        start, end = ("\r\x1b[K", "") if self.live else ("", "\n")
        elapsed = f"{time.monotonic() - begin:.0f} s"
        print(f"{start}{text} {elapsed}", end=end, file=self.stream, flush=True)


def counted(items: Sequence[Item], task: str) -> Iterator[Item]:
    """Yield the items; on a terminal a line shows which of them is at work.

    It is taken away in the end. Print after the last item: what is printed in between would stand
    behind the line.
    """
    live = sys.stderr.isatty()
    for number, item in enumerate(items, start=1):
        if live:
            told = f"\r\x1b[K[{task}] {number} of {len(items)}: {item}"
            print(told, end="", file=sys.stderr, flush=True)
        yield item
    if live:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def short_warnings() -> Iterator[list[Warning]]:
    """Show each warning as one line, and keep those that speak of released values alone.

    What other libraries warn of may depend on data that was not released.
    """
    from sktensor_dp import NotEnoughDataWarning, PrivacyLeakWarning

    kept: list[Warning] = []

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"      warning: {message}", file=sys.stderr)
        if isinstance(message, (NotEnoughDataWarning, PrivacyLeakWarning)):
            kept.append(message)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield kept
