"""Instants as text and as numbers.  Aware UTC everywhere; a naive datetime is a bug and raises."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_text(instant: datetime) -> str:
    """`2026-11-29T06:00:00Z`, to the second: the form of slots and unit ids (RFC 3339)."""
    return _utc(instant).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_text_ms(instant: datetime) -> str:
    """`2026-11-29T06:00:00.123Z`: the form of journal entries, where order within a second matters."""
    utc = _utc(instant)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"


def from_text(text: str) -> datetime:
    """Either form, or any ISO 8601 text with an offset.  Raises ValueError for a text without one."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} has no offset: write it with Z or +hh:mm")
    return instant.astimezone(UTC)


def to_ms(instant: datetime) -> int:
    """Milliseconds since 1970: what conditions compare."""
    return (_utc(instant) - EPOCH) // timedelta(milliseconds=1)


def from_ms(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def to_epoch_s(instant: datetime) -> int:
    """Whole seconds since 1970: what DynamoDB's TTL wants."""
    return to_ms(instant) // 1000


def _utc(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise ValueError("a naive datetime has no place here: pass an aware one")
    return instant.astimezone(UTC)
