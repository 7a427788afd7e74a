"""Which definition of a job holds when, and how definitions are kept."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

import pytest

from functions.records.limits import ITEM_BYTES
from functions.scheduler.courses import Past, courses, packed, same, unpacked
from functions.schedules.definitions import Job
from tests.support.ticks import NOON, definitions, job, minutes

EVERY: dict[str, Any] = {
    "schedules": ("*/2 * * * *",),
    "timezone": "Europe/Berlin",
    "starts": NOON,
    "ends": NOON,
    "dst_gap": "skip",
    "dst_fold": "both",
    "enabled": False,
    "seconds": (0, 30),
    "partitions": ("eu",),
    "payload": {"n": 1},
    "pool": "heavy",
    "lock": "books",
    "overlap": "allow",
    "spread_s": 5,
}
ONLY_WORKERS: dict[str, Any] = {
    "run": "other:main",
    "attempts": 7,
    "owner": "ann",
    "severity": "page",
    "tags": ("night",),
}


@pytest.mark.parametrize("field", EVERY)
def test_whatever_decides_rows_makes_a_job_another_one_also_when_it_was_kept(field: str):
    other = dataclasses.replace(job("ledger"), **{field: EVERY[field]})
    assert not same(job("ledger"), other)
    kept = unpacked(packed(definitions(other)))["ledger"]
    assert same(kept, other)
    assert not same(kept, job("ledger"))


@pytest.mark.parametrize("field", ONLY_WORKERS)
def test_what_only_workers_and_the_monitor_look_at_does_not(field: str):
    assert same(job("ledger"), dataclasses.replace(job("ledger"), **{field: ONLY_WORKERS[field]}))


def test_ten_thousand_definitions_are_kept_in_one_item():
    many = definitions(
        *[job(f"report-of-department-{n}", f"{n % 60} {n % 24} * * *", timezone="Europe/Berlin") for n in range(10_000)]
    )
    text = packed(many)
    assert len(text) < ITEM_BYTES / 2
    assert len(unpacked(text)) == 10_000


@pytest.mark.parametrize("text", ["", "no zlib", "c$@(M"])
def test_kept_definitions_that_cannot_be_read_are_one_kind_of_error(text: str):
    with pytest.raises(ValueError, match=r"."):
        unpacked(text)


def spans(*past: Past, now: Job | None, start: datetime = NOON) -> list[tuple[str, datetime, datetime | None]]:
    known = definitions(*([now] if now else []))
    return [
        (stretch.job.schedules[0], stretch.after, stretch.until)
        for course in courses(known, past, start, {}, until=NOON + minutes(60))
        for stretch in course.stretches
    ]


def until(minute: int, *jobs: Job) -> Past:
    return Past(jobs={one.name: one for one in jobs}, ended_at=NOON + minutes(minute), ahead=NOON + minutes(minute + 7))


A, B = job("ledger", "1 * * * *"), job("ledger", "2 * * * *")


def test_an_edited_job_has_the_old_slots_up_to_the_edit_and_the_new_ones_from_then_on():
    assert spans(until(5, A), now=B) == [("1 * * * *", NOON, NOON + minutes(5)), ("2 * * * *", NOON + minutes(5), None)]


def test_a_job_that_did_not_change_goes_on_over_deployments():
    assert spans(until(5, A), until(9, A), now=A) == [("1 * * * *", NOON, None)]


def test_one_that_was_gone_in_between_is_made_anew():
    assert spans(until(5, A), until(9), now=A) == [
        ("1 * * * *", NOON, NOON + minutes(5)),
        ("1 * * * *", NOON + minutes(9), None),
    ]


def test_one_that_is_gone_ends_with_its_definition():
    assert spans(until(5, A), now=None) == [("1 * * * *", NOON, NOON + minutes(5))]


def test_a_new_one_begins_with_its_definition():
    assert spans(until(5), now=A) == [("1 * * * *", NOON + minutes(5), None)]


def test_an_edit_that_was_taken_back_before_anything_was_worked_in_is_two_edits():
    assert [text for text, _, _ in spans(until(5, A), until(9, B), now=A)] == ["1 * * * *", "2 * * * *", "1 * * * *"]
