"""One effect or step, from the check that there is time to the record that it is done."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any, Protocol, cast
from uuid import UUID

from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig
from aws_lambda_powertools.utilities.idempotency.base import IdempotencyHandler
from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyPersistenceLayerError

from functions.kit.clock import Clock
from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError, SplitshiftError
from functions.records.bounds import bounded
from functions.records.effects import Effects
from functions.records.entries import EffectState
from functions.sdk.checks import check, refuse_unfinished
from functions.sdk.errors import (
    DuplicateEffectError,
    EffectPayloadError,
    EffectUnknownError,
    NotApplied,
    StepResultError,
    Stop,
)
from functions.sdk.ledger import Call, Claim, LedgerLayer, payload_hash
from functions.sdk.results import NotKeptError, boxed, round_trip, unboxed

DONE = "done"
UNKNOWN = "unknown"
AFTER_EFFECT = "after-effect"
STEP_LABEL = "step "
_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}", re.ASCII)
_ITEM_SHOWN = 40
_ITEM_ADVICE = "pass a text or number that names it"


class Guard(Protocol):
    """The lease as a call sees it."""

    def ensure(self, seconds: float) -> None:
        """Return only if the lease outlasts that many seconds from now; else extend it first.

        Raises LeaseGone where the lease is lost, OutOfTimeError where the attempt may not last that long.
        """
        ...

    def check(self) -> None:
        """Raises LeaseGone where the lease is known to be lost, Superseded where a later unit waits.  No call."""
        ...


class Context(Protocol):
    """What Powertools asks of a Lambda context."""

    def get_remaining_time_in_millis(self) -> int: ...


def idempotency_key(unit_id: str, name: str, item: Any = None) -> str:
    """43 characters of `[A-Za-z0-9_-]`: the same for every attempt of the unit, another for every other call.

    Raises FinalError for an item whose text would not be the same in the next process.
    """
    try:
        text = json.dumps([unit_id, name, item], sort_keys=True, default=_item_text)
    except (TypeError, ValueError, RecursionError) as error:  # a cycle, keys that cannot be sorted
        raise FinalError(f"this item makes no stable key: {_ITEM_ADVICE}") from error
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def _item_text(item: Any) -> str:
    if isinstance(item, (date, Decimal, UUID)):
        return str(item)
    raise FinalError(f"an item that is a {type(item).__name__} makes no stable key: {_ITEM_ADVICE}")


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What calls need of the worker.  `point` is told where the attempt stands: drills and tests die there."""

    effects: Effects
    claim: Claim
    guard: Guard
    clock: Clock
    context: Context
    point: Callable[[str], None]


class Calls:
    """The effects and steps of one attempt, and what is known of each."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._seen: set[str] = set()
        self._states: dict[str, EffectState] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._calling = 0
        self._not_applied: list[NotApplied] = []  # by effects inside the call of another
        self.stopped: Stop | None = None

    @property
    def token(self) -> int:
        """The attempt's fencing token: higher than that of every attempt before it."""
        return self._tools.claim.token

    @property
    def states(self) -> tuple[EffectState, ...]:
        """Effects (not steps) in the order of their calls."""
        return tuple(self._states.values())

    @property
    def unknown(self) -> tuple[EffectState, ...]:
        return tuple(state for state in self.states if state.state == UNKNOWN)

    def effect(
        self,
        name: str,
        call: Callable[..., Any],
        arguments: Mapping[str, Any],
        *,
        repeatable: bool,
        item: Any,
        timeout: float,
        find: Callable[[str], Any] | None,
        honoured_for: float | None = None,
    ) -> Any:
        if not timeout > 0:
            raise FinalError(f"timeout={timeout:g} is no time for a call: write the seconds that it can last")
        key = self._new_key(name, item)
        label = name if item is None else f"{name}[{bounded(str(item)[:_ITEM_SHOWN])}]"
        entry = Call(
            label=label,
            key=key,
            payload=payload_hash(arguments),
            repeatable=repeatable,
            honoured_for=honoured_for,
            find=find,
            in_doubt=key in self._states,
            ready=lambda: self.go_on(timeout),
        )
        try:
            check(call, entry, arguments)
            entry.ready()
            return self._effect(f"effect.{name}", entry, call, arguments)
        except BaseException as error:
            if isinstance(error, NotApplied) or key not in self._states:
                self._seen.discard(key)  # nothing was done: it may be called again in this run
            raise

    def _effect(self, prefix: str, entry: Call, call: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        key, layer = entry.key, self._layer(entry)
        state = EffectState(label=entry.label, key=key, state=UNKNOWN, at=self._tools.clock.now())

        def called() -> Any:
            with self._lock:
                if self._closed:
                    raise NotApplied("the attempt is over: nothing was called")
                self._states[key] = state
                self._calling += 1
            try:
                result = call(idempotency_key=key, **arguments)
            except NotApplied as error:
                if any(error is inner for inner in self._not_applied):
                    text = f"an effect inside of {entry.label} was not applied, which says nothing of {entry.label}"
                    raise EffectUnknownError(text) from error
                raise
            finally:
                with self._lock:
                    self._calling -= 1
            refuse_unfinished(result, entry.label)
            self._tools.point(AFTER_EFFECT)
            return result

        try:
            result = self._once(prefix, layer, called)
        except NotApplied as error:
            if not layer.in_doubt:
                self._states.pop(key, None)
            if self._calling:
                self._not_applied.append(error)
            raise
        except Exception as error:
            # Without a call, too: its record may stand there, put by this attempt unheard, or by one before.
            if not (isinstance(error, EffectPayloadError) and error.done):
                self._states.setdefault(key, state)
            raise
        self._states[key] = replace(state, state=DONE)
        return result

    def close(self) -> None:
        """The job's function has returned, or raised: from here on nothing is called, also by what it left behind."""
        with self._lock:
            self._closed = True

    def step(self, name: str, function: Callable[[], Any]) -> Any:
        """A pure step's result, kept: a retried unit goes on after it."""
        key = self._new_key(f"step.{name}", None, step=name)
        self.go_on()

        def taken() -> Any:
            try:
                return round_trip(function())
            except NotKeptError as error:
                raise StepResultError(f"the result of step {name} is {error}: keep less, or where it is") from error

        entry = Call(label=f"{STEP_LABEL}{name}", key=key, payload=None, repeatable=True)
        return self._once(f"step.{name}", self._layer(entry), taken)

    def go_on(self, seconds: float | None = None) -> None:
        """Return only if the attempt may go on, with that much time.  Raises what the guard raises."""
        guard = self._tools.guard
        try:
            if seconds is None:
                guard.check()
            else:
                guard.ensure(seconds)
        except Stop as stop:
            self.stopped = stop  # remembered, in case the job swallows it with a bare `except:`
            raise

    def key(self, name: str, item: Any = None) -> str:
        return idempotency_key(self._tools.claim.unit_id, name, item)

    def _new_key(self, name: str, item: Any, *, step: str | None = None) -> str:
        if _NAME.fullmatch(shown := name if step is None else step) is None:
            raise FinalError(f"{shown[:80]!r} is no name for an effect or step: write {_NAME.pattern}")
        key = self.key(name, item)
        with self._lock:  # two threads of a job may come at once
            if key in self._seen:
                if step is not None:
                    raise DuplicateEffectError(f"{shown!r} was a step of this run before: give each a name of its own")
                raise DuplicateEffectError(
                    f"{shown!r} with that item was called before in this run: give each an item of its own"
                )
            self._seen.add(key)
        return key

    def _layer(self, entry: Call) -> LedgerLayer:
        return LedgerLayer(self._tools.effects, self._tools.claim, entry, self._tools.clock)

    def _once(self, prefix: str, layer: LedgerLayer, function: Callable[[], Any]) -> Any:
        tools = self._tools
        context = cast("Any", tools.context)  # Lambda's, or the stand-in of the loop mode
        config = IdempotencyConfig(event_key_jmespath="key", hash_function="sha256", lambda_context=context)
        reached = False

        def called() -> dict[str, Any]:
            nonlocal reached
            reached = True
            return boxed(function())

        handler = IdempotencyHandler(
            function=called,
            function_payload={"key": layer.call.key},
            config=config,
            persistence_store=layer,
            key_prefix=prefix,
            function_args=(),
            function_kwargs={},
        )
        try:
            return unboxed(handler.handle())
        except Stop as stop:
            self.stopped = stop  # remembered, in case the job swallows it with a bare `except:`
            raise
        except IdempotencyPersistenceLayerError as error:
            cause = error.__cause__
            if reached:
                # Called, and the ledger could not say so: that is not a failure of the call.
                label = layer.call.label
                raise EffectUnknownError(f"{label} was called and its record could not be written") from cause
            if isinstance(cause, SplitshiftError):
                raise cause from None
            raise
