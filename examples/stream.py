"""A stream decomposed as it arrives, privately and in memory linear in its width.

Every batch is read once, makes one noisy power step and is forgotten. The whole stream
is as private as one batch::

    python examples/stream.py
    python examples/stream.py --features 2000 --rows 100000 --epsilon 2
"""

import argparse
import sys
import time
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sktensor_dp import NotEnoughDataWarning, PrivateTensorPowerMethod

Floats = NDArray[np.float64]

N_COMPONENTS, WIDTH = 3, 30


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the stream with a progress bar; return 0, 2 on bad input, 130 if interrupted."""
    parser = argparse.ArgumentParser(description="A stream decomposed as it arrives.")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--rows", type=int, default=50_000, help="of each batch")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="of the data; noise has none")
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(options.seed)
    try:
        directions = np.linalg.qr(rng.standard_normal((options.features, N_COMPONENTS)))[0].T
        model = PrivateTensorPowerMethod(
            N_COMPONENTS, epsilon=options.epsilon, data_norm=1.0, perturbation="stream"
        )
        read(model, batches(directions, options.rows, rng), directions)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped. What was found so far is released and stays usable.", file=sys.stderr)
        return 130
    print(model.privacy_report_)
    return 0


def batches(directions: Floats, rows: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Endless: one of a few directions times .7, and noise of total norm .5."""
    k, d = directions.shape
    while True:
        X = 0.7 * directions[rng.integers(k, size=rows)]
        X += 0.5 / np.sqrt(d) * rng.standard_normal((rows, d))
        yield X


def read(
    model: PrivateTensorPowerMethod, stream: Iterator[Floats], directions: Floats
) -> PrivateTensorPowerMethod:
    """Feed batches until all components are found."""
    begun = time.monotonic()
    for X in stream:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotEnoughDataWarning)
            model.partial_fit(X)
        show(model, directions, time.monotonic() - begun)
        if model.is_complete_:
            break
    print(file=sys.stderr)
    return model


def show(model: PrivateTensorPowerMethod, directions: Floats, seconds: float) -> None:
    """Redraw the bar, with the time left and how well each direction is known by now."""
    done, needed = model.n_batches_seen_, model.n_batches_needed_
    filled = WIDTH * done // needed
    known = np.abs(model.components_ @ directions.T).max(axis=0)
    values = " ".join(f"{value:.3f}" for value in np.sort(known)[::-1])
    bar = "#" * filled + "." * (WIDTH - filled)
    line = f"[{bar}] batch {done} of {needed}  |cosine| {values}"
    if sys.stderr.isatty():
        left = seconds * (needed - done) / done
        print(f"\r\x1b[K{line}  {left:.0f} s left", end="", file=sys.stderr, flush=True)
    else:
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
