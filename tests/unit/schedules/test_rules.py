from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.schedules import rules
from functions.schedules.rules import Refused, duration, in_words
from functions.schedules.zone_names import all_names, known_zone
from functions.schedules.zones import load_zone


@pytest.mark.parametrize(
    ("text", "seconds"), [("0s", 0), ("90m", 5400), ("1h30m", 5400), ("1d2h3m4s", 93_784), ("366d", 31_622_400)]
)
def test_a_duration_is_whole_numbers_with_units_in_order(text: str, seconds: int) -> None:
    assert duration(text) == seconds


@given(st.integers(0, rules.YEAR_S))
def test_a_duration_in_words_means_the_same_seconds(seconds: int) -> None:
    assert duration(in_words(seconds)) == seconds


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        (300, 'write "5m"'),
        (1.5, 'write "2s"'),
        ("1.5h", 'write "1h30m"'),
        ("5 m", 'write "5m"'),
        ("PT5M", 'write "5m"'),
        ("5M", 'write "5m"'),
        ("5 minutes", 'write "5m"'),
        ("30m1h", 'write "1h30m"'),
        ("5m5m", 'write "10m"'),
        ("", "such as"),
        ("300", "such as"),
        ("m", "such as"),
        ("-5m", "such as"),
        ("5m\n", 'write "5m"'),
        ("٥m", "such as"),  # noqa: RUF001  Arabic-Indic five
        (True, "such as"),
        (None, "such as"),
        (["5m"], "such as"),
        (float("nan"), "such as"),
        ("9" * 100_000 + "m", "such as"),
        ("367d", '"0s" to "366d"'),
    ],
)
def test_another_way_to_write_a_duration_is_refused_with_the_right_one(value: object, fix: str) -> None:
    with pytest.raises(Refused) as caught:
        duration(value)
    assert fix in caught.value.fix
    assert len(caught.value.message) < 100


@pytest.mark.parametrize(
    "value", ["os:system\n", "../x:main", "a.b", "a:b:c", "a..b:c", ".a:b", "a:__class__", "a/b:c", "a:b()", "", 5]
)
def test_run_names_a_function_and_nothing_that_could_leave_the_jobs_folder(value: object) -> None:
    """H04"""
    with pytest.raises(Refused):
        rules.run(value)


@pytest.mark.parametrize("value", ["a/b", "a@b", "a~b", "a:b", "A", "1a", "a\n", "", "a" * 64, "é", 5, None])
def test_a_name_holds_no_delimiter_of_unit_ids(value: object) -> None:
    with pytest.raises(Refused):
        rules.name(value)


@pytest.mark.parametrize("value", ["a/b", "a@b", "a~b", "a:b", "", " a", "-a", "a\n", 5])
def test_a_partition_holds_no_delimiter_of_unit_ids(value: object) -> None:
    with pytest.raises(Refused):
        rules.partitions(["eu", value])


def test_partitions_are_a_thousand_at_most_and_each_once() -> None:
    assert len(rules.partitions([str(n) for n in range(1000)])) == 1000
    with pytest.raises(Refused, match="1001 partitions"):
        rules.partitions([str(n) for n in range(1001)])
    with pytest.raises(Refused, match="twice"):
        rules.partitions(["eu", "us", "eu"])


@pytest.mark.parametrize("value", ["{owner}", "a b", "{job", "x/{job}", "{partition!r}", "x\n", 5])
def test_a_lock_has_no_placeholders_but_job_and_partition(value: object) -> None:
    with pytest.raises(Refused):
        rules.lock(value)


@pytest.mark.parametrize(
    "value",
    ["http://wiki", "javascript:alert(1)", "https://", 'https://x"><script>', "https://x/{owner}", "https://x y"],
)
def test_a_link_is_https_and_cannot_break_out_of_markup(value: object) -> None:
    """H02"""
    with pytest.raises(Refused):
        rules.link(value)


@pytest.mark.parametrize(
    "value",
    [
        {"a": "\x00"},
        {"a": ["x", {"b": "\x1b[31m"}]},
        {"\x07": 1},
        {"a": "\ud800"},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": object()},
        {"a": "x" * 8192},
        ["a"],
    ],
)
def test_a_payload_holds_only_what_every_transport_takes(value: object) -> None:
    """H10"""
    with pytest.raises(Refused):
        rules.payload(value)


def test_of_all_characters_those_are_refused_that_a_queue_refuses() -> None:
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html, and DEL of ours."""
    taken = [0x9, 0xA, 0xD, *range(0x20, 0x7F), *range(0x80, 0xD800), *range(0xE000, 0xFFFE), *range(0x10000, 0x110000)]
    for first in range(0, len(taken), 2000):
        rules.payload({"text": "".join(map(chr, taken[first : first + 2000]))})
    for code in {*range(0x110000)} - {*taken}:
        with pytest.raises(Refused, match="which queues refuse"):
            rules.payload({"text": f"a{chr(code)}é"})


def test_a_payload_of_8_kb_with_line_breaks_and_any_letters_is_fine() -> None:
    """H10"""
    payload = {"text": "é\n\t", "n": [1, 2.5, True, None], "fill": ""}
    payload["fill"] = "x" * (8192 - len(b'{"text":"\xc3\xa9\\n\\t","n":[1,2.5,true,null],"fill":""}'))
    assert rules.payload(payload) == payload


NO_ZONES = [
    "../../etc/passwd",
    "/etc/passwd",
    "",
    "america/new_york",
    "America",
    "Mars/Base",
    "UTC\n",
    "Europe/Berlin\x00",
]
NO_PLACES = ["right/UTC", "posix/UTC", "localtime", "posixrules", "Factory"]


@pytest.mark.parametrize("value", [*NO_ZONES, *NO_PLACES, "A" * 100_000, 5, None])
def test_what_is_no_zone_is_refused_whatever_the_library_raises(value: object) -> None:
    """H06"""
    with pytest.raises(Refused):
        load_zone(value)
    with pytest.raises(Refused):
        known_zone(value)


@pytest.mark.parametrize(
    ("written", "zone"), [("america/new york", "America/New_York"), ("Addis Ababa", "Africa/Addis_Ababa")]
)
def test_a_misspelt_zone_is_answered_with_the_nearest(written: str, zone: str) -> None:
    with pytest.raises(Refused, match=f'write "{zone}"'):
        known_zone(written)


def test_no_list_of_zones_offers_what_is_refused() -> None:
    assert {"UTC", "Europe/Berlin"} <= all_names()
    assert all_names().isdisjoint({"Factory", "localtime", "posixrules"})


def test_a_value_shown_in_a_message_is_short_and_cannot_steer_a_terminal() -> None:
    """H08"""
    assert rules.shown("a\x1b[31m\u202eb\n") == '"a\\u001b[31m\\u202eb\\n"'
    assert len(rules.shown("x" * 100_000)) <= 60
