"""Drills as the operator holds them: real workers and monitor on one stepped clock, counted by a receiver process.

Nobody sleeps: whenever a drill waits, the others have their turn.
"""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from functions.cli import drills
from functions.cli.drills import DrillRefusedError, DrillResult
from functions.cli.requests import RefusedRequestError
from functions.jobs.examples import charge, triage
from functions.jobs.examples.receiver import address
from functions.local.receiver import Receiver, ReceiverSilentError
from functions.monitor.judge import Monitor
from functions.monitor.messages import for_programs
from functions.monitor.settings import MonitorSettings
from functions.records.inventory import from_item
from functions.records.stores import Stores
from functions.records.tables import CONTROLS, INVENTORY
from functions.schedules.model import Job
from functions.sdk import Run
from tests.support.http import request
from tests.support.stages import Turning, a_stage
from tests.support.worlds import SKEW, Crash, World, a_charge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from functions.cli.stage import Stage
    from functions.records.incidents import Incident

CHARGE = a_charge(drill=True, payload={"customer": "c-1", "cents": 5}, start_grace_s=300, complete_within_s=4200)


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with Receiver.start(tmp_path / "receiver.sqlite") as running:
        yield running


class Installation:
    """Relay, workers, monitor and topic of one stage, each with its turn whenever the operator waits."""

    def __init__(self, job: Job, function: Callable[[Run], Any], receiver: Receiver, **stage: Any) -> None:
        self.receiver = receiver
        self.world = World(job)
        self.world.handlers.functions[job.name] = function
        self.said: list[str] = []
        self.killed = 0
        self._sent: Counter[str] = Counter()
        self._watched_at: datetime | None = None
        self.clock = Turning(self.world.clock, self.relay, self.work, self.watch)
        self.stage: Stage = a_stage(
            self.world.stores, self.world.definitions, self.clock, receiver=receiver.url, **stage
        )

    def relay(self) -> None:
        """A message for each trigger."""
        for item in self.world.database.scan(INVENTORY.name):
            row = from_item(item)
            for _ in range(len(row.triggers) - self._sent[row.unit_id]):
                self.world.send(row.unit_id, row.lock)
                self._sent[row.unit_id] += 1

    def work(self) -> None:
        try:
            self.world.deliver(self.world.worker(faults="process"))
        except Crash:
            self.killed += 1

    def watch(self) -> None:
        """A pass each five seconds."""
        now = self.clock.now()
        if self._watched_at is not None and now - self._watched_at < timedelta(seconds=5):
            return
        self._watched_at = now
        stores = Stores(self.world.database, skew=SKEW, claimant="monitor")
        settings = MonitorSettings(skew=SKEW, every_s=5)
        Monitor(stores, self.world.definitions, self, self.world.clock, settings).run_pass()

    def publish(self, incident: Incident, state: str) -> str:
        body = for_programs(incident, state, "local").encode()
        request = urllib.request.Request(f"{self.receiver.url}/sns", data=body)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return str(json.load(answer)["ok"])

    def hold(self, drill: Callable[[Stage, str, Callable[[str], object]], DrillResult]) -> DrillResult:
        return drill(self.stage, next(iter(self.world.jobs)), self.said.append)


@pytest.fixture
def installed(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Installation]:
    """SIGKILL to ourselves ends the delivery as a worker's death would, and not the tests."""
    real = os.kill

    def kill(pid: int, number: int) -> None:
        if (pid, number) == (os.getpid(), signal.SIGKILL):
            raise Crash
        real(pid, number)

    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setenv("SPLITSHIFT_RECEIVER_URL", receiver.url)
    return lambda job=CHARGE, function=charge.main, **stage: Installation(job, function, receiver, **stage)


def test_a_duplicate_drill_asks_twice_and_the_receiver_counts_one(installed: Callable[..., Installation]) -> None:
    installation = installed()
    result = installation.hold(drills.duplicate)

    assert result.problem is None
    assert result.document() == {
        "name": "duplicate",
        "unit_id": "charge@2026-11-29T06:00:00Z~drill",
        "effects_at_receiver": 1,
        "duplicates_recorded": 1,
        "attempts": 1,
        "alerts": [],
        "detected_after_s": None,
        "ok": True,
    }
    assert result.worker == "worker-1"
    assert installation.said == [
        "asked twice for one unit",
        "the unit is complete",
        "the second message found it complete, and ran nothing",
    ]


def test_a_silence_drill_kills_a_worker_and_sees_takeover_alert_and_resolution(
    installed: Callable[..., Installation],
) -> None:
    installation = installed()
    result = installation.hold(drills.silence)

    assert installation.killed == 1
    assert result.problem is None
    assert (result.effects_at_receiver, result.attempts, result.alerts) == (1, 2, ("worker_lost",))
    assert result.detected_after_s is not None
    assert result.detected_after_s >= 0
    assert installation.said[0] == "the receiver applied the effect, and the worker is killed"
    assert installation.said[-1] == "and that it is over"
    assert len(installation.said) == 5


def test_a_job_that_fails_by_itself_can_be_drilled_too(installed: Callable[..., Installation]) -> None:
    """Three attempts, one of which was lost: only that one is the drill's."""
    job = a_charge(name="triage", drill=True, backoff_s=2, backoff_max_s=2)
    result = installed(job, triage.main).hold(drills.silence)

    assert result.problem is None
    assert (result.effects_at_receiver, result.attempts) == (2, 3)


def test_a_drill_of_a_job_with_partitions_is_held_with_the_first_of_them(
    installed: Callable[..., Installation],
) -> None:
    result = installed(replace(CHARGE, partitions=("eu", "us"))).hold(drills.duplicate)
    assert result.unit_id == "charge/eu@2026-11-29T06:00:00Z~drill"
    assert result.ok


def test_a_second_drill_within_the_second_is_another_unit(installed: Callable[..., Installation]) -> None:
    installation = installed()
    installation.clock.turns = ()
    first = installation.world.due(suffix="~drill", sends=0)
    installation.clock.turns = (installation.relay, installation.work)
    result = installation.hold(drills.duplicate)
    assert result.unit_id == "charge@2026-11-29T06:00:01Z~drill" != first


def test_a_receiver_that_is_not_given_the_key_betrays_the_second_call(installed: Callable[..., Installation]) -> None:
    """Counted at the receiver: our own records would say that all is well."""

    def keyless(run: Run) -> None:
        def call(idempotency_key: str) -> Any:
            headers = {"Idempotency-Key": f"{idempotency_key}-{run.attempt}", "X-Unit-Id": run.unit_id}
            return request(address("charge"), body=b"{}", headers=headers).content

        run.effect("charge", call, repeatable=True)

    installation = installed(function=keyless)
    result = installation.hold(drills.silence)

    assert not result.ok
    assert result.effects_at_receiver == 2
    assert result.problem == "the receiver applied 2 effects, the unit has 1"


def test_a_silent_monitor_fails_the_silence_drill(installed: Callable[..., Installation]) -> None:
    installation = installed()
    installation.clock.turns = (installation.relay, installation.work)
    result = installation.hold(drills.silence)

    assert not result.ok
    assert result.problem == "nobody was told of the lost worker within 255 s"
    assert result.effects_at_receiver == 1


def test_without_workers_a_drill_ends_in_time_and_says_what_did_not_come(
    installed: Callable[..., Installation],
) -> None:
    installation = installed()
    installation.clock.turns = ()
    before = installation.clock.now()
    result = installation.hold(drills.duplicate)

    assert not result.ok
    assert result.problem == "the unit was not completed within 45 s"
    assert (installation.clock.now() - before).total_seconds() == pytest.approx(45, abs=0.3)


def test_a_job_without_an_effect_at_the_receiver_proves_nothing(installed: Callable[..., Installation]) -> None:
    installation = installed(function=lambda run: run.effect("note", lambda idempotency_key: None, repeatable=True))
    result = installation.hold(drills.duplicate)

    assert not result.ok
    assert result.problem == "no effect of the unit reached the receiver, so nothing is proved"


@pytest.mark.parametrize(
    ("changes", "stage", "says"),
    [
        ({"drill": False}, {}, "drill = true"),
        ({}, {"single": True}, "--single"),
    ],
)
def test_what_must_not_be_drilled_is_refused_and_leaves_no_unit(
    installed: Callable[..., Installation], changes: dict[str, Any], stage: dict[str, Any], says: str
) -> None:
    installation = installed(replace(CHARGE, **changes), **stage)
    with pytest.raises(DrillRefusedError, match=says):
        installation.hold(drills.silence)
    assert list(installation.world.database.scan(INVENTORY.name)) == []


@pytest.mark.parametrize(("drills_allowed", "held"), [("false", False), ("true", True)])
def test_workers_are_killed_only_where_the_stage_allows_drills(
    installed: Callable[..., Installation], drills_allowed: str, *, held: bool
) -> None:
    installation = installed()
    installation.stage.settings["SPLITSHIFT_DRILLS"] = drills_allowed
    if held:
        assert installation.hold(drills.silence).ok
    else:
        with pytest.raises(DrillRefusedError, match=r"drills = true in infra/stages\.toml"):
            installation.hold(drills.silence)
    assert installation.killed == int(held)


def test_a_stage_in_an_account_that_does_not_say_that_drills_may_kill_refuses_them(
    installed: Callable[..., Installation],
) -> None:
    installation = installed(name="prod")
    with pytest.raises(DrillRefusedError, match="stage prod does not let drills kill its workers"):
        installation.hold(drills.silence)
    assert list(installation.world.database.scan(INVENTORY.name)) == []


def test_a_stage_without_a_receiver_and_a_job_that_is_not_there_are_refused(
    installed: Callable[..., Installation],
) -> None:
    installation = installed()
    blind = a_stage(installation.world.stores, installation.world.definitions, installation.clock, name="prod")
    with pytest.raises(DrillRefusedError, match="no receiver"):
        drills.duplicate(blind, "charge", print)
    with pytest.raises(RefusedRequestError, match="did you mean charge"):
        drills.duplicate(installation.stage, "chrage", print)


@pytest.mark.parametrize(
    ("place", "says"),
    [("http://127.0.0.1:9", "cannot be read"), ("{receiver}/elsewhere", "HTTP 404")],
    ids=["nobody-listens", "no-receiver"],
)
def test_a_drill_that_could_not_be_counted_is_not_begun(
    installed: Callable[..., Installation], place: str, says: str
) -> None:
    installation = installed()
    world, url = installation.world, place.format(receiver=installation.receiver.url)
    blind = a_stage(world.stores, world.definitions, installation.clock, receiver=url)
    for drill in (drills.silence, drills.duplicate):
        with pytest.raises(ReceiverSilentError, match=says):
            drill(blind, "charge", print)
    assert list(world.database.scan(INVENTORY.name)) == []
    assert list(world.database.scan(CONTROLS.name)) == []
