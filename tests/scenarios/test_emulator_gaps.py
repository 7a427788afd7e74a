"""G07: what an emulator accepts and AWS refuses is refused, or made right, by rules of ours.

Each case is first shown to be accepted by moto, so that the rule is seen to be the only guard; where a later moto
learns to refuse it, that half of the test says so.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

import boto3
import pytest

from functions.monitor.messages import for_people, subject
from functions.records.incidents import Incident
from functions.relay.messages import UnreadableRecordError, checked
from functions.schedules.expressions import parse
from functions.schedules.rules import Refused
from functions.schedules.zone_names import known_zone

NOW = datetime(2026, 11, 29, 6, tzinfo=UTC)
# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html: ASCII, begins with a letter, number or punctuation mark,
# no line breaks or control characters, under 100 characters.
SNS_SUBJECT = re.compile(r"[!-~][ -~]{0,98}")
TEXTS = ["a\nb", "zürich-export", " leading", "x" * 120, "\x1b[31mred", "emoji \N{PILE OF POO}", ""]


@pytest.fixture(scope="module")
def client_for(moto_endpoint):
    return lambda service: boto3.client(service, endpoint_url=moto_endpoint, region_name="eu-central-1")


@pytest.mark.parametrize(
    "expression", ["garbage", "rate(1 minutes)", "rate(0 minutes)", "at(2026-13-40T00:00:00)", "cron(7 20 * * 1-7 *)"]
)
def test_g07_a_schedule_that_moto_takes_and_aws_refuses_is_refused_by_the_parser(client_for, expression):
    client_for("scheduler").create_schedule(
        Name=f"s{abs(hash(expression))}",
        ScheduleExpression=expression,
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": "arn:aws:lambda:eu-central-1:123456789012:function:f", "RoleArn": "arn:aws:iam::1:role/r"},
    )
    with pytest.raises(Refused):
        parse(expression)


@pytest.mark.parametrize("zone", ["Mars/Phobos", "../../etc/passwd", "", "america/new_york", "UTC\n"])
def test_g07_a_zone_that_does_not_exist_is_refused(zone):
    with pytest.raises(Refused):
        known_zone(zone)


@pytest.mark.parametrize("text", TEXTS)
def test_g07_a_subject_is_as_sns_wants_it_and_the_body_never_empty(client_for, text):
    topic = client_for("sns").create_topic(Name="g07")["TopicArn"]
    incident = Incident(
        condition=f"failed#{text}",
        reason="failed",
        subject=text,
        state="open",
        severity="page",
        opened_at=NOW,
        detail=text,
        job=text,
    )

    line = subject(incident, "open", "prod")

    assert SNS_SUBJECT.fullmatch(line)
    assert for_people(incident, "open", "prod", None).strip()
    # moto takes the raw text, which AWS would refuse.
    if text and len(text) < 100:
        client_for("sns").publish(TopicArn=topic, Message="m", Subject=text)


@pytest.mark.parametrize(
    ("unit_id", "lock"),
    [("job@2026-11-29T06:00:00Z", "a\x00b"), ("job@2026-11-29T06:00:00Z", ""), ("job\x00@x", "job"), ("", "job")],
)
def test_g07_a_queue_is_sent_only_what_sqs_takes(client_for, unit_id, lock):
    queue = client_for("sqs").create_queue(QueueName="g07")["QueueUrl"]
    client_for("sqs").send_message(QueueUrl=queue, MessageBody=f"{unit_id}{lock}" or "x")
    with pytest.raises(UnreadableRecordError):
        checked(unit_id=unit_id, lock=lock, pool="default", run_at=NOW, pools={"default"})


def test_g07_a_lock_template_that_could_outgrow_a_key_is_refused():
    from functions.schedules.rules import lock  # noqa: PLC0415 - the name is this test's subject

    assert lock("ledger-{partition}") == "ledger-{partition}"
    with pytest.raises(Refused, match="characters long"):
        lock("{partition}" * 33)
