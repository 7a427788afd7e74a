"""Which installation a command talks to: the local one, or a stage in an AWS account."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import click
from botocore.exceptions import BotoCoreError, ClientError

from functions.cli.common import default_root
from functions.kit import aws, parameters
from functions.kit.clock import Clock, SystemClock
from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.local.places import STAGE as LOCAL
from functions.local.places import LocalInstallation, Places
from functions.records.dynamo import DynamoDatabase
from functions.records.stores import Stores, table_names
from functions.schedules.definitions import Definitions, for_stage, load
from functions.schedules.rules import shown

F = TypeVar("F", bound="Callable[..., Any]")

# boto3 does not read AWS_REGION, though the AWS command line does.
_HINTS = {
    "NoRegionError": "write --region, or set AWS_DEFAULT_REGION",
    "NoCredentialsError": "write --profile, or log in to the account",
}


class NoInstallationError(FinalError):
    """There is no installation to talk to."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One installation.  `settings` are its environment variables, from SSM."""

    name: str
    settings: dict[str, str]
    clock: Clock
    local: LocalInstallation | None = None
    definitions_file: Path | None = None

    @cached_property
    def stores(self) -> Stores:
        skew = timedelta(seconds=float(self.settings.get("SPLITSHIFT_SKEW_SECONDS", "5")))
        database = DynamoDatabase(aws.client("dynamodb"), table_names(self.settings), self.clock.sleep)
        return Stores(database, skew=skew, claimant=f"cli-{os.getpid()}")

    @cached_property
    def definitions(self) -> Definitions:
        """What is deployed to the local stage; for an account the compiled job files here."""
        if self.definitions_file is None or not self.definitions_file.exists():
            raise NoInstallationError("there are no compiled definitions here: run `splitshift check`, then deploy")
        return for_stage(load(self.definitions_file), self.name)

    @cached_property
    def identity(self) -> str:
        """Who asks, from STS: written into what they change."""
        return str(aws.client("sts").get_caller_identity()["Arn"])

    @cached_property
    def account(self) -> str:
        return str(aws.client("sts").get_caller_identity()["Account"])

    @property
    def receiver_url(self) -> str | None:
        return self.local.receiver if self.local else self.settings.get("SPLITSHIFT_RECEIVER_URL")


def stage_options(function: F) -> F:
    """`stage`, `region`, `profile`: pass them to `find_stage`."""
    for option in (
        click.option("--profile", metavar="NAME", help="AWS profile; else the usual AWS environment."),
        click.option("--region", metavar="REGION", help="AWS region; else the usual AWS environment."),
        click.option("--stage", metavar="STAGE", help="The installation.  Default: local, while one runs here."),
    ):
        function = option(function)
    return function


def find_stage(
    stage: str | None, *, region: str | None = None, profile: str | None = None, root: Path | None = None
) -> Stage:
    """Set this process's AWS environment and read the stage's settings.  Raises NoInstallationError, UsageError."""
    places = Places(root or default_root())
    running = places.running()
    if stage is None and running is None:
        raise click.UsageError("no local installation runs here: start `splitshift dev` or `up`, or name a --stage")
    if stage in {None, LOCAL} or (running is not None and stage == running.stage):
        if running is None:
            raise NoInstallationError("no local installation runs here: start it with `splitshift dev` or `up`")
        os.environ.update(running.environment())
        os.environ.pop("AWS_PROFILE", None)
        return _read(running.stage, running, places)
    assert stage is not None  # noqa: S101 - decided above
    if not parameters.STAGE_NAME.fullmatch(stage):
        raise click.UsageError(f"{shown(stage)} {parameters.NO_STAGE_NAME}")
    if region:
        os.environ["AWS_REGION"] = os.environ["AWS_DEFAULT_REGION"] = region
    if profile:
        os.environ["AWS_PROFILE"] = profile
    return _read(stage, None, places)


def _read(stage: str, local: LocalInstallation | None, places: Places) -> Stage:
    try:
        settings = parameters.read(aws.client("ssm"), stage)
    except (BotoCoreError, ClientError) as error:
        raise NoInstallationError(f"stage {stage} cannot be reached: {_short(error)}") from error
    if not settings:
        raise NoInstallationError(f"there is no installation {stage} here: check --stage, --region and --profile")
    return Stage(name=stage, settings=settings, clock=SystemClock(), local=local, definitions_file=places.definitions)


def _short(error: Exception) -> str:
    """The kind of error and what to do, not its text, which may name endpoints and keys."""
    code = aws.refusal(error).get("Code", "")
    name = code or type(error).__name__
    return f"{name}: {_HINTS[name]}" if name in _HINTS else name
