"""Each role does in AWS what its permissions say, no more and no less: the real handlers, on an emulator; and the
synthesised policies allow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import pytest

from functions.local.receiver import Receiver
from tests.infra.judging import Engine, Request, Verdict
from tests.infra.listed import POOL, STREAMS, Granted, of_loop_mode_only
from tests.infra.policies import Stage as Synthesised
from tests.infra.synthesis import Synthesis
from tests.support import probes
from tests.support.calls import Call
from tests.support.demo import Demo
from tests.support.everything import the_jobs, the_scenario
from tests.support.permissions import PERMISSIONS, Permission
from tests.support.turns import a_stage

Calls = Mapping[Call, int]
ROLES = {"scheduler", "relay", "worker", "monitor"}


@pytest.fixture(scope="module")
def calls(moto_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Calls:
    """Of the whole scenario, as boto3 made them."""
    folder = tmp_path_factory.mktemp("calls")
    with pytest.MonkeyPatch.context() as patch, Receiver.start(folder / "receiver.sqlite") as receiver:
        patch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
        probes.install(patch)
        with a_stage(folder, receiver.url, the_jobs(), patch) as stage:
            the_scenario(stage)
            return dict(stage.recorder.calls)


# --- what is compared -----------------------------------------------------------------------------------------------


def allows(permission: Permission, call: Call) -> bool:
    same = (permission.action, permission.resource) == (call.action, call.resource)
    return same and fnmatchcase(call.key, permission.key)


def table(calls: Calls) -> str:
    lines = (
        f"{call.role:<15} {call.action:<29} {call.resource:<25} {call.key:<15} {count:>4}"
        for call, count in sorted(calls.items())
    )
    return "\n".join(lines)


@pytest.mark.slow
def test_each_role_makes_the_calls_of_its_permissions_and_no_others(
    calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        print(f"\n{table(calls)}")  # noqa: T201 - the table is for whoever writes a policy
    not_allowed = [call for call in calls if not any(allows(one, call) for one in PERMISSIONS[call.role])]
    assert not_allowed == []
    # One that is said to be unseen and was seen has lost its reason.
    told_wrongly = [
        (role, permission)
        for role, permissions in PERMISSIONS.items()
        for permission in permissions
        if bool(permission.unseen) is any(call.role == role and allows(permission, call) for call in calls)
    ]
    assert told_wrongly == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["prod", "dev"])
def test_the_policies_of_a_stage_allow_every_call_that_a_role_made(
    calls: Calls, synthesis: Synthesis, engine: Engine, name: str
) -> None:
    assert refused(calls, Synthesised(name, synthesis), engine) == []


@pytest.mark.slow
def test_the_policies_allow_every_call_of_the_drills(demo: Demo, synthesis: Synthesis, engine: Engine) -> None:
    assert demo.ended.returncode == 0, demo.ended.stderr[-3000:]
    by_roles = [call for call in demo.calls if call.role in ROLES]
    assert {call.role for call in by_roles} == ROLES
    assert Call(role="worker", action="dynamodb:ConditionCheckItem", resource="completions") in by_roles, "a takeover"
    assert refused(by_roles, Synthesised("prod", synthesis), engine) == []


def refused(calls: Iterable[Call], stage: Synthesised, engine: Engine) -> list[tuple[Request, Verdict]]:
    made = [as_granted(call) for call in calls if not of_loop_mode_only(call.action, call.key)]
    requests = [
        Request(
            principal=stage.resource(f"role {function}"),
            action=one.action,
            resource=stage.resource(one.resource),
            key=one.key,
        )
        for function, one in made
    ]
    said = engine.judge(requests, principals=stage.principals, resource_policies=stage.resource_policies)
    return [(one, verdict) for one, verdict in said.items() if verdict is not Verdict.ALLOWED]


def as_granted(call: Call) -> tuple[str, Granted]:
    """The function that made it, and what IAM is asked: of a shard's records, for the stream."""
    role = call.role.removesuffix(" mapping")
    resource = STREAMS[role] if call.action == "dynamodb:GetRecords" else call.resource
    return f"worker-{POOL}" if role == "worker" else role, Granted(call.action, resource, call.key)


def who_may(*actions: str, resource: str) -> set[str]:
    return {
        role
        for role, permissions in PERMISSIONS.items()
        for permission in permissions
        if permission.action in actions and permission.resource.startswith(resource)
    }


WRITES = tuple(f"dynamodb:{verb}Item" for verb in ("Put", "Update", "Delete", "BatchWrite"))


def test_each_record_has_one_writer() -> None:
    writers = {name: who_may(*WRITES, resource=name) for name in ("inventory", "leases", "completions", "incidents")}
    assert writers == {
        "inventory": {"scheduler"},
        "leases": {"worker"},
        "completions": {"worker"},
        "incidents": {"monitor"},
    }


def test_nobody_may_change_or_delete_what_stands_in_the_journal() -> None:
    assert who_may(*WRITES[1:], resource="completions") == set()


def test_only_the_relay_sends_work_and_only_the_monitor_alerts() -> None:
    assert who_may("sqs:SendMessage", resource="queue") == {"relay"}
    assert who_may("sns:Publish", resource="topic") == {"monitor"}


def test_no_two_roles_write_one_heartbeat() -> None:
    rows = [
        (role.removesuffix(" mapping"), one.key)
        for role, permissions in PERMISSIONS.items()
        for one in permissions
        if one.resource == "heartbeats" and one.action in WRITES
    ]
    assert sorted({key for _, key in rows}) == [
        "monitor",
        "monitor#stream",
        "relay",
        "relay#stream",
        "scheduler#*",
        "worker#default",
    ]
    assert len({key for _, key in rows}) == len(set(rows))
