from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.kit.instants import from_ms, from_text, to_epoch_s, to_ms, to_text, to_text_ms, utc

ANY = st.datetimes(timezones=st.just(UTC))
NAIVE = datetime(2026, 11, 29, 6)  # noqa: DTZ001 - the point


@given(instant=ANY)
def test_an_instant_comes_back_from_its_text_to_the_second_and_to_the_millisecond(instant: datetime) -> None:
    assert from_text(to_text(instant)) == instant.replace(microsecond=0)
    assert from_text(to_text_ms(instant)) == instant.replace(microsecond=instant.microsecond // 1000 * 1000)


@given(one=ANY, other=ANY)
def test_texts_sort_as_their_instants_do(one: datetime, other: datetime) -> None:
    assert (to_text_ms(one) < to_text_ms(other)) == (to_ms(one) < to_ms(other))


@given(instant=ANY)
def test_milliseconds_and_seconds_are_whole_and_never_ahead_of_the_instant(instant: datetime) -> None:
    assert timedelta(0) <= instant - from_ms(to_ms(instant)) < timedelta(milliseconds=1)
    assert to_epoch_s(instant) == to_ms(instant) // 1000


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (datetime(2026, 11, 29, 6, 0, 0, 999_999, tzinfo=UTC), "2026-11-29T06:00:00Z"),
        (datetime(999, 1, 2, tzinfo=UTC), "0999-01-02T00:00:00Z"),
        (datetime(2026, 11, 29, 7, tzinfo=timezone(timedelta(hours=1))), "2026-11-29T06:00:00Z"),
        (datetime(2026, 10, 25, 2, 30, fold=0, tzinfo=ZoneInfo("Europe/Berlin")), "2026-10-25T00:30:00Z"),
        (datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")), "2026-10-25T01:30:00Z"),
    ],
)
def test_the_text_is_utc_to_the_second_with_four_digits_of_year(instant: datetime, text: str) -> None:
    assert to_text(instant) == text


@pytest.mark.parametrize("take", [to_text, to_text_ms, to_ms, to_epoch_s, utc])
def test_a_naive_datetime_is_refused_everywhere(take: Callable[[datetime], object]) -> None:
    with pytest.raises(ValueError, match="naive"):
        take(NAIVE)


@pytest.mark.parametrize(
    "text",
    ["2026-11-29T06:00:00", "2026-11-29", "", "soon", "2026-02-30T00:00:00Z", "0001-01-01T00:00:00+14:00"],
)
def test_a_text_that_names_no_instant_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - Python's own messages differ
        from_text(text)


def test_an_offset_is_understood() -> None:
    assert from_text("2026-11-29T07:00:00+01:00") == datetime(2026, 11, 29, 6, tzinfo=UTC)
    assert from_text("2026-11-29T07:00:00+01:00").tzinfo is UTC
