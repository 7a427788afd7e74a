"""The definitions that a stage's scheduler works by: not always those of the job files here."""

from __future__ import annotations

from functions.cli.stage import Stage
from functions.kit.errors import FinalError
from functions.records.shards import read_schedulers
from functions.scheduler.courses import unpacked
from functions.schedules.definitions import Definitions


class NotKeptError(FinalError):
    """What is deployed is not known."""


def worked_by(stage: Stage) -> Definitions:
    """As far as the scheduler keeps them: slots and rows.  Raises NotKeptError."""
    version = version_of(stage)
    if version is None:
        raise NotKeptError(f"the scheduler of {stage.name} has not ticked yet: there is nothing to compare with")
    kept = stage.stores.kept.read(version)
    try:
        if kept is not None:
            return Definitions(version=version, jobs=unpacked(kept), pools={})
    except ValueError:
        pass
    raise NotKeptError(f"the scheduler of {stage.name} keeps no definitions that can be read: name them with --against")


def version_of(stage: Stage) -> str | None:
    """None before the first tick."""
    return read_schedulers(stage.stores.heartbeats).version
