"""Everything on one machine, from the first process to the last: emulator, receiver, and the roles around them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from typing import Any, Self

from functions.kit import aws
from functions.kit.clock import SystemClock
from functions.local.emulator import Emulator
from functions.local.installation import install
from functions.local.places import LocalInstallation, Places
from functions.local.receiver import Receiver, ReceiverLog
from functions.local.supervisor import Role, Supervisor
from functions.records.dynamo import DynamoDatabase
from functions.records.heartbeats import Heartbeats
from functions.records.stores import table_names
from functions.schedules.compile import write_definitions

WORKERS = 2
ROLE_NAMES = ("scheduler", "relay", "worker", "monitor")


class Session:
    """A local installation that lives as long as this object.

        with Session(places, lambda: document) as session:
            session.supervisor.pids, session.receiver.effects(unit_id)

    `compiled` gives what the job files compile to; it is called when all but the roles is up.  `single` runs the roles
    as threads of one process.
    """

    def __init__(
        self,
        places: Places,
        compiled: Callable[[], Mapping[str, Any]],
        *,
        single: bool = False,
        port: int = 0,
        receiver_port: int = 0,
        stage: str = "local",
    ) -> None:
        self.places = places
        self._compiled = compiled
        self._single = single
        self._ports = (port, receiver_port)
        self._stage = stage
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.places.make()
        try:
            self._stack.enter_context(self.places.held())
            self._begin()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def _begin(self) -> None:
        self.places.receiver_database.unlink(missing_ok=True)  # a new emulator knows none of the old units
        emulator, receiver = self._servers()
        self.installation = LocalInstallation(
            endpoint=emulator.endpoint,
            receiver=receiver.url,
            pid=os.getpid(),
            stage=self._stage,
            single=self._single,
        )
        self.receiver = ReceiverLog(url=receiver.url)
        os.environ.update(self.installation.environment())
        began = SystemClock().now().replace(microsecond=0)
        document = self._compiled()
        write_definitions(document, self.places.definitions)
        pools: dict[str, Any] = document.get("pools", {})
        self.settings = install(self._stage, pools, receiver.url)
        self._owe_from(began, document["version"])
        self.supervisor = Supervisor(self._roles(), self.environment(), self.places.folder / "logs")
        self._stack.enter_context(self.supervisor)
        self._stack.callback(self.places.forget)
        pids = self.supervisor.pids | {"emulator": emulator.pid, "receiver": receiver.pid}
        self.installation = replace(self.installation, pids=pids)
        self.places.save(self.installation)

    def _owe_from(self, began: datetime, version: str) -> None:
        """The installation owes its slots from its beginning, however long its roles take to start."""
        clock = SystemClock()
        database = DynamoDatabase(aws.client("dynamodb"), table_names(self.settings), clock.sleep)
        every_s = int(self.settings["SPLITSHIFT_TICK_EVERY_SECONDS"])
        Heartbeats(database).first_tick(cursor=began, version=version, now=clock.now(), every_s=every_s)

    def _servers(self) -> tuple[Emulator, Receiver]:
        """Both at once: each takes its time to load, and neither needs the other."""
        emulator_port, receiver_port = self._ports
        database, log_of = self.places.receiver_database, self.places.log_of
        with ThreadPoolExecutor(1) as beside:
            starting = beside.submit(Receiver.start, database, port=receiver_port, log=log_of("receiver"))
            try:
                emulator = self._stack.enter_context(Emulator.start(emulator_port, log=log_of("emulator")))
            finally:
                receiver = self._stack.enter_context(starting.result())
        return emulator, receiver

    def environment(self) -> dict[str, str]:
        """What a role process is told."""
        return (
            self.installation.environment()
            | self.settings
            | {
                "SPLITSHIFT_DEFINITIONS": str(self.places.definitions),
                "POWERTOOLS_LOG_LEVEL": os.environ.get("POWERTOOLS_LOG_LEVEL", "INFO"),
                "PYTHONUNBUFFERED": "1",
                "NO_PROXY": "127.0.0.1",
            }
        )

    def _roles(self) -> list[Role]:
        if self._single:
            return [Role(name="single", kind="single", environment={"SPLITSHIFT_SINGLE": "1"})]
        return roles_of(ROLE_NAMES, self.settings, workers=WORKERS)

    def kill(self, role: str) -> int:
        """SIGKILL one role's process, as the machine's out-of-memory killer would.  Returns the pid it had."""
        pid = self.supervisor.pids[role]
        os.kill(pid, signal.SIGKILL)
        return pid


def roles_of(names: tuple[str, ...], settings: Mapping[str, str], *, workers: int) -> list[Role]:
    """One process per role, and so many per pool for the workers, which drills may kill where the stage lets them."""
    roles: list[Role] = []
    queues: dict[str, str] = json.loads(settings["SPLITSHIFT_QUEUES"])
    faults = "" if settings.get("SPLITSHIFT_DRILLS") == "false" else "group"
    for name in names:
        if name != "worker":
            roles.append(Role(name=name, kind=name))
            continue
        for pool, url in queues.items():
            for number in range(1, workers + 1):
                label = f"worker-{number}" if pool == "default" else f"worker-{pool}-{number}"
                environment = {
                    "SPLITSHIFT_POOL": pool,
                    "SPLITSHIFT_QUEUE_URL": url,
                    "SPLITSHIFT_WORKER_NAME": label,
                    "SPLITSHIFT_DRILL_FAULTS": faults,
                }
                roles.append(Role(name=label, kind="worker", environment=environment))
    return roles
