from __future__ import annotations

import itertools
from datetime import timedelta

from functions.records.database import Put
from functions.records.ended_jobs import DELETED, DISABLED, MOST, PARTS, EndedJob, part_of
from functions.records.limits import ITEM_BYTES, size
from functions.records.memory import MemoryDatabase
from functions.records.stores import Stores
from functions.records.tables import HEARTBEATS
from tests.records.builders import after
from tests.support.databases import Interrupted


def ended(job: str, at_s: float = 0, generation: int = 2, reason: str = DELETED, noted_s: float = 1) -> EndedJob:
    return EndedJob(job=job, at=after(at_s), noted_at=after(at_s + noted_s), generation=generation, reason=reason)


def of_one_part(count: int) -> list[str]:
    """Names of jobs that are noted in one item."""
    of_it = (name for name in map("job-{}".format, itertools.count()) if part_of(name) == part_of("job-0"))
    return list(itertools.islice(of_it, count))


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
    a, b, c = of_one_part(3)
    stores.ended_jobs.note([ended(a), ended(b)])
    item = stores.database.get(HEARTBEATS.name, {"source": part_of(a)}) or {}
    jobs = item["jobs"] | {a: {"at": "soon", "generation": 2, "reason": DELETED}, c: 7}
    stores.database.put(Put(HEARTBEATS.name, item | {"jobs": jobs}))
    assert [stores.ended_jobs.last(job) for job in (a, b, c)] == [None, ended(b), None]


def test_ten_thousand_jobs_that_one_deployment_takes_away_are_all_known_and_each_item_has_room() -> None:
    """The longest names there are."""
    stores = Stores(MemoryDatabase(), skew=timedelta())  # an emulator takes its time for items of that size
    names = [f"{'report-of-a-department-with-a-long-name-and-a-number-':x<57}{number:06d}" for number in range(10_000)]
    stores.ended_jobs.note([ended(name, reason=DISABLED) for name in names])
    items = list(stores.database.scan(HEARTBEATS.name))
    assert len(items) == PARTS
    assert {job for item in items for job in item["jobs"]} == set(names)
    assert all(stores.ended_jobs.last(name) == ended(name, reason=DISABLED) for name in names[::500])
    assert max(size(item) for item in items) < ITEM_BYTES / 2


def test_only_the_newest_thousand_of_a_part_are_kept() -> None:
    stores = Stores(MemoryDatabase(), skew=timedelta())
    *old, new, newer = of_one_part(MOST + 2)
    stores.ended_jobs.note([ended(name, number) for number, name in enumerate(old)])
    stores.ended_jobs.note([ended(new, 9_999), ended(newer, 10_000)])
    item = stores.database.get(HEARTBEATS.name, {"source": part_of(new)}) or {}
    assert len(item["jobs"]) == MOST
    assert set(item["jobs"]) == {*old[2:], new, newer}


def test_two_that_note_at_once_are_both_noted(stores: Stores) -> None:
    a, b = of_one_part(2)
    other = Stores(stores.database, skew=stores.skew)
    meanwhile = Interrupted(stores.database, 1, lambda: other.ended_jobs.note([ended(b)]))
    Stores(meanwhile, skew=stores.skew).ended_jobs.note([ended(a)])
    assert [stores.ended_jobs.last(job) for job in (a, b)] == [ended(a), ended(b)]
