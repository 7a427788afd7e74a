"""The demo's last word is the receiver's: what reaches it after a step passed makes the demo fail."""

from __future__ import annotations

import json

from functions.cli.demo_steps import other_alerts, recounted
from functions.cli.drills import DrillResult
from functions.local.receiver import ReceiverLog
from tests.support.http import request

UNIT = "demo-charge@2026-11-29T06:00:00Z"
PASSED = DrillResult(
    name="ordinary", unit_id=UNIT, effects_at_receiver=1, duplicates_recorded=0, attempts=1, alerts=(), ok=True
)


def charge(url: str, key: str) -> None:
    headers = {"X-Unit-Id": UNIT, "Idempotency-Key": f'"{key}"'}
    assert request(f"{url}/effects/charge", body=b"{}", headers=headers).status == 201


def tell(url: str, reason: str, unit_id: str | None) -> None:
    message = {"id": f"I-{reason}", "reason": reason, "unit_id": unit_id, "state": "open"}
    body = {"Type": "Notification", "MessageId": reason, "Message": json.dumps(message), "Subject": "s"}
    assert request(f"{url}/sns", body=json.dumps(body).encode()).status == 200


def test_a_step_that_stays_as_it_was_judged_has_passed(receiver: str) -> None:
    charge(receiver, "k-1")
    assert recounted(ReceiverLog(url=receiver), PASSED) is PASSED
    assert other_alerts(ReceiverLog(url=receiver), [PASSED]) == []


def test_a_second_charge_after_its_step_is_a_failure(receiver: str) -> None:
    charge(receiver, "k-1")
    charge(receiver, "k-2")
    last = recounted(ReceiverLog(url=receiver), PASSED)
    assert (last.ok, last.effects_at_receiver) == (False, 2)
    assert last.problem is not None


def test_an_alert_after_its_step_is_a_failure(receiver: str) -> None:
    charge(receiver, "k-1")
    tell(receiver, "not_complete", UNIT)
    last = recounted(ReceiverLog(url=receiver), PASSED)
    assert (last.ok, last.alerts) == (False, ("not_complete",))


def test_an_alert_about_anything_else_is_told(receiver: str) -> None:
    """A silent role is no unit's alert."""
    charge(receiver, "k-1")
    tell(receiver, "heartbeat", None)
    log = ReceiverLog(url=receiver)
    assert recounted(log, PASSED).ok
    [problem] = other_alerts(log, [PASSED])
    assert "heartbeat" in problem
