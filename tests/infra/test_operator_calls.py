"""Who uses the command line needs what `splitshift policy` prints, no more and no less: the real commands, on an
emulator, judged by a policy engine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from functions.cli.main import COMMANDS, cli
from functions.cli.stage import find_stage
from functions.kit import aws, parameters
from functions.kit.errors import SplitshiftError
from functions.local.receiver import Receiver
from functions.records.database import Put
from functions.records.entries import Completion, Entry, Hold, Outcome
from functions.records.entry_items import to_item
from functions.records.incidents import OPEN, Incident, condition_of
from functions.records.inventory import Row
from functions.records.stores import Stores
from functions.records.tables import COMPLETIONS
from functions.scheduler.courses import packed
from infra.journal import NEVER
from tests.infra.judging import Engine, Request, Verdict
from tests.support.calls import Call, Recorder
from tests.support.commands import installed_at

pytestmark = pytest.mark.slow

MOTO = "123456789012"
JOBS = """
[defaults]
owner = "ops"
run   = "work:main"
[jobs.charge]
schedule = "0 * * * *"
tags     = ["billing"]
drill    = true
[jobs.guarded]
schedule     = "0 * * * *"
needs_review = true
"""
RECEIVER_URL = "SPLITSHIFT_RECEIVER_URL"
IN_THE_ACCOUNT = "https://abcdefgh.lambda-url.us-east-1.on.aws"
NO_PERMISSION_NEEDED = {"sts:GetCallerIdentity"}
ON_THIS_MACHINE = {"check", "schema", "preview", "demo", "dev", "up", "down", "try", "cost"}
A_ROLES_OWN = {"run", "invoke"}
"""They do a role's work, with its permissions."""
ALWAYS = 4_000_000_000


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What readers' and operators' commands asked AWS for, and the policies that are printed for them."""

    of: dict[str, set[Call]]
    policies: dict[str, dict[str, Any]]
    commands: set[str]


class Person:
    """At a shell."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._inventory = f"{os.environ['SPLITSHIFT_STAGE']}-inventory"
        self.commands: set[str] = set()

    def before_a_row(self, do: Callable[[], None]) -> None:
        """Once, immediately before the next row is written."""
        self._recorder.before(lambda call, _: (call.action, call.resource) == ("dynamodb:PutItem", self._inventory), do)

    def runs(self, who: str, *arguments: str, code: int | None = 0) -> str:
        """Whatever a command says; it may not fail but with its own code."""
        self.commands.add(arguments[0])
        with self._recorder.turn(who):
            ran = CliRunner().invoke(cli, [*arguments, "--stage", os.environ["SPLITSHIFT_STAGE"]])
        assert code in (None, ran.exit_code), f"{arguments}: {ran.output} {ran.exception!r}"
        assert isinstance(ran.exception, SystemExit | SplitshiftError | None), f"{arguments}: {ran.exception!r}"
        return ran.stdout


@pytest.fixture(scope="module")
def asked(moto_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[Asked]:
    folder = tmp_path_factory.mktemp("person")
    recorder = Recorder("")
    with (
        Receiver.start(folder / "receiver.sqlite") as receiver,
        pytest.MonkeyPatch.context() as patch,
        recorder.listening(),
        installed_at(folder, moto_endpoint, JOBS, local=False, SPLITSHIFT_DRILLS="true") as root,
    ):
        patch.chdir(root)
        parameters.write(aws.client("ssm"), os.environ["SPLITSHIFT_STAGE"], {RECEIVER_URL: receiver.url})
        person = Person(recorder)
        units = Units(find_stage(os.environ["SPLITSHIFT_STAGE"]).stores)
        looks(person, units, folder)
        acts(person, units)
        drills(person, receiver)
        parameters.write(aws.client("ssm"), os.environ["SPLITSHIFT_STAGE"], {RECEIVER_URL: IN_THE_ACCOUNT})
        yield Asked(
            of={who: {call for call in recorder.calls if call.role == who} for who in ("reader", "operator")},
            policies={
                "reader": json.loads(person.runs("nobody", "policy", "--read-only")),
                "operator": json.loads(person.runs("nobody", "policy")),
            },
            commands=person.commands,
        )


class Units:
    """As roles would have left them; nobody's turn."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self.now = datetime.now(UTC).replace(microsecond=0)
        stage = find_stage(os.environ["SPLITSHIFT_STAGE"])
        stores.heartbeats.first_tick(cursor=self.now, version=stage.definitions.version, now=self.now, every_s=60)
        stores.kept.keep(stage.definitions.version, packed(stage.definitions))
        self.failed, self.failed_too, self.held = (self._row("charge", minutes) for minutes in (1, 2, 3))
        for unit_id in (self.failed, self.failed_too):
            self._entry(unit_id, self._completion(Outcome.FAILED))
        asks = Hold(owner="w1", effect="charge", key="k1", effect_owner="w1", called_at=self.now, at=self.now)
        self._entry(self.held, asks)
        self.approved, self.rejected = (self._row("guarded", minutes, needs_review=True) for minutes in (1, 2))
        self.incident = self._incident(self.failed_too)

    def _row(self, job: str, minutes: int, **fields: Any) -> str:
        at = self.now - timedelta(minutes=minutes)
        unit_id = f"{job}@{at:%Y-%m-%dT%H:%M:%SZ}~manual"
        known: dict[str, Any] = {"unit_id": unit_id, "job": job, "partition": None, "slot": at, "run_at": at}
        self._stores.inventory.request(
            Row(**known, lock=job, origin="manual", created_at=at, **fields), f"request-{minutes}"
        )
        return unit_id

    def _entry(self, unit_id: str, entry: Entry) -> None:
        self._stores.database.put(Put(COMPLETIONS.name, to_item(unit_id, entry, ALWAYS)))

    def succeeded(self, slot: datetime) -> None:
        self._entry(f"charge@{slot:%Y-%m-%dT%H:%M:%SZ}", self._completion(Outcome.SUCCEEDED))

    def _completion(self, outcome: Outcome) -> Completion:
        at = self.now
        return Completion(
            outcome=outcome,
            owner="w1",
            job="charge",
            partition=None,
            slot=at,
            run_at=at,
            started=at,
            finished=at,
        )

    def _incident(self, unit_id: str) -> str:
        condition = condition_of("failed", unit_id)
        incident = Incident(
            condition=condition,
            reason="failed",
            subject=unit_id,
            state=OPEN,
            severity="page",
            opened_at=self.now,
            job="charge",
        )
        opened = self._stores.incidents.open(incident, now=self.now)
        assert opened is not None
        return opened.incident_id


def looks(person: Person, units: Units, folder: Path) -> None:
    log = folder / "log.csv"
    log.write_text("key,time\n")
    for arguments in (
        ("status",),
        ("report", "--since", "10m"),
        ("units", "--since", "10m"),
        ("units", "charge", "--since", "10m", "--state", "failed"),
        ("reconcile", "charge", "--since", "10m", "--log", str(log)),
    ):
        person.runs("reader", *arguments, code=None)  # 1 where it is no good news
    for arguments in (
        ("show", units.failed),
        ("show", "charge@last"),
        ("show", units.incident),
        ("audit", units.failed, "--out", str(folder / "evidence.zip")),
        ("diff",),
        ("backfill", "charge", "--from", "3h", "--until", "now", "--dry-run"),
        ("pause", "charge", "--dry-run"),
        ("resume", "--all"),
        ("cancel", "--all", "--tag", "billing", "--dry-run"),
        ("policy", "--read-only"),
        ("policy",),
    ):
        person.runs("reader", *arguments)


def acts(person: Person, units: Units) -> None:
    for arguments in (
        ("retry", units.failed),
        ("retry", units.incident),
        ("decide", units.held, "charge", "happened", "--note", "seen in the log"),
        ("approve", units.approved),
        ("reject", units.rejected, "--note", "not today"),
        ("trigger", "charge", "--key", "k-1"),
        ("cancel", "charge@key:k-1", "--note", "wrong customer"),
        ("pause", "charge", "--wait"),
        ("resume", "charge"),
    ):
        person.runs("operator", *arguments)
    # It waits for its unit, which a worker has done by the time that it looks.
    person.before_a_row(lambda: units.succeeded(units.now.replace(minute=0, second=0)))
    person.runs("operator", "backfill", "charge", "--from", "1h", "--until", "now")


def drills(person: Person, receiver: Receiver) -> None:
    """One that has armed its fault and asks for its unit when the receiver falls silent: the rest only looks."""
    person.before_a_row(receiver.stop)
    person.runs("operator", "drill", "silence", "charge", code=1)


def requests(calls: set[Call], who: str) -> list[Request]:
    return [
        Request(principal=principal(who), action=call.action, resource=arn(call.resource), key=call.key, account=MOTO)
        for call in sorted(calls)
        if call.action not in NO_PERMISSION_NEEDED
    ]


def principal(who: str) -> str:
    return f"arn:aws:iam::{MOTO}:user/{who}"


def arn(resource: str) -> str:
    """Tables by the names that they have in the emulator."""
    kind, _, path = resource.partition(" ")
    if kind == "parameters":
        return f"arn:aws:ssm:us-east-1:{MOTO}:parameter{path}"
    return f"arn:aws:dynamodb:us-east-1:{MOTO}:table/{resource.replace('/', '/index/')}"


def judged(engine: Engine, asked: Asked, wanted: list[Request]) -> dict[Request, Verdict]:
    principals = {principal(who): [policy] for who, policy in asked.policies.items()}
    return engine.judge(wanted, principals=principals, resource_policies={})


def granted(policy: dict[str, Any]) -> set[tuple[str, str]]:
    return {(action, one["Resource"]) for one in policy["Statement"] for action in one["Action"]}


def test_every_command_is_run_here_or_needs_no_permissions_of_its_own(asked: Asked) -> None:
    assert asked.commands == COMMANDS.keys() - ON_THIS_MACHINE - A_ROLES_OWN


@pytest.mark.parametrize("who", ["reader", "operator"])
def test_a_person_may_do_what_their_commands_do(asked: Asked, engine: Engine, who: str) -> None:
    said = judged(engine, asked, requests(asked.of[who], who))
    assert said
    assert {one: verdict for one, verdict in said.items() if verdict is not Verdict.ALLOWED} == {}


def test_an_operator_may_do_what_a_reader_may(asked: Asked) -> None:
    assert granted(asked.policies["reader"]) < granted(asked.policies["operator"])


def test_nothing_is_allowed_that_no_command_asks_for(asked: Asked) -> None:
    needed = {who: {(one.action, one.resource) for one in requests(calls, who)} for who, calls in asked.of.items()}
    assert granted(asked.policies["reader"]) == needed["reader"]
    through_its_url = {one for one in granted(asked.policies["operator"]) if one[0].startswith("lambda:")}
    assert granted(asked.policies["operator"]) - through_its_url == needed["reader"] | needed["operator"]


def test_a_reader_is_refused_every_write(asked: Asked, engine: Engine) -> None:
    tables = sorted({resource for _, resource in granted(asked.policies["operator"]) if ":table/" in resource})
    verbs = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "DeleteTable", "UpdateTable")
    writes = {
        Request(principal=principal("reader"), action=action, resource=resource, account=MOTO)
        for action, resource in granted(asked.policies["operator"]) - granted(asked.policies["reader"])
        if action.startswith("dynamodb:") and action != "dynamodb:GetItem"
    } | {
        Request(principal=principal("reader"), action=f"dynamodb:{verb}", resource=resource, account=MOTO)
        for verb in verbs
        for resource in tables
        if "/index/" not in resource
    }
    assert set(judged(engine, asked, sorted(writes)).values()) == {Verdict.NOT_ALLOWED}


def test_an_operator_writes_words_and_requests_and_never_what_a_role_wrote(asked: Asked, engine: Engine) -> None:
    may = {
        (action.partition(":")[2], resource.rpartition("-")[2])
        for action, resource in granted(asked.policies["operator"])
        if action.endswith(("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"))
    }
    assert may == {
        ("PutItem", "inventory"),
        ("UpdateItem", "inventory"),
        ("PutItem", "completions"),
        ("PutItem", "controls"),
    }
    journal = next(resource for _, resource in granted(asked.policies["operator"]) if resource.endswith("completions"))
    never = [Request(principal=principal("operator"), action=one, resource=journal, account=MOTO) for one in NEVER]
    assert set(judged(engine, asked, never).values()) == {Verdict.NOT_ALLOWED}


def test_the_receiver_of_drills_is_called_by_an_operator_through_its_url_only(asked: Asked, engine: Engine) -> None:
    stage = os.environ["SPLITSHIFT_STAGE"]
    receiver = f"arn:aws:lambda:us-east-1:{MOTO}:function:splitshift-{stage}-receiver"
    signed = (("lambda:FunctionUrlAuthType", "AWS_IAM"),)
    through = (("lambda:InvokedViaFunctionUrl", "true"),)
    past_it = (("lambda:InvokedViaFunctionUrl", "false"),)

    def ask(who: str, action: str, context: tuple[tuple[str, str], ...]) -> Request:
        return Request(
            principal=principal(who), action=f"lambda:{action}", resource=receiver, context=context, account=MOTO
        )

    expected = {
        ask("operator", "InvokeFunctionUrl", signed): Verdict.ALLOWED,
        ask("operator", "InvokeFunction", through): Verdict.ALLOWED,
        ask("operator", "InvokeFunction", past_it): Verdict.NOT_ALLOWED,
        ask("reader", "InvokeFunctionUrl", signed): Verdict.NOT_ALLOWED,
        ask("reader", "InvokeFunction", through): Verdict.NOT_ALLOWED,
    }
    assert judged(engine, asked, list(expected)) == expected


def test_a_policy_is_small_enough_to_be_one_of_iams(asked: Asked) -> None:
    """A managed policy has at most 6,144 characters without blanks; CloudFormation's names are longer than these."""
    longer = 60 * len(asked.policies["operator"]["Statement"])
    assert len(json.dumps(asked.policies["operator"], separators=(",", ":"))) + longer < 6144
