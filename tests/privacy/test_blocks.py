"""A fit is charged to the block it stands in, in whatever order blocks are left."""

import contextvars
import sys
import threading
from collections.abc import Iterator

import pytest

from sktensor_dp import BudgetAccountant, PrivacyLeakWarning
from sktensor_dp.privacy.accountant import OPENED


def test_context_nesting_and_exceptions() -> None:
    outer, inner = BudgetAccountant(1.0), BudgetAccountant(2.0)
    assert OPENED.get()[-1] is None
    with outer as entered:
        assert entered is outer
        with inner:
            assert OPENED.get()[-1] is inner
            with outer:
                assert OPENED.get()[-1] is outer
            assert OPENED.get()[-1] is inner
        with pytest.raises(KeyError), inner:
            raise KeyError
        assert OPENED.get()[-1] is outer
    assert OPENED.get()[-1] is None


def test_interleaved_blocks_leave_each_others_ledgers_alone() -> None:
    """A generator that yields inside a block is left when it goes on, or is closed."""
    mine, its = BudgetAccountant(1.0), BudgetAccountant(2.0)

    def generator() -> Iterator[None]:
        with its:
            yield

    for end in (lambda block: block.close(), lambda block: next(block, None)):
        block = generator()
        next(block)
        assert OPENED.get()[-1] is its
        with mine:
            with pytest.warns(PrivacyLeakWarning, match="left before"):
                end(block)
            # Popping the last one took this block's own, and went on with the other's.
            assert OPENED.get()[-1] is mine
        assert OPENED.get()[-1] is None


def test_a_block_left_in_another_context_closes_no_other() -> None:
    mine, its = BudgetAccountant(1.0), BudgetAccountant(2.0)
    contextvars.copy_context().run(its.__enter__)
    with mine:
        its.__exit__(None, None, None)
        assert OPENED.get()[-1] is mine
    assert OPENED.get()[-1] is None


def test_one_accountant_can_be_active_in_several_threads() -> None:
    budget = BudgetAccountant(1.0)
    entered, leave = threading.Barrier(3), [threading.Event(), threading.Event()]
    seen: list[object] = []

    def block(number: int) -> None:
        seen.append(OPENED.get()[-1])
        with budget:
            entered.wait(10)
            leave[number].wait(10)
        seen.append(OPENED.get()[-1])

    threads = [threading.Thread(target=block, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    entered.wait(10)
    # Left in the order of entering, not the reverse.
    for event, thread in zip(leave, threads, strict=True):
        event.set()
        thread.join(10)
    assert seen == [None] * 4
    assert OPENED.get()[-1] is None


def test_blocks_of_other_threads_are_not_seen() -> None:
    seen = []
    with BudgetAccountant(1.0):
        thread = threading.Thread(target=lambda: seen.append(OPENED.get()[-1]))
        thread.start()
        thread.join()
    if sys.version_info < (3, 14):  # threads of free-threaded builds inherit the context
        assert seen == [None]
