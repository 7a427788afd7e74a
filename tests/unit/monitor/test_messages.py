"""What is sent fits SNS whatever a job is called and whatever it says, and a person can read it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.monitor import messages
from functions.monitor.reasons import Reason
from functions.records.incidents import OPEN, RESOLVED, Incident, condition_of

OPENED = datetime(2026, 11, 30, 1, 14, tzinfo=UTC)
UNIT = "nightly-invoices/eu@2026-11-30T01:00:00Z"
HOSTILE = [
    "x" * 120,
    "zürich-export",
    "a\nb",
    " leading",
    "\u2028\u2029\x85",
    "🙈" * 200,
    "",
    "\ud800",
    "\x00\x1b[31m",
    "Traceback\n" * 30_000,
    "ß" * 300_000,
]


def incident(**changes: Any) -> Incident:
    values: dict[str, Any] = {
        "condition": condition_of(Reason.FAILED, UNIT),
        "reason": Reason.FAILED,
        "subject": UNIT,
        "state": OPEN,
        "severity": "page",
        "opened_at": OPENED,
        "detail": "at 2026-11-30T01:14:00Z, after 3 attempts: BillingError",
        "job": "nightly-invoices",
        "owner": "payments",
        "runbook": "https://wiki.example.com/runbooks/nightly-invoices",
        "promised_by": datetime(2026, 11, 30, 5, 0, tzinfo=UTC),
    }
    return Incident(**(values | changes))


def assert_sns_takes(subject: str, body: str) -> None:
    """The API reference of Publish, by rules of ours: the emulators take anything."""
    assert re.fullmatch(r"[!-~][ -~]{0,98}", subject, re.ASCII), subject
    assert 0 < len(body.encode()) <= 8_192
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]", body)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("reason", Reason)
def test_f11_sns_takes_the_message_whatever_subject_and_error_are(reason: Reason, text: str):
    """F11: over-long, not ASCII, line breaks, leading space, 300 KB of traceback, nothing at all."""
    key = condition_of(reason, text.encode(errors="replace").decode())  # a key of a table is always UTF-8
    odd = incident(reason=reason, subject=text, condition=key, detail=text, job=text, owner=text)
    for state in (OPEN, RESOLVED):
        subject = messages.subject(odd, state, "prod")
        assert_sns_takes(subject, messages.for_people(odd, state, "prod", None))
        assert_sns_takes(subject, messages.for_programs(odd, state, "prod"))
        for attribute in messages.attributes(odd, state).values():
            assert attribute["StringValue"]
            assert len(attribute["StringValue"].encode()) <= 1_000


@given(text=st.text(max_size=200), stage=st.text(alphabet="abc-", max_size=40))
def test_f11_sns_takes_any_text(text: str, stage: str):
    odd = incident(reason=Reason.HEARTBEAT, subject=text, condition=text, detail=text)
    assert_sns_takes(messages.subject(odd, OPEN, stage), messages.for_people(odd, OPEN, stage, None))
    json.loads(messages.for_programs(odd, OPEN, stage))


def test_f11_what_the_subject_cannot_hold_stands_in_the_body():
    """F11: the original text is kept where there is room for it."""
    text = messages.for_people(incident(detail="zürich-export 🙈"), OPEN, "prod", None)
    assert "zürich-export 🙈" in text


def test_the_text_says_what_since_when_promised_next_and_where_to_read():
    assert messages.for_people(incident(), OPEN, "prod", "Europe/Berlin").splitlines() == [
        "[page] nightly-invoices/eu failed (prod)",
        "",
        "  What     nightly-invoices/eu@2026-11-30T01:00:00Z (2026-11-30 02:00 +0100 Europe/Berlin), owner payments",
        "  Since    2026-11-30 01:14 UTC",
        "  Detail   at 2026-11-30T01:14:00Z, after 3 attempts: BillingError",
        "  Promised by 2026-11-30 05:00 UTC: 3h46m left",
        "  Next     splitshift show 'nightly-invoices/eu@2026-11-30T01:00:00Z' --stage prod",
        "  Runbook  https://wiki.example.com/runbooks/nightly-invoices",
    ]


def test_a_resolution_says_when_and_why_and_asks_for_nothing():
    over = incident(state=RESOLVED, resolved_at=OPENED + timedelta(minutes=30), detail="another succeeded")
    text = messages.for_people(over, RESOLVED, "prod", None)
    assert text.startswith("[resolved] nightly-invoices/eu failed (prod)")
    assert "2026-11-30 01:14 UTC, resolved 2026-11-30 01:44 UTC" in text
    assert "another succeeded" in text
    assert "Next" not in text


def test_a_promise_that_is_broken_says_by_how_much():
    late = incident(reason=Reason.NOT_COMPLETE, promised_by=OPENED - timedelta(days=1, hours=2))
    assert "by 2026-11-28 23:14 UTC: 1d2h over" in messages.for_people(late, OPEN, "prod", None)


def test_the_document_for_programs_is_versioned_and_complete():
    over = incident(state=RESOLVED, resolved_at=OPENED + timedelta(minutes=30))
    assert json.loads(messages.for_programs(over, RESOLVED, "prod")) == {
        "version": 1,
        "id": over.incident_id,
        "condition": f"failed#{UNIT}",
        "reason": "failed",
        "state": "resolved",
        "severity": "page",
        "stage": "prod",
        "unit_id": UNIT,
        "job": "nightly-invoices",
        "owner": "payments",
        "opened_at": "2026-11-30T01:14:00.000Z",
        "resolved_at": "2026-11-30T01:44:00.000Z",
        "detail": "at 2026-11-30T01:14:00Z, after 3 attempts: BillingError",
    }


@pytest.mark.parametrize("reason", [Reason.HEARTBEAT, Reason.BAD_DEFINITION, Reason.DEFINITIONS_DIFFER])
def test_an_incident_of_no_unit_names_none(reason: Reason):
    document = json.loads(messages.for_programs(incident(reason=reason, subject="relay", job=None), OPEN, "prod"))
    assert (document["unit_id"], document["resolved_at"]) == (None, None)


def test_attributes_let_subscribers_filter():
    attributes = {name: value["StringValue"] for name, value in messages.attributes(incident(), OPEN).items()}
    assert attributes == {"reason": "failed", "severity": "page", "state": "open", "job": "nightly-invoices"}
    assert "job" not in messages.attributes(incident(job=None), OPEN)


@pytest.mark.parametrize(
    ("reason", "command"),
    [
        (Reason.NOT_STARTED, f"splitshift show '{UNIT}' --stage prod"),
        (Reason.BAD_DEFINITION, "splitshift check"),
        (Reason.HEARTBEAT, "splitshift status --stage prod"),
    ],
)
def test_the_next_step_is_a_command_that_exists(reason: Reason, command: str):
    assert command in messages.for_people(incident(reason=reason), OPEN, "prod", None)
