"""Blocks in which nothing is protected, for tests, figures and auditors."""

import contextlib
import contextvars
import itertools
import multiprocessing
import numbers
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sktensor_dp.exceptions import PrivacyLeakWarning

RECORDED_ELSEWHERE = (
    "unsafe_recorded_releases was entered in another process: this one would record exact values "
    "that its block never sees. Nothing was charged."
)


@dataclass(eq=False)
class _Block:
    """A ``with`` block of one of the two kinds."""

    seeds: Iterator[tuple[int, int]] | None = None  # of successive fits, where noise is seeded
    releases: "list[RecordedRelease] | None" = None  # made inside, where these are recorded
    process: int = field(default_factory=os.getpid)
    is_open: bool = True


_blocks: contextvars.ContextVar[tuple[_Block, ...]] = contextvars.ContextVar("blocks", default=())


def open_blocks() -> tuple[_Block, ...]:
    """Blocks around the caller, the innermost last, without those that were left."""
    return tuple(block for block in _blocks.get() if block.is_open)


def _warn(what: str) -> None:
    """Warn, at the ``with`` statement of a block, that its results are not private."""
    said = f"{what}: results made in this block are not private."
    warnings.warn(said, PrivacyLeakWarning, stacklevel=4)


@contextlib.contextmanager
def _entered(block: _Block) -> Iterator[None]:
    """Keep a block open for what runs inside it."""
    # A generator that yields inside a block may end it after later blocks were entered, or in
    # another thread. Only this block is removed: resetting the variable would restore an older
    # list.
    _blocks.set((*open_blocks(), block))
    try:
        yield
    finally:
        block.is_open = False
        _blocks.set(open_blocks())


def next_seed() -> tuple[int, int] | None:
    """Seed of the next fit in the innermost open block of seeded noise, or None."""
    seeds = [block.seeds for block in open_blocks() if block.seeds is not None]
    return next(seeds[-1]) if seeds else None


@contextlib.contextmanager
def unsafe_seeded_noise(seed: int) -> Iterator[None]:
    """Make the noise inside a ``with`` block reproducible, and so not private.

    For tests and figures only. Anyone who knows the seed can subtract the noise.
    Reports made inside say that nothing is protected.

    Parameters
    ----------
    seed : int
        An integer >= 0; successive fits inside the block get different noise.

    Raises
    ------
    ValueError
        If ``seed`` is not an integer >= 0.

    Warns
    -----
    PrivacyLeakWarning
        Always.

    Examples
    --------
    >>> import warnings, sktensor_dp
    >>> with warnings.catch_warnings(action="ignore"), sktensor_dp.unsafe_seeded_noise(0):
    ...     pass
    """
    if not (isinstance(seed, numbers.Integral) and seed >= 0):
        raise ValueError(f"seed must be an int >= 0, got {seed!r}.")
    _warn("noise is seeded")
    seeds = ((int(seed), fit) for fit in itertools.count())
    with _entered(_Block(seeds=seeds)):
        yield


@dataclass(frozen=True, eq=False)
class RecordedRelease:
    """A release as it was before noise; the exact value is raw data.

    Attributes
    ----------
    name : str
        Name of the release in reports.
    query : object
        Query that was answered; it holds public numbers only.
    exact : ndarray or dict
        Answer before noise: a mean over units, or totals by word.
    sensitivity, sigma : float
        Bound that the noise was scaled by, and its standard deviation along a coordinate (of
        spherical Laplace noise its mean length per dimension).
    law : str
        Law of the noise, as reports name it.
    """

    name: str
    query: Any
    exact: NDArray[np.float64] | dict[str, float]
    sensitivity: float
    sigma: float
    law: str


@contextlib.contextmanager
def unsafe_recorded_releases() -> Iterator[list[RecordedRelease]]:
    """Record the exact value of each release inside a ``with`` block, which is then not private.

    For tests and auditors only: what the list holds is raw data, added up. Reports made inside say
    that nothing is protected. Products that a fit without noise computes are not recorded.

    Yields
    ------
    list of RecordedRelease
        Releases made so far, in order; the library keeps no other reference to them.

    Raises
    ------
    RuntimeError
        In a worker process of ``multiprocessing``. Inside the block, ``PrivateSearchCV`` and
        fits in other processes raise it before anything is charged.

    Warns
    -----
    PrivacyLeakWarning
        Always.

    Examples
    --------
    >>> import warnings, sktensor_dp
    >>> with warnings.catch_warnings(action="ignore"):
    ...     with sktensor_dp.unsafe_recorded_releases() as releases:
    ...         topics = sktensor_dp.PrivateSpectralLDA(1).fit([[3, 1, 2]] * 2000)
    >>> [release.name for release in releases][-1]
    'whitened_triple_moments'
    """
    if multiprocessing.parent_process() is not None:
        raise RuntimeError("unsafe_recorded_releases must not be entered in a worker process.")
    _warn("exact values are recorded")
    releases: list[RecordedRelease] = []
    with _entered(_Block(releases=releases)):
        yield releases


class Recorder:
    """Records releases of one fit in the blocks that were open when the fit began."""

    def __init__(self) -> None:
        self._blocks = [block for block in open_blocks() if block.releases is not None]
        if any(block.process != os.getpid() for block in self._blocks):
            raise RuntimeError(RECORDED_ELSEWHERE)

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def record(
        self, law: str, query: object, exact: object, sensitivity: float, sigma: float
    ) -> None:
        """Add a release to the open blocks, before noise is added to its value."""
        for block in self._blocks:
            if block.is_open and block.releases is not None:
                value = dict(exact) if isinstance(exact, Mapping) else np.array(exact)
                name = getattr(query, "name", type(query).__name__)
                block.releases.append(RecordedRelease(name, query, value, sensitivity, sigma, law))


def refuse_recording(what: str) -> None:
    """Raise RuntimeError inside a block that records releases."""
    if Recorder():  # true inside such a block
        raise RuntimeError(
            f"{what} hides which of its trials were made, and must not run inside "
            "unsafe_recorded_releases. Nothing was charged."
        )
