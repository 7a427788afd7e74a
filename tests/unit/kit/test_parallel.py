from __future__ import annotations

import threading

import pytest

from functions.kit.parallel import AT_ONCE, each


def test_many_are_worked_sixteen_at_a_time_and_answered_in_their_order() -> None:
    together = threading.Barrier(AT_ONCE, timeout=30)

    def work(item: int) -> int:
        together.wait()
        return item * 2

    assert AT_ONCE >= 16
    assert each(work, range(2 * AT_ONCE)) == list(range(0, 4 * AT_ONCE, 2))


def test_few_are_worked_by_one_thread() -> None:
    assert set(each(lambda _: threading.get_ident(), range(AT_ONCE - 1))) == {threading.get_ident()}


def test_what_one_raises_is_raised() -> None:
    def work(item: int) -> float:
        return 1 / (item - 7)

    for count in (AT_ONCE - 1, AT_ONCE):
        with pytest.raises(ZeroDivisionError):
            each(work, range(count))
