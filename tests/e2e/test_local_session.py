"""An installation on this machine, with processes that die: what becomes of the units is counted at the receiver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from functions.cli.stage import find_stage
from functions.kit.instants import to_text
from functions.local import processes
from functions.local.places import AlreadyRunningError, Places
from functions.local.processes import PortTakenError
from functions.local.session import Session
from functions.records.entries import Attempt, Ending, Journal, Outcome
from functions.records.stores import Stores
from functions.schedules.definitions import Definitions
from tests.support.local import a_user_project, children_of, compiled, in_folder, now, processes_of, request, wait_for

JOBS = """
    [defaults]
    schedule     = "0 0 29 2 *"
    owner        = "tests"
    severity     = "page"
    lease        = "15s"
    max_duration = "1m"
    overlap      = "allow"

    [jobs.charge]
    run = "examples.charge:main"

    [jobs.minutely]
    run      = "examples.charge:main"
    schedule = "rate(1 minute)"
    starts   = {starts:%Y-%m-%dT%H:%M:%SZ}

    [jobs.waits]
    run = "slow:waits"

    [jobs.hangs]
    run          = "slow:hangs"
    max_duration = "2s"
"""
SLOW = """
    import os, pathlib, time
    from functions.jobs.examples import charge

    def waits(run):
        '''Says who works it once its charge is made, and returns when it may.'''
        charge.main(run)
        say_who(run)
        while run.attempt == 1 and not os.path.exists(run.payload["may_end"]):
            time.sleep(0.02)

    def hangs(run):
        say_who(run)
        if run.attempt == 1:
            time.sleep(3600)

    def say_who(run):
        unfinished = pathlib.Path(run.payload["who"] + ".new")
        unfinished.write_text(str(os.getpid()))
        if run.attempt == 1:
            unfinished.replace(run.payload["who"])
"""


@dataclass(kw_only=True)
class Local:
    """What runs in one folder."""

    session: Session
    folder: Path
    stores: Stores
    definitions: Definitions
    units: list[str] = field(default_factory=list[str])

    @property
    def pids(self) -> dict[str, int]:
        return self.session.supervisor.pids

    def charge(self, count: int = 1) -> list[str]:
        asked = [request(self.stores, self.definitions.jobs["charge"], len(self.units)) for _ in range(count)]
        self.units += asked
        return asked

    def slow(self, job: str, name: str) -> tuple[str, int]:
        """A unit that does not end by itself, and the process that works it."""
        return slow(self.stores, self.definitions, job, self.folder / name)

    def journal(self, unit_id: str) -> Journal:
        return self.stores.completions.read(unit_id)

    def attempts(self, unit_id: str) -> tuple[Attempt, ...]:
        """Of a unit, once it has ended."""
        wait_for(lambda: self.journal(unit_id).completion)
        return self.journal(unit_id).all_attempts

    def done(self, units: list[str]) -> bool:
        completed = self.stores.completions.completed(units)
        return len(completed) == len(units) and all(
            completion.outcome is Outcome.SUCCEEDED for completion in completed.values()
        )

    @contextmanager
    def without(self, role: str) -> Generator[None]:
        """One role is killed, and not started again meanwhile."""
        supervisor = self.session.supervisor
        with supervisor._lock:
            running = supervisor._running[role]
            os.kill(running.process.pid, signal.SIGKILL)
            running.process.wait()
            yield
        wait_for(lambda: self.pids[role] != running.process.pid)


def slow(stores: Stores, definitions: Definitions, job: str, who: Path) -> tuple[str, int]:
    unit_id = request(stores, definitions.jobs[job], who=str(who), may_end=str(who.with_suffix(".end")))
    wait_for(who.exists)
    return unit_id, int(who.read_text())


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    folder = tmp_path_factory.mktemp("project")
    a_user_project(folder, JOBS.format(starts=now()), slow=SLOW)
    with in_folder(folder), Session(Places(folder), lambda: compiled(folder)) as session:
        stage = find_stage(None, root=folder)
        yield Local(session=session, folder=folder, stores=stage.stores, definitions=stage.definitions)


@dataclass(frozen=True, kw_only=True)
class Accidents:
    """Two units whose first attempt died, each in its own way."""

    hung: str
    hung_pid: int
    struck: str
    struck_group: int


@pytest.fixture(scope="module")
def accidents(local: Local) -> Accidents:
    """They happen before the tests that ask for them, which then wait together for what becomes of them."""
    hung, hung_pid = local.slow("hangs", "hung")
    struck, struck_pid = local.slow("waits", "struck")
    # The one that hangs is ended for its time, and not by what follows.
    wait_for(lambda: not Path(f"/proc/{hung_pid}").exists())
    group = os.getpgid(struck_pid)
    os.killpg(group, signal.SIGKILL)
    wait_for(lambda: group not in local.pids.values())
    return Accidents(hung=hung, hung_pid=hung_pid, struck=struck, struck_group=group)


# --- roles die ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_any_role_may_be_killed_and_no_unit_is_lost_or_doubled(local: Local, accidents: Accidents) -> None:
    began = len(local.units)
    for role in ("scheduler", "relay", "worker-1", "monitor"):
        others = {name: pid for name, pid in local.pids.items() if name != role}
        ticked, watched = beats(local)
        local.charge(2)
        with local.without(role):
            meanwhile = local.charge(3)
            # The others go on: units are worked, ticks and passes follow each other, while this one is down.
            if role == "relay":
                wait_for(lambda before=(ticked, watched): all(a > b for a, b in zip(beats(local), before, strict=True)))
            else:
                wait_for(lambda units=meanwhile: local.done(units))
        assert others.items() <= local.pids.items()
    units = local.units[began:]
    wait_for(lambda: local.done(units))
    assert len(units) == 20
    assert {unit_id: local.session.receiver.effects(unit_id) for unit_id in units} == dict.fromkeys(units, 1)
    assert [local.session.receiver.alerts(unit_id) for unit_id in units] == [[]] * len(units)


def beats(local: Local) -> tuple[float, float]:
    found = local.stores.heartbeats.read_all()
    return found["scheduler#0"].beat_at.timestamp(), found["monitor"].beat_at.timestamp()


@pytest.mark.slow
def test_the_schedule_goes_on_after_the_scheduler_was_killed(local: Local) -> None:
    """The cursor moves on from where the dead one left it, and each slot since the first tick has its row."""
    cursor = wait_for(lambda: cursor_of(local))
    with local.without("scheduler"):
        pass
    wait_for(lambda: cursor_of(local) > cursor)
    job = local.definitions.jobs["minutely"]
    assert job.starts is not None
    slots = [item["slot"] for item in local.stores.database.scan("inventory") if item["job"] == "minutely"]
    assert len(slots) == len(set(slots)) >= 5  # the look-ahead is five minutes


@pytest.mark.slow
def test_a_unit_ends_by_itself_when_the_worker_that_started_it_is_killed(local: Local) -> None:
    unit_id, pid = local.slow("waits", "alone")
    worker = os.getpgid(pid)
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: worker not in local.pids.values())
    (local.folder / "alone.end").touch()
    assert [attempt.ending for attempt in local.attempts(unit_id)] == [Ending.SUCCEEDED]
    assert local.session.receiver.effects(unit_id) == 1


def cursor_of(local: Local) -> str:
    state = local.stores.heartbeats.scheduler()
    return to_text(state.cursor) if state else ""


@pytest.mark.slow
def test_killing_a_workers_whole_group_leaves_its_unit_to_another(local: Local, accidents: Accidents) -> None:
    attempts = local.attempts(accidents.struck)
    assert [attempt.ending for attempt in attempts] == [Ending.LOST, Ending.SUCCEEDED]
    assert local.session.receiver.effects(accidents.struck) == 1
    assert wait_for(lambda: local.session.receiver.alerts(accidents.struck), 150) == ["worker_lost"]
    wait_for(lambda: "resolved" in states(local, accidents.struck))


@pytest.mark.slow
def test_a_unit_that_hangs_is_ended_at_max_duration_and_recorded_as_such(local: Local, accidents: Accidents) -> None:
    lost, succeeded = local.attempts(accidents.hung)
    assert (lost.ending, lost.overran) == (Ending.LOST, True)
    assert succeeded.ending is Ending.SUCCEEDED
    assert wait_for(lambda: local.session.receiver.alerts(accidents.hung), 150) == ["worker_lost"]
    logs = (local.session.places.folder / "logs").glob("worker-*.log")
    assert any("over its max_duration" in log.read_text() for log in logs)


def states(local: Local, unit_id: str) -> set[str | None]:
    return {entry.state for entry in local.session.receiver.entries(unit_id) if entry.kind == "alert"}


# --- one folder, one machine ----------------------------------------------------------------------------------------


def test_a_second_installation_in_a_folder_is_refused(local: Local) -> None:
    with pytest.raises(AlreadyRunningError) as refused, Session(local.session.places, dict):
        pass
    assert str(refused.value) == (
        f"a local installation runs here already (process {os.getpid()}): use it, or stop it first"
    )
    assert local.session.places.running() == local.session.installation  # and the first one is none the worse


@pytest.mark.parametrize("which", ["port", "receiver_port"])
def test_a_taken_port_is_one_clear_line_and_leaves_nothing_behind(tmp_path: Path, which: str) -> None:
    with processes.listen(0) as listener, in_folder(tmp_path):
        port = listener.getsockname()[1]
        session = Session(Places(tmp_path), dict, **{which: port})
        with pytest.raises(PortTakenError) as refused, session:
            pass
    assert str(refused.value) == f"port {port} is taken: stop what listens there, or pass --port 0 for a free one"
    assert Places(tmp_path).running() is None
    assert [thread.name for thread in threading.enumerate() if "ThreadPool" in thread.name] == []


# --- the command ----------------------------------------------------------------------------------------------------


@contextmanager
def dev(folder: Path, *options: str) -> Generator[subprocess.Popen[str]]:
    command = [str(Path(sys.executable).with_name("splitshift")), "dev", "--root", str(folder), *options]
    with (folder / "dev.out").open("w") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def groups_of(places: Places) -> dict[str, int]:
    """Each process that it started leads a group, in which its own children are."""
    found = wait_for(places.running)
    assert found is not None
    return dict(found.pids)


@pytest.mark.slow
def test_ctrl_c_ends_every_process_of_dev_also_the_unit_of_a_worker_that_was_killed(tmp_path: Path) -> None:
    a_user_project(tmp_path, JOBS.format(starts=now()), slow=SLOW)
    places = Places(tmp_path)
    with in_folder(tmp_path), dev(tmp_path) as process:
        groups = groups_of(places)
        assert len(groups) == 7
        stage = find_stage(None, root=tmp_path)
        _, pid = slow(stage.stores, stage.definitions, "waits", tmp_path / "orphan")
        worker = os.getpgid(pid)
        assert worker in {groups["worker-1"], groups["worker-2"]}
        children = children_of(process.pid)
        os.kill(worker, signal.SIGKILL)  # the parent alone
        again = wait_for(lambda: children_of(process.pid) - children)
        assert pid in processes_of({worker})
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    assert processes_of({*groups.values(), *again}) == set()
    assert places.running() is None


@pytest.mark.slow
def test_a_slot_that_comes_while_the_roles_still_start_is_run(tmp_path: Path) -> None:
    """An installation owes its slots from its beginning, and not from whenever its scheduler first ticks."""
    starts = now() + timedelta(days=1)

    def just_ahead() -> dict[str, Any]:
        nonlocal starts
        starts = now() + timedelta(seconds=1)
        a_user_project(tmp_path, JOBS.format(starts=starts), slow=SLOW)
        return compiled(tmp_path)

    with in_folder(tmp_path), Session(Places(tmp_path), just_ahead) as session:
        unit_id = f"minutely@{to_text(starts)}"
        wait_for(lambda: session.receiver.effects(unit_id) == 1)


@pytest.mark.slow
def test_killing_dev_itself_leaves_no_process_and_no_installation_behind(tmp_path: Path) -> None:
    a_user_project(tmp_path, JOBS.format(starts=now()), slow=SLOW)
    places = Places(tmp_path)
    with in_folder(tmp_path), dev(tmp_path) as process:
        groups = set(groups_of(places).values())
        process.kill()
        process.wait()
        assert places.installation.exists(), "it could not tidy up"
        assert places.running() is None
        wait_for(lambda: not processes_of(groups))


@pytest.mark.slow
def test_dev_single_completes_a_unit_and_ends_when_told(tmp_path: Path) -> None:
    a_user_project(tmp_path, JOBS.format(starts=now()), slow=SLOW)
    places = Places(tmp_path)
    with in_folder(tmp_path), dev(tmp_path, "--single") as process:
        groups = set(groups_of(places).values())
        assert len(groups) == 3
        stage = find_stage(None, root=tmp_path)
        unit_id = request(stage.stores, stage.definitions.jobs["charge"])
        wait_for(lambda: stage.stores.completions.read(unit_id).completion)
        process.terminate()
        assert process.wait(timeout=60) == 0
    assert processes_of(groups) == set()
    assert (tmp_path / "dev.out").read_text().endswith("ended\n")
