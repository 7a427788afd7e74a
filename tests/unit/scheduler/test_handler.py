from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from functions.kit.clock import SettableClock
from functions.scheduler.handler import BadTickError, instant_of, shard_of
from tests.support.ticks import NOON

CLOCK = SettableClock(NOON + timedelta(minutes=3, seconds=41.5))


def test_the_tick_is_the_instant_the_trigger_was_meant_for_not_the_clock():
    assert instant_of({"scheduled_time": "2026-11-29T12:00:00Z"}, CLOCK) == NOON


def test_where_nobody_filled_in_the_scheduled_time_the_minute_of_the_clock_stands_for_it():
    event = {"scheduled_time": "<aws.scheduler.scheduled-time>"}
    assert instant_of(event, CLOCK) == NOON + timedelta(minutes=3)


@pytest.mark.parametrize("event", [{}, {"scheduled_time": 5}, {"scheduled_time": "2026-11-29"}, {"scheduled_time": ""}])
def test_an_event_without_an_instant_is_refused_with_what_to_send(event: dict[str, Any]):
    with pytest.raises(BadTickError, match="2026-11-29T"):
        instant_of(event, CLOCK)


def test_the_event_names_the_shard_and_the_only_one_needs_no_name():
    assert [shard_of({"shard": 2}), shard_of({})] == [2, 0]


@pytest.mark.parametrize("shard", ["1", None, True, 1.0])
def test_a_shard_that_is_no_number_is_refused(shard: object):
    with pytest.raises(BadTickError, match="shard"):
        shard_of({"shard": shard})
