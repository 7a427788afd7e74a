"""The operator's side of an installation: the same records as a world's, on the same clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from functions.cli.stage import Stage
from functions.kit.clock import Clock, SettableClock
from functions.local.places import LocalInstallation
from functions.records.stores import Stores
from functions.schedules.definitions import Definitions

ANN = "arn:aws:iam::111122223333:user/ann"


class Turning:
    """A clock whose sleeper lets the others have their turn: time moves, then each of them does what it has to do."""

    def __init__(self, clock: SettableClock, *turns: Callable[[], object]) -> None:
        self._clock = clock
        self.turns = turns

    def now(self) -> datetime:
        return self._clock.now()

    def sleep(self, seconds: float) -> None:
        self._clock.step(seconds)
        for turn in self.turns:
            turn()


def a_stage(
    stores: Stores,
    definitions: Definitions,
    clock: Clock,
    *,
    name: str = "local",
    receiver: str | None = None,
    single: bool = False,
) -> Stage:
    """A stage whose records are in memory; local where its name says so."""
    local = None
    if name == "local":
        local = LocalInstallation(endpoint="http://127.0.0.1:9", receiver=receiver or "", pid=1, single=single)
    settings = {"SPLITSHIFT_RECEIVER_URL": receiver} if receiver else {}
    stage = Stage(name=name, settings=settings, clock=clock, local=local)
    # What would be read from AWS, read already.
    vars(stage).update(stores=stores, definitions=definitions, identity=ANN, account="111122223333")
    return stage
