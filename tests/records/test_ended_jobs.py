from __future__ import annotations

from datetime import timedelta

from functions.records.database import Put
from functions.records.ended_jobs import DELETED, DISABLED, ENDED_JOBS, MOST, EndedJob
from functions.records.memory import MemoryDatabase
from functions.records.stores import Stores
from functions.records.tables import HEARTBEATS
from tests.records.builders import after
from tests.support.databases import Interrupted


def ended(job: str, at_s: float = 0, generation: int = 2, reason: str = DELETED, noted_s: float = 1) -> EndedJob:
    return EndedJob(job=job, at=after(at_s), noted_at=after(at_s + noted_s), generation=generation, reason=reason)


def test_the_last_end_of_a_job_stands_and_those_of_others_beside_it(stores: Stores) -> None:
    assert stores.ended_jobs.last("a") is None
    stores.ended_jobs.note([ended("a"), ended("source", reason=DISABLED)])
    stores.ended_jobs.note([ended("a", 60, 4)])
    stores.ended_jobs.note([ended("a", 60, 4)])
    assert stores.ended_jobs.last("a") == ended("a", 60, 4)
    assert stores.ended_jobs.last("source") == ended("source", reason=DISABLED)
    assert stores.ended_jobs.last("b") is None


def test_an_end_that_is_noted_again_keeps_the_instant_at_which_it_was_noted_first(stores: Stores) -> None:
    stores.ended_jobs.note([ended("a")])
    stores.ended_jobs.note([ended("a", noted_s=60), ended("b", noted_s=60)])
    assert stores.ended_jobs.last("a") == ended("a")
    assert stores.ended_jobs.last("b") == ended("b", noted_s=60)


def test_it_is_no_heartbeat(stores: Stores) -> None:
    stores.ended_jobs.note([ended("a")])
    assert stores.heartbeats.read_all() == {}


def test_one_that_cannot_be_read_hides_no_other(stores: Stores) -> None:
    stores.ended_jobs.note([ended("a"), ended("b")])
    item = stores.database.get(HEARTBEATS.name, {"source": ENDED_JOBS}) or {}
    jobs = item["jobs"] | {"a": {"at": "soon", "generation": 2, "reason": DELETED}, "c": 7}
    stores.database.put(Put(HEARTBEATS.name, item | {"jobs": jobs}))
    assert [stores.ended_jobs.last(job) for job in "abc"] == [None, ended("b"), None]


def test_only_the_newest_thousand_are_kept() -> None:
    stores = Stores(MemoryDatabase(), skew=timedelta())  # an emulator takes its time for an item of that size
    stores.ended_jobs.note([ended(f"old-{number}", number) for number in range(MOST)])
    stores.ended_jobs.note([ended("new", 9_999), ended("newer", 10_000)])
    item = stores.database.get(HEARTBEATS.name, {"source": ENDED_JOBS}) or {}
    assert len(item["jobs"]) == MOST
    assert stores.ended_jobs.last("old-1") is None
    assert stores.ended_jobs.last("old-2") is not None
    assert stores.ended_jobs.last("new") is not None


def test_two_that_note_at_once_are_both_noted(stores: Stores) -> None:
    other = Stores(stores.database, skew=stores.skew)
    meanwhile = Interrupted(stores.database, 1, lambda: other.ended_jobs.note([ended("b")]))
    Stores(meanwhile, skew=stores.skew).ended_jobs.note([ended("a")])
    assert [stores.ended_jobs.last(job) for job in "ab"] == [ended("a"), ended("b")]
