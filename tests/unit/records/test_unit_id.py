from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.records.unit_id import BUSINESS_KEY, JOB_NAME, PARTITION_NAME, BadUnitIdError, UnitId, parse_unit_id

SLOTS = st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC)).map(  # noqa: DTZ001 - a zone is drawn
    lambda slot: slot.replace(microsecond=0)
)


def matching(pattern: str) -> st.SearchStrategy[str]:
    return st.from_regex(pattern, fullmatch=True)


UNIT_IDS = st.builds(
    UnitId,
    job=matching(JOB_NAME),
    partition=st.none() | matching(PARTITION_NAME),
    slot=SLOTS,
    origin=st.sampled_from([None, "manual", "drill", "canary"]),
    again=st.integers(0, 9_999),
) | st.builds(UnitId, job=matching(JOB_NAME), key=matching(BUSINESS_KEY), again=st.integers(0, 9_999))


@given(unit_id=UNIT_IDS)
def test_a_unit_id_read_from_its_own_text_is_the_same(unit_id: UnitId) -> None:
    assert parse_unit_id(str(unit_id)) == unit_id


@given(text=st.text(max_size=80))
def test_any_text_is_refused_or_is_the_text_of_what_was_read(text: str) -> None:
    try:
        unit_id = parse_unit_id(text)
    except BadUnitIdError:
        return
    assert str(unit_id) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("job@2026-11-29T06:00:00Z", UnitId(job="job", slot=datetime(2026, 11, 29, 6, tzinfo=UTC))),
        ("job/eu@2026-11-29T06:00:00Z", UnitId(job="job", partition="eu", slot=datetime(2026, 11, 29, 6, tzinfo=UTC))),
        ("job@key:invoice-77", UnitId(job="job", key="invoice-77")),
        (
            "job@2026-11-29T06:00:00Z~drill~again-2",
            UnitId(job="job", slot=datetime(2026, 11, 29, 6, tzinfo=UTC), origin="drill", again=2),
        ),
    ],
)
def test_each_form_is_read_for_what_it_is(text: str, expected: UnitId) -> None:
    assert parse_unit_id(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "job",
        "job@",
        "job@2026-11-29T06:00:00",  # no zone
        "job@2026-11-29T06:00:00+01:00",
        "job@2026-11-29T06:00:00.5Z",
        "job@2026-13-01T06:00:00Z",
        "job@2026-02-30T06:00:00Z",
        "job@0000-01-01T00:00:00Z",
        "job@２０２６-11-29T06:00:00Z",  # noqa: RUF001 - full-width digits are digits to \d
        "job@٢٠٢٦-11-29T06:00:00Z",
        "job@2026-11-29T06:00:00Z\n",
        "\njob@2026-11-29T06:00:00Z",
        "job@2026-11-29T06:00:00Z~other",
        "job@2026-11-29T06:00:00Z~again-0",
        "job@2026-11-29T06:00:00Z~again-01",
        "job@2026-11-29T06:00:00Z~again-1~drill",
        "Job@2026-11-29T06:00:00Z",
        "1job@2026-11-29T06:00:00Z",
        "job/@2026-11-29T06:00:00Z",
        "job/a/b@2026-11-29T06:00:00Z",
        "job/../x@2026-11-29T06:00:00Z",
        "job#1@2026-11-29T06:00:00Z",
        "job@key:",
        "job@key:a b",
        "job@key:a~b",
        "j" * 64 + "@2026-11-29T06:00:00Z",
        "j" * 10_240,
        "job@" + "2026-11-29T06:00:00Z" * 512,
        "job@key:" + "k" * 129,
        "jöb@2026-11-29T06:00:00Z",
        "job@2026-11-29T06:00:00Z\ud800",
    ],
    ids=lambda text: repr(text[:40]) + str(len(text)),
)
def test_a_text_that_names_no_unit_is_refused(text: str) -> None:
    with pytest.raises(BadUnitIdError):
        parse_unit_id(text)


@pytest.mark.parametrize("other", [None, 7, b"job@2026-11-29T06:00:00Z", ["job@2026-11-29T06:00:00Z"], {}])
def test_what_is_no_text_is_refused(other: object) -> None:
    with pytest.raises(BadUnitIdError):
        parse_unit_id(other)


def test_a_retry_is_a_unit_of_its_own_with_the_next_number() -> None:
    first = parse_unit_id("job/eu@2026-11-29T06:00:00Z~manual")

    assert str(first.retried()) == "job/eu@2026-11-29T06:00:00Z~manual~again-1"
    assert str(first.retried().retried()) == "job/eu@2026-11-29T06:00:00Z~manual~again-2"
