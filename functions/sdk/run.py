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
from datetime import datetime
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from functions.kit.dataclass import dataclass
from functions.sdk.calls import Calls, Guard

if TYPE_CHECKING:
    from functions.sdk.aws_calls import AwsEffects


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
        done, None = certainly not applied, raising or an empty result = cannot tell), else to a person; never called
        again by itself.
        `item` names an element by a text, a number or JSON: one key each, and the same in every attempt.
        `timeout` is the seconds that the call can last, its own retries included; less than the job's lease.

        Returns the receiver's answer as its JSON round trip, also when an earlier attempt made the call.  Raises what
        the call raised: then the outcome is unknown and the attempt fails, unless the call raised NotApplied.  Where it
        repeated a call of unknown outcome, that one stays unknown all the same.
        """
        return self.calls.effect(name, call, arguments, repeatable=repeatable, item=item, timeout=timeout, find=find)

    def http(
        self,
        name: str,
        method: str,
        url: str,
        /,
        *,
        repeatable: bool,
        item: Any = None,
        timeout: float = 10,
        find: Callable[[str], Any] | None = None,
        honoured_for: float | None = None,
        json: Any = None,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """One POST, PUT, PATCH or DELETE as an effect, with the key as `Idempotency-Key` and `X-Fencing-Token`.

        `json` or `body` is what is sent; `headers` may differ from one attempt to the next (a token), the rest may not.
        `timeout` bounds the whole request; nothing is sent twice and no redirect followed.  `honoured_for`: the seconds
        for which the receiver remembers a key, where it forgets; after that an unknown outcome is as if not repeatable.

        Returns `{"status": 201, "body": …}`.  2xx is applied, 4xx certainly not (RequestRefusedError, a NotApplied); a
        409, a 5xx, a redirect and no answer are unknown.
        """
        from functions.sdk import http_calls  # noqa: PLC0415 - jobs that use none do not wait for it at a cold start

        sent = http_calls.request(
            method, url, headers=headers or {}, document=json, body=body, token=self.fencing_token, timeout=timeout
        )

        def call(*, idempotency_key: str, **_: Any) -> Any:
            return http_calls.send(sent, idempotency_key)

        return self.calls.effect(
            name,
            call,
            sent.content,
            repeatable=repeatable,
            item=item,
            timeout=timeout,
            find=find,
            honoured_for=honoured_for,
        )

    def aws(
        self,
        client: Any,
        *,
        item: Any = None,
        name: str | None = None,
        key_in: str | None = None,
        honoured_for: float | None = None,
        timeout: float | None = None,
    ) -> AwsEffects:
        """A boto3 client whose calls are effects: `run.aws(ec2, item="web").run_instances(…)`.

        The parameter by which AWS knows a call again is filled in, as botocore's model names it; a call that has none
        is refused.  `key_in` names a parameter that AWS keeps unique instead, such as the `name` of a standard
        workflow's execution.  `name` is the effect's; by default the operation's.  `timeout`: by default what the
        client's own time-outs and retries come to.  `honoured_for`: the seconds for which AWS knows the key again; by
        default 8 h, 10 min for DynamoDB, and 4 min for FIFO queues and topics.

        Returns the answer as JSON, instants as text; None where an earlier try made what `key_in` names.
        """
        from functions.sdk.aws_calls import AwsEffects  # noqa: PLC0415 - as above

        return AwsEffects(
            calls=self.calls,
            client=client,
            item=item,
            name=name,
            key_in=key_in,
            honoured_for=honoured_for,
            timeout=timeout,
        )

    @property
    def fencing_token(self) -> int:
        """Higher than that of every attempt before: a receiver that keeps the highest can turn late ones away."""
        return self.calls.token

    def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """A pure step's result, kept, as its JSON round trip: a retried unit resumes after it.  No effects inside."""
        return self.calls.step(name, lambda: function(*args, **kwargs))

    def idempotency_key(self, name: str, item: Any = None) -> str:
        """The key that `effect` would send: at most 64 characters of `[A-Za-z0-9_-]`, the same for every attempt."""
        return self.calls.key(name, item)

    def progress(self, done: int, *, of: int | None = None) -> None:
        """Say how far the run is; also where a run ends whose lease is gone, or for which a later unit waits."""
        self.calls.go_on()
        self.log.debug("progress", extra={"action": "progress", "done": done, "of": of})
