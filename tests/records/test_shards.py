from __future__ import annotations

import pytest

from functions.records.heartbeats import SchedulerState
from functions.records.shards import Shard, lay_out, read_schedulers, shard_of
from functions.records.stores import Stores
from tests.records.builders import NOW, after


def laid_out(stores: Stores, states: list[SchedulerState], shards: int, seconds: int) -> bool:
    now = after(seconds)
    joining = [{f"job-{number}": NOW} for number in range(shards)]
    return lay_out(stores.database, states, shards, cursor=NOW, joining=joining, since=now, now=now)


def test_all_rows_are_replaced_at_once_and_each_says_how_many_there_are(stores: Stores) -> None:
    first = stores.heartbeats.first_tick(cursor=after(60), version="v1", now=NOW, every_s=60)
    assert laid_out(stores, [first], 3, 61)

    found = read_schedulers(stores.heartbeats)

    assert [state.source for state in found.known] == [shard.source for shard in found.shards]
    assert {(state.cursor, state.generation, state.shards, state.laid_out_at) for state in found.known} == {
        (NOW, 2, 3, after(61))
    }
    assert {state.versions for state in found.known} == {first.versions}
    assert [state.joining for state in found.known] == [{f"job-{number}": NOW} for number in range(3)]

    assert laid_out(stores, found.known, 1, 62)
    assert [state.source for state in read_schedulers(stores.heartbeats, 16).known] == ["scheduler#0"]


def test_nothing_is_replaced_where_one_row_changed_meanwhile(stores: Stores) -> None:
    first = stores.heartbeats.first_tick(cursor=NOW, version="v1", now=NOW, every_s=60)
    assert laid_out(stores, [first], 2, 61)
    found = read_schedulers(stores.heartbeats).known
    assert stores.heartbeats.record_version(found[1], "v2", now=after(62))

    assert not laid_out(stores, found, 3, 63)

    assert [state.shards for state in read_schedulers(stores.heartbeats, 3).known] == [2, 2]


def test_a_cursor_read_before_the_change_moves_none_after_it(stores: Stores) -> None:
    first = stores.heartbeats.first_tick(cursor=NOW, version="v1", now=NOW, every_s=60)
    assert laid_out(stores, [first], 2, 61)
    assert not stores.heartbeats.move_cursor(first, after(300), now=after(62), every_s=60)


@pytest.mark.parametrize("form", ["job-{:05d}", "{:x}", "billing-{}-eu", "{}"])
@pytest.mark.parametrize("shards", [2, 3, 7, 16])
def test_names_that_resemble_are_spread_evenly(form: str, shards: int) -> None:
    counts = [0] * shards
    for number in range(10_000):
        counts[shard_of(form.format(number), shards)] += 1
    mean = 10_000 / shards
    assert max(abs(count - mean) for count in counts) < 4 * mean**0.5, "four deviations of a fair throw"


def test_a_job_is_in_one_shard_for_ever() -> None:
    assert [shard_of("nightly", shards) for shards in (1, 2, 3, 16)] == [0, 0, 1, 6]
    assert [Shard(number=number, of=3).has("nightly") for number in range(3)] == [False, True, False]
