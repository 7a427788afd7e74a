"""H01: whatever a job brings, its end can be written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.records.bounds import bounded
from functions.records.completions import Ended
from functions.records.entries import Completion, EffectState, Ending, Outcome, Verdict
from functions.records.limits import size
from functions.records.memory import MemoryDatabase
from functions.records.stores import Stores
from tests.records.builders import (
    SKEW,
    TTL,
    UNIT,
    after,
    attempt,
    completion,
    duplicate,
    hold,
    review,
    stale,
    taken,
)

KB = 1024
LENGTHS = [0, 1, 1023, 1024, 1025, 2047, 2048, 2049, 256 * KB, 400 * KB - 1, 400 * KB, 1024 * KB]


def read_back(ended: Completion) -> tuple[Completion, int]:
    """The completion as it is read after being written, and the bytes that it takes."""
    database = MemoryDatabase()
    stores = Stores(database, skew=SKEW)
    lease = taken(stores.leases, ended.owner)
    assert stores.completions.end(lease, ended, unit_id=UNIT, ttl=TTL, now=after(1)) is Ended.WRITTEN
    [item] = database.scan("completions")
    found = stores.completions.read(UNIT).completion
    assert found is not None
    return found, size(item)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("character", ["x", "ü", "€", "🜁"])
def test_h01_a_text_of_any_length_is_cut_between_characters_and_marked(length: int, character: str) -> None:
    text = character * (length // len(character.encode()))

    cut = bounded(text)

    assert len(cut.encode()) <= 2048
    if len(text.encode()) <= 2048:
        assert cut == text
    else:
        assert cut.removesuffix("… (cut)").strip(character) == ""
        assert len(cut.encode()) > 2048 - 4
        assert cut.endswith("(cut)")


@given(text=st.text(), limit=st.integers(20, 60))
def test_h10_any_text_is_bounded_to_what_utf8_can_hold(text: str, limit: int) -> None:
    assert len(bounded(text, limit).encode()) <= limit


def test_h10_half_a_surrogate_pair_is_replaced() -> None:
    assert bounded("a\ud800b") == "a?b"


@pytest.mark.parametrize("length", LENGTHS)
def test_h01_a_completion_with_an_error_of_any_length_is_written_and_small(length: int) -> None:
    error = "ü" * (length // 2)
    last = attempt(error=error, ending=Ending.GAVE_UP)

    found, taken_bytes = read_back(
        completion(outcome=Outcome.FAILED, reason=error, summary=error, attempts=(last,), worker=error)
    )

    assert found.outcome is Outcome.FAILED
    assert found.attempts[0].error == bounded(error)
    assert taken_bytes < 16 * KB


def test_h01_a_completion_of_the_longest_of_everything_is_written_under_16_kb() -> None:
    long = "🜁" * 256 * KB
    effects = tuple(EffectState(label=f"{n}{long}", key=long, state="done", at=after(n)) for n in range(200))
    attempts = tuple(attempt(owner=f"o-{n}", error=long, worker=long, retry_at=after(n)) for n in range(200))
    reviews = tuple(review(number=n, note=long, by=long, hold=long, effect=long) for n in range(200))
    everything = completion(
        reason=long, summary=long, worker=long, effects=effects, attempts=attempts, reviews=reviews, partition="p" * 63
    )

    found, taken_bytes = read_back(everything)

    assert 8 * KB < taken_bytes < 16 * KB
    assert found.effects_total == 200
    assert found.attempts[-1].owner == "o-199"


def test_h01_a_completion_of_10_000_effects_tells_how_many_and_lists_the_unknown_ones_first() -> None:
    effects = tuple(
        EffectState(label=f"mail[{n}]", key=f"key-{n}", state="unknown" if n in {4_000, 9_999} else "done")
        for n in range(10_000)
    )

    found, taken_bytes = read_back(completion(effects=effects))

    assert found.effects_total == 10_000
    assert {"mail[4000]", "mail[9999]"} < {effect.label for effect in found.effects}
    assert [effect.label for effect in found.effects[:3]] == ["mail[0]", "mail[1]", "mail[2]"]
    assert taken_bytes < 16 * KB


def test_h01_of_too_many_attempts_the_last_and_the_lost_ones_are_kept() -> None:
    attempts = tuple(
        attempt(owner=f"o-{n}", ending=Ending.LOST if n == 7 else Ending.ERROR, error="boom" * 50) for n in range(400)
    )

    found, _ = read_back(completion(attempts=attempts))

    owners = [entry.owner for entry in found.attempts]
    assert 4 < len(owners) < 40
    assert owners[0] == "o-7"
    assert owners[-3:] == ["o-397", "o-398", "o-399"]


def test_an_ordinary_completion_stays_under_1_kb_and_loses_nothing() -> None:
    ordinary = completion(
        effects=(EffectState(label="charge", key="a" * 64, state="done", at=after(1)),),
        effects_total=1,
        attempts=(attempt(owner="f" * 36, ending=Ending.SUCCEEDED, worker="i-0123456789abcdef0"),),
        summary="charged 3 invoices",
        owner="f" * 36,
    )

    found, taken_bytes = read_back(ordinary)

    assert found == ordinary
    assert taken_bytes < KB


@pytest.mark.parametrize("length", LENGTHS)
def test_h01_every_other_entry_is_bounded_too(length: int) -> None:
    text = "€" * (length // 3)
    database = MemoryDatabase()
    stores = Stores(database, skew=SKEW)
    for entry in (attempt(error=text, worker=text), hold(effect=text or "e"), duplicate()):
        stores.completions.end(taken(stores.leases), entry, unit_id=UNIT, ttl=TTL, now=after(1))
    stores.completions.stale(UNIT, stale(brought=text), TTL)
    assert stores.completions.review(UNIT, review(note=text), TTL)
    assert stores.completions.review(UNIT, review(note=text), TTL), "a cut note is still known as our own"

    items = list(database.scan("completions"))

    assert len(items) == 5
    assert max(size(item) for item in items) < 4 * KB
    assert stores.completions.read(UNIT).unreadable == ()


def test_h01_an_answer_to_a_hold_with_a_long_name_still_answers_it() -> None:
    name = "€" * 2_000
    stores = Stores(MemoryDatabase(), skew=SKEW)
    stores.completions.end(taken(stores.leases), hold(effect=name), unit_id=UNIT, ttl=TTL, now=after(1))

    stores.completions.review(UNIT, review(verdict=Verdict.HAPPENED, hold="a", effect=name), TTL)

    assert stores.completions.read(UNIT).open_holds == ()


@given(
    ended=st.builds(
        replace,
        st.just(completion()),
        outcome=st.sampled_from(Outcome),
        reason=st.one_of(st.none(), st.text(min_size=1, max_size=40).filter(lambda text: bounded(text) == text)),
        partition=st.one_of(st.none(), st.just("eu")),
        started=st.one_of(st.none(), st.just(after(1.25))),
        effects_total=st.integers(0, 5),
    )
)
def test_any_completion_comes_back_as_it_was(ended: Completion) -> None:
    assert read_back(ended)[0] == ended
