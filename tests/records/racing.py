"""Sixteen threads at one record, round after round: they live through all rounds and start each together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from functions.records.stores import Stores

race_table = pytest.StashKey[list[tuple[str, int, int]]]()
"""Condition, rounds, rounds with one winner: shown in the summary."""

ROUNDS = 100
THREADS = 16
OWNERS = [f"o-{number}" for number in range(THREADS)]

Contest = Callable[[int], Any]
"""What thread number n does in a round; what it returns is judged."""


class Race:
    def __init__(self, stores: Stores, config: pytest.Config) -> None:
        self.stores = stores
        self._config = config
        self._pool = ThreadPoolExecutor(THREADS)
        self._start = threading.Barrier(THREADS)

    def run(
        self, condition: str, prepare: Callable[[int], Contest], judge: Callable[[int, Sequence[Any]], int]
    ) -> None:
        """`prepare` makes the records of a round; `judge` looks at all answers and counts the winners."""
        won = 0
        for number in range(ROUNDS):
            contest = prepare(number)
            answers = list(
                self._pool.map(lambda thread, contest=contest: self._together(contest, thread), range(THREADS))
            )
            winners = judge(number, answers)
            assert winners == 1, f"round {number}: {winners} winners in {answers}"
            won += 1
        self._config.stash.setdefault(race_table, []).append((condition, ROUNDS, won))

    def _together(self, contest: Contest, thread: int) -> Any:
        self._start.wait(timeout=60)
        return contest(thread)

    def close(self) -> None:
        self._start.abort()
        self._pool.shutdown()


def named(name: str, number: int) -> str:
    """The record of one round: each has its own, so that no round helps another."""
    return f"{name}-{number}"


def winners_of(answers: Sequence[Any], won: Callable[[Any], bool]) -> list[int]:
    return [thread for thread, answer in enumerate(answers) if won(answer)]
