"""Which ``with`` blocks are open, and in which order they were entered."""

import contextvars
import warnings
from typing import Generic, TypeVar

from sktensor_dp.exceptions import PrivacyLeakWarning

__all__ = ["OpenBlocks"]

Owner = TypeVar("Owner")


class OpenBlocks(Generic[Owner]):
    """Open blocks of the calling thread, the innermost last."""

    def __init__(self, name: str) -> None:
        self._open: contextvars.ContextVar[tuple[Owner, ...]] = contextvars.ContextVar(
            name, default=()
        )

    @property
    def innermost(self) -> Owner | None:
        """Owner of the block that was entered last, of those that are open."""
        blocks = self._open.get()
        return blocks[-1] if blocks else None

    def enter(self, owner: Owner) -> None:
        """Open a block."""
        self._open.set((*self._open.get(), owner))

    def leave(self, owner: Owner) -> None:
        """Close the owner's own block, whichever were entered since."""
        # A generator that yields inside a block is left when it goes on or is collected, in the
        # midst of its caller's blocks. One that is left in another context than it was entered in
        # has nothing to close there.
        blocks = self._open.get()
        places = [place for place, other in enumerate(blocks) if other is owner]
        if not places:
            return
        self._open.set((*blocks[: places[-1]], *blocks[places[-1] + 1 :]))
        if blocks[-1] is not owner:
            warnings.warn(
                "A block of a BudgetAccountant was left before a later one: fits since then "
                "were charged to the later one. Pass accountant= where blocks are interleaved.",
                PrivacyLeakWarning,
                stacklevel=3,
            )
