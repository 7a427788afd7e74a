"""`Run`: what a job's function is handed.

def main(run: Run) -> dict | None:
    due = run.step("due", orders.due, run.window.start.isoformat())
    for n, order in enumerate(due):
        run.effect("invoice", billing.send, item=order["id"], repeatable=True, order=order)
        run.progress(n + 1, of=len(due))
    return {"invoices": len(due)}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aws_lambda_powertools import Logger

from functions.sdk.calls import Calls, Guard


@dataclass(frozen=True, kw_only=True)
class Window:
    """The time that this unit answers for: after `start`, up to and including `end`, which is its slot."""

    start: datetime
    end: datetime


@dataclass(frozen=True, kw_only=True)
class Run:
    """One attempt of one unit.

    `attempt` counts from 1.  `deadline` is when this attempt ends at the latest.  `payload` is what was frozen when
    the unit was written down.  `log` writes JSON with the unit's fields: pass more as `extra`, never payloads.
    """

    unit_id: str
    job: str
    partition: str | None
    slot: datetime
    window: Window
    payload: Mapping[str, Any]
    attempt: int
    deadline: datetime
    log: Logger
    calls: Calls
    guard: Guard

    def effect(
        self,
        name: str,
        call: Callable[..., Any],
        /,
        *,
        repeatable: bool,
        item: Any = None,
        timeout: float = 10,
        find: Callable[[str], Any] | None = None,
        **arguments: Any,
    ) -> Any:
        """Call `call(idempotency_key=…, **arguments)` once for this unit, name and item, whatever fails.

        `repeatable`: does the receiver honour the key?  If not, an unknown outcome goes to `find(key)` (a result =
        done, None = certainly not applied, raising = cannot tell), else to a person; never called again by itself.
        `item` names an element by a text, a number or JSON: one key each, and the same in every attempt.
        `timeout` is the seconds that the call can last, its own retries included; less than the job's lease.

        Returns the receiver's answer as its JSON round trip, also when an earlier attempt made the call.  Raises what
        the call raised: then the outcome is unknown and the attempt fails, unless the call raised NotApplied.
        """
        return self.calls.effect(name, call, arguments, repeatable=repeatable, item=item, timeout=timeout, find=find)

    def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """A pure step's result, kept, as its JSON round trip: a retried unit resumes after it.  No effects inside."""
        return self.calls.step(name, lambda: function(*args, **kwargs))

    def idempotency_key(self, name: str, item: Any = None) -> str:
        """The key that `effect` would send: at most 64 characters of `[A-Za-z0-9_-]`, the same for every attempt."""
        return self.calls.key(name, item)

    def progress(self, done: int, *, of: int | None = None) -> None:
        """Say how far the run is; also where a run whose lease is gone ends."""
        self.guard.check()
        self.log.debug("progress", extra={"action": "progress", "done": done, "of": of})
