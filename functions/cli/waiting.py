"""Waiting for units that were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import click

from functions.cli.display import plain, state_name
from functions.cli.finding import lock_of
from functions.cli.requests import Requested
from functions.cli.stage import Stage
from functions.records.states import FINISHED, State, UnitState
from functions.records.units import read_unit
from functions.schedules.model import Job

STOPS_WAITING = FINISHED | {State.ON_HOLD, State.NEEDS_REVIEW}
"""Ended, or nothing goes on without a person."""

_LOOK_EVERY_S = 0.5


def wait_for(stage: Stage, job: Job, requested: Sequence[Requested]) -> dict[str, UnitState]:
    """Each unit's state once it has ended or needs a person, at the latest when it should have been complete.

    Ctrl-C ends the waiting, and nothing else.
    """
    seen: dict[str, UnitState] = {}
    try:
        _wait(stage, job, requested, seen)
    except KeyboardInterrupt:
        if len(seen) < len(requested):
            raise
        click.echo("no longer waited for: what was asked for goes on", err=True)
    return seen


def _wait(stage: Stage, job: Job, requested: Sequence[Requested], seen: dict[str, UnitState]) -> None:
    until = stage.clock.now() + timedelta(seconds=job.complete_within_s)
    while True:
        for one in requested:
            unit_id = one.row.unit_id
            records = read_unit(stage.stores, unit_id, lock_of(stage))
            state = records.state(stage.clock.now(), stage.stores.skew)
            if state != seen.get(unit_id):
                click.echo(
                    f"{unit_id}  {state_name(state.state)}{f': {plain(state.reason)}' if state.reason else ''}",
                    err=True,
                )
            seen[unit_id] = state
        if all(state.state in STOPS_WAITING for state in seen.values()):
            return
        if stage.clock.now() >= until:
            click.echo("not complete within its time: `splitshift show` tells more", err=True)
            return
        stage.clock.sleep(_LOOK_EVERY_S)
