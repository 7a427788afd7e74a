from __future__ import annotations

from datetime import timedelta

import pytest

from functions.kit.settings import SettingError
from functions.scheduler.settings import SchedulerSettings


def test_rows_are_written_five_minutes_ahead_unless_told():
    assert SchedulerSettings.from_env({}).lookahead == timedelta(minutes=5)
    assert SchedulerSettings.from_env({"SPLITSHIFT_LOOKAHEAD_SECONDS": "840"}).lookahead == timedelta(minutes=14)


@pytest.mark.parametrize("seconds", ["841", "-1"])
def test_a_lookahead_that_a_message_cannot_be_delayed_by_is_refused(seconds: str):
    with pytest.raises(SettingError, match="SPLITSHIFT_LOOKAHEAD_SECONDS"):
        SchedulerSettings.from_env({"SPLITSHIFT_LOOKAHEAD_SECONDS": seconds})


@pytest.mark.parametrize("variable", ["SPLITSHIFT_MAX_ROWS_PER_TICK", "SPLITSHIFT_TICK_EVERY_SECONDS"])
def test_a_tick_that_may_write_nothing_or_never_comes_is_refused(variable: str):
    with pytest.raises(SettingError, match=variable):
        SchedulerSettings.from_env({variable: "0"})


@pytest.mark.parametrize("shards", ["0", "17", "-1"])
def test_more_shards_than_one_transaction_changes_are_refused(shards: str):
    with pytest.raises(SettingError, match="SPLITSHIFT_SHARDS is out of range: write 1 to 16"):
        SchedulerSettings.from_env({"SPLITSHIFT_SHARDS": shards})
