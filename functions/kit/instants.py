"""Instants as text and as numbers.  Aware UTC everywhere; a naive datetime is a bug and raises."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_text(instant: datetime) -> str:
    """`2026-11-29T06:00:00Z`, to the second: the form of slots and unit ids (RFC 3339)."""
    return _text(instant, "seconds")


def to_text_ms(instant: datetime) -> str:
    """`2026-11-29T06:00:00.123Z`: the form of journal entries, where order within a second matters."""
    return _text(instant, "milliseconds")


def from_text(text: str) -> datetime:
    """Either form, or any ISO 8601 text with an offset.  Raises ValueError for a text without one."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} has no offset: write it with Z or +hh:mm")
    try:
        return instant.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is outside the years that can be counted") from error


def to_ms(instant: datetime) -> int:
    """Milliseconds since 1970: what conditions compare."""
    return (utc(instant) - EPOCH) // timedelta(milliseconds=1)


def from_ms(milliseconds: int) -> datetime:
    """Raises ValueError for a number that leads out of the years that can be counted."""
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError as error:
        raise ValueError("that many milliseconds are outside the years that can be counted") from error


def to_epoch_s(instant: datetime) -> int:
    """Whole seconds since 1970: what DynamoDB's TTL wants."""
    return to_ms(instant) // 1000


def utc(instant: datetime) -> datetime:
    """The same instant in UTC.  Raises ValueError for a naive datetime, which would be taken for local time."""
    if instant.tzinfo is None:
        raise ValueError("a naive datetime has no place here: pass an aware one")
    return instant.astimezone(UTC)


def _text(instant: datetime, timespec: str) -> str:
    # Not strftime: its years before 1000 have fewer than four digits on Linux.
    return utc(instant).replace(tzinfo=None).isoformat(timespec=timespec) + "Z"
