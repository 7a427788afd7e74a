from __future__ import annotations

from datetime import timedelta

import pytest

from functions.kit.settings import SettingError
from functions.relay.settings import RelaySettings

GOOD = {"SPLITSHIFT_QUEUES": '{"default": "https://queue"}', "SPLITSHIFT_RELAY_FAILURE_QUEUE": "https://failure"}


def test_the_sweep_looks_from_two_minutes_to_a_week_back_unless_told():
    settings = RelaySettings.from_env(GOOD)
    hours = (timedelta(hours=1), timedelta(hours=6), timedelta(days=1), timedelta(days=7))
    assert settings.sweep_ages == (timedelta(minutes=2), timedelta(minutes=5), *hours)
    assert settings.queue_urls == {"default": "https://queue"}


def test_ages_rise_and_come_once():
    settings = RelaySettings.from_env({**GOOD, "SPLITSHIFT_SWEEP_AGES_SECONDS": "300,120,300"})
    assert settings.sweep_ages == (timedelta(minutes=2), timedelta(minutes=5))


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("SPLITSHIFT_QUEUES", "https://queue"),
        ("SPLITSHIFT_QUEUES", "[]"),
        ("SPLITSHIFT_QUEUES", "{}"),
        ("SPLITSHIFT_QUEUES", '{"default": 5}'),
        ("SPLITSHIFT_QUEUES", ""),
        ("SPLITSHIFT_RELAY_FAILURE_QUEUE", ""),
        ("SPLITSHIFT_SWEEP_AGES_SECONDS", "2m"),
        ("SPLITSHIFT_SWEEP_AGES_SECONDS", "120,0"),
        ("SPLITSHIFT_SWEEP_MAX_MINUTES", "0"),
    ],
)
def test_a_setting_that_cannot_be_read_is_named(variable: str, text: str):
    with pytest.raises(SettingError, match=variable):
        RelaySettings.from_env({**GOOD, variable: text})
