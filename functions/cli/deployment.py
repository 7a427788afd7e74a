"""The deployed stack on this machine, from the emulator's start to the subscription that tells the receiver."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import functions
from functions.kit import aws, parameters
from functions.kit.clock import SystemClock
from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.kit.instants import to_text
from functions.local import host
from functions.local.cdk import Cdk
from functions.local.ministack import NotInstalledError, environment
from functions.local.places import AlreadyRunningError, LocalInstallation, Places

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient

PROJECT = Path(functions.__file__).parents[1]
"""The checkout: where infra/ stands, and what is installed on first use."""

# One machine, one clock; nothing is kept, and no alarm is evaluated.
_STAGES = """# Written by `splitshift up`, new each time.
[stages.{name}]
removal   = "destroy"
alarms    = "none"
dashboard = false
drills    = true
skew_s    = 1
log_days  = 1
receiver  = "{receiver}"
"""

# A function's first call loads it, and on a busy machine that takes its time: 20 s for the answer.
COLD_START_S = 400

Report = Callable[[str], object]


class NotUpError(FinalError):
    """The stack cannot be brought up as asked."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Ports as in `splitshift up`: 0 = a free one."""

    stage: str
    port: int
    receiver_port: int


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """Names of what runs; `new` where the emulator was started for it."""

    running: LocalInstallation
    functions: tuple[str, ...]
    queues: tuple[str, ...]
    new: bool

    def document(self) -> dict[str, Any]:
        return {
            "stage": self.running.stage,
            "endpoint": self.running.endpoint,
            "receiver": self.running.receiver,
            "processes": {"host": self.running.pid, **self.running.pids},
            "functions": list(self.functions),
            "queues": list(self.queues),
            "new": self.new,
        }


def refuse_stage(stage: str, project: Path = PROJECT) -> None:
    """What is no name, and what is the name of a stage in an account: an emulator must not answer to it.

    Raises UsageError.
    """
    if not parameters.STAGE_NAME.fullmatch(stage):
        raise click.UsageError(f"{stage} {parameters.NO_STAGE_NAME}")
    try:
        named = tomllib.loads((project / "infra" / "stages.toml").read_text(encoding="utf-8")).get("stages", {})
    except (OSError, tomllib.TOMLDecodeError):
        named = {}
    if isinstance(named, dict) and stage in named:
        raise click.UsageError(f"infra/stages.toml has {stage} already, for an account: write another name")


def bring_up(
    places: Places, root: Path, wanted: Wanted, *, before_deploying: Callable[[], object], report: Report
) -> Deployed:
    """Start what is not running, and deploy.  Raises FinalError: AlreadyRunningError for another kind of installation,
    NotInstalledError, PortTakenError, NotDeployedError; what it started is ended then.
    """
    found = places.running()
    if found is not None:
        _refuse_another(found, wanted)
    report("CDK and ministack: installed on first use")
    cdk, python = Cdk.installed(PROJECT), _ministack()
    running = found or host.start(
        places, python, stage=wanted.stage, port=wanted.port, receiver_port=wanted.receiver_port
    )
    try:
        before_deploying()
        _deploy(cdk, places, root, running, report, new=found is None)
        _begin(running.stage)
        report("scheduler and monitor have begun")
    except BaseException:
        if found is None:
            host.stop(places, running)
        raise
    return _look(running, new=found is None)


def take_down(places: Places) -> LocalInstallation | None:
    """End it and remove what it made; None where none runs.  Raises NotUpError for another kind of installation."""
    running = places.running()
    if running is not None and not running.deployed:
        raise NotUpError(
            f"what runs here is `splitshift dev` (process {running.pid}), not `splitshift up`: Ctrl-C ends it"
        )
    if running is not None:
        host.stop(places, running)
    shutil.rmtree(places.deployment, ignore_errors=True)
    for left in (places.definitions, places.receiver_database):
        left.unlink(missing_ok=True)
    return running


def _refuse_another(running: LocalInstallation, wanted: Wanted) -> None:
    if not running.deployed:
        raise AlreadyRunningError(
            f"`splitshift dev` or `demo` runs here (process {running.pid}): stop it first, and run this again"
        )
    if running.stage != wanted.stage:
        raise AlreadyRunningError(
            f"{running.stage} is up here: write `splitshift down` first, or --stage {running.stage}"
        )
    for port, at in ((wanted.port, running.endpoint), (wanted.receiver_port, running.receiver)):
        if port and not at.endswith(f":{port}"):
            raise AlreadyRunningError(
                f"it is up already, at {at}: write `splitshift down` first, or leave out the port"
            )


def _ministack() -> Path:
    try:
        return environment(PROJECT / ".cache")
    except NotInstalledError as error:
        raise NotInstalledError(f"ministack could not be installed from PyPI: check the network ({error})") from error


def _deploy(cdk: Cdk, places: Places, root: Path, running: LocalInstallation, report: Report, *, new: bool) -> None:
    os.environ.update(running.environment())
    os.environ.pop("AWS_PROFILE", None)
    told, log = running.environment(), places.log_of("cdk")
    stages = places.deployment / "stages.toml"
    places.deployment.mkdir(exist_ok=True)
    stages.write_text(_STAGES.format(name=running.stage, receiver=running.receiver), encoding="utf-8")
    synthesised = places.deployment / "cdk.out"
    with ThreadPoolExecutor(1) as beside:
        report(f"emulator at {running.endpoint}; cdk synth{' beside cdk bootstrap' if new else ''}")
        synthesis = beside.submit(cdk.synthesise, stages, root, told, places.log_of("synth"), synthesised)
        if new:
            cdk.bootstrap(told, log, places.deployment)
        synthesis.result()
    report("cdk deploy --all")
    cdk.deploy(synthesised, told, log)
    report("receiver subscribed")
    _subscribe(aws.client("sns"), running)


def _subscribe(sns: SNSClient, running: LocalInstallation) -> None:
    """The receiver, to what people would be told.  Subscribed twice is subscribed once."""
    topic = parameters.read(aws.client("ssm"), running.stage)["SPLITSHIFT_EVENTS_TOPIC"]
    sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=f"{running.receiver}/sns")


def _begin(stage: str) -> None:
    """The first tick and the first pass, now and not within a minute: what happens next is already watched.

    Raises NotUpError for a function that does not work.
    """
    events = {"scheduler": {"scheduled_time": to_text(SystemClock().now())}, "monitor": {}}
    with ThreadPoolExecutor(len(events)) as at_once:
        list(at_once.map(partial(_call, stage), events, events.values()))


def _call(stage: str, role: str, event: Mapping[str, str]) -> None:
    client = aws.client("lambda", shortest_lease_s=COLD_START_S)
    answer = client.invoke(FunctionName=f"splitshift-{stage}-{role}", Payload=json.dumps(event))
    if "FunctionError" in answer:
        said = answer["Payload"].read().decode(errors="replace")[:500]
        raise NotUpError(f"the {role} does not work: {said}")


def _look(running: LocalInstallation, *, new: bool) -> Deployed:
    prefix = f"splitshift-{running.stage}-"
    pages = aws.client("lambda").get_paginator("list_functions").paginate()
    names = [function["FunctionName"] for page in pages for function in page["Functions"]]
    queues = aws.client("sqs").list_queues(QueueNamePrefix=prefix).get("QueueUrls", [])
    return Deployed(
        running=running,
        functions=tuple(sorted(name for name in names if name.startswith(prefix))),
        queues=tuple(sorted(url.rpartition("/")[2] for url in queues)),
        new=new,
    )
