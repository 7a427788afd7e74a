"""The loop mode: each role's handler called by a timer of ours instead of by Lambda.

The handlers are those that are deployed; a loop only imitates what calls them.  A role that fails goes on with its next
turn, as Lambda would call it again.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.kit.clock import Clock, SystemClock
from functions.kit.errors import SplitshiftError
from functions.kit.instants import to_text
from functions.kit.logging import get_logger
from functions.local.context import StandInContext
from functions.local.loop_settings import LoopSettings
from functions.records.tables import COMPLETIONS, INVENTORY

_EXPECTED = (BotoCoreError, ClientError, SplitshiftError)
_log = get_logger("loop")


def every(seconds: float, turn: Callable[[], Any], stop: threading.Event, role: str) -> None:
    """Call `turn` now, and then at that interval, until told to stop; a turn that takes longer is followed at once."""
    while not stop.is_set():
        began = time.monotonic()
        try:
            turn()
        except _EXPECTED as error:
            _log.error("turn failed", extra={"action": "turn_failed", "role": role, "error": type(error).__name__})
        except Exception:  # noqa: BLE001 - logged with its trace
            # As Lambda would: a turn that fails for a reason nobody thought of is not the role's last.
            _log.exception("turn failed", extra={"action": "turn_failed", "role": role})
        stop.wait(max(0.0, seconds - (time.monotonic() - began)))


def scheduler(settings: LoopSettings, stop: threading.Event, clock: Clock | None = None) -> None:
    """A tick of each shard at the start and then by its own timer; `now` is the clock in whole seconds."""
    from functions.scheduler.handler import handler  # noqa: PLC0415 - a role loads only its own code

    now = clock or SystemClock()

    def tick(shard: int) -> None:
        event = {"scheduled_time": to_text(now.now()), "shard": shard}
        handler(event, StandInContext(seconds=settings.tick_time_s))

    def run(shard: int) -> None:
        every(settings.tick_every_s, partial(tick, shard), stop, f"scheduler#{shard}")

    if settings.shards == 1:
        run(0)
        return
    with ThreadPoolExecutor(settings.shards) as threads:
        list(threads.map(run, range(settings.shards)))


def monitor(settings: LoopSettings, stop: threading.Event) -> None:
    """A pass by its timer, and one more where the journal's stream shows what had been there before."""
    from functions.local.stream import MONITORS, StreamReader  # noqa: PLC0415 - a role loads only its own code
    from functions.monitor.handler import handler  # noqa: PLC0415

    context = StandInContext(seconds=settings.tick_time_s)
    reader = StreamReader.from_env(COMPLETIONS, MONITORS)

    def watch() -> None:
        handler({"source": "aws.events", "detail-type": "Scheduled Event"}, context)
        for batch in reader.batches():
            if was_there := [record for record in batch.records if "OldImage" in record["dynamodb"]]:
                handler({"Records": was_there}, context)
            reader.done(batch, [])

    every(settings.monitor_every_s, watch, stop, "monitor")


def relay(settings: LoopSettings, stop: threading.Event) -> None:
    """The stream as it comes, and the sweep each minute."""
    from functions.local.stream import RELAYS, StreamReader  # noqa: PLC0415 - a role loads only its own code
    from functions.relay.handler import handler  # noqa: PLC0415

    reader = StreamReader.from_env(INVENTORY, RELAYS)
    swept_at = time.monotonic()

    def turn() -> None:
        nonlocal swept_at
        for batch in reader.batches():
            answer = handler({"Records": batch.records}, StandInContext(seconds=settings.tick_time_s))
            reader.done(batch, [failure["itemIdentifier"] for failure in answer["batchItemFailures"]])
        if reader.position_lost or time.monotonic() - swept_at >= settings.sweep_every_s:
            handler({"sweep": True}, StandInContext(seconds=settings.tick_time_s))
            swept_at = time.monotonic()
            reader.position_lost = False

    every(settings.relay_every_s, turn, stop, "relay")


def worker(settings: LoopSettings, stop: threading.Event) -> None:
    from functions.local.units import WorkerLoop  # noqa: PLC0415 - a role loads only its own code

    WorkerLoop.from_env(settings).run(stop)


def single(settings: LoopSettings, stop: threading.Event) -> None:
    """All roles as threads of one process: breakpoints work, max_duration is reported and not enforced."""
    threads = [
        threading.Thread(target=role, args=(settings, stop), name=name, daemon=True)
        for name, role in (("scheduler", scheduler), ("relay", relay), ("monitor", monitor))
    ]
    for pool, url in json.loads(settings.queues).items():
        of_pool = replace(settings, pool=pool, queue_url=url, single=True)
        threads.append(threading.Thread(target=worker, args=(of_pool, stop), name=f"worker-{pool}", daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


ROLES: dict[str, Callable[[LoopSettings, threading.Event], None]] = {
    "scheduler": scheduler,
    "relay": relay,
    "worker": worker,
    "monitor": monitor,
    "single": single,
}
