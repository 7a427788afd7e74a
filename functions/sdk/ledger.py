"""The effect ledger: Powertools idempotency over our effect records.

The stock DynamoDB layer lets time take records over, updates and deletes without a condition, and deletes on any
exception: a late first holder can undo what a second one recorded.  This one takes over only by a higher fencing token
from the owner it saw, and forgets only what certainly was not applied.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import field, fields, is_dataclass, replace
from datetime import date, time
from decimal import Decimal
from enum import Enum
from typing import Any, cast
from uuid import UUID

from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyItemAlreadyExistsError
from aws_lambda_powertools.utilities.idempotency.persistence.base import BasePersistenceLayer
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord

from functions.kit.clock import Clock
from functions.kit.dataclass import dataclass
from functions.records.effects import DONE, IN_PROGRESS, EffectRecord, Effects
from functions.records.entries import Verdict
from functions.sdk.errors import EffectPayloadError, LeaseGone, NotApplied, Stop
from functions.sdk.results import boxed, unfinished, unstarted


class HoldNeeded(Stop):
    """Nobody knows whether the effect happened, and it may not be called twice: a person must look."""

    def __init__(self, record: EffectRecord) -> None:
        super().__init__(f"effect {record.label} is unknown and not repeatable")
        self.record = record


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Who calls, and what a person said about earlier calls: verdicts by the call's key and owner, each for that call
    alone.
    """

    unit_id: str
    owner: str
    token: int
    ttl: int
    words: Mapping[tuple[str, str], Verdict] = field(default_factory=dict[tuple[str, str], Verdict])


@dataclass(frozen=True, kw_only=True)
class Call:
    """One effect or step.  `find` asks the receiver what became of an earlier call; it needs the key only.

    `honoured_for`: the seconds, from the first call on, for which the receiver knows a key again; None: for good.
    `in_doubt`: an earlier call may have been applied.  `ready` raises where there is no time for the call (any more).
    """

    label: str
    key: str
    payload: str | None
    repeatable: bool
    honoured_for: float | None = None
    find: Callable[[str], Any] | None = None
    in_doubt: bool = False
    ready: Callable[[], None] = lambda: None


class LedgerLayer(BasePersistenceLayer):
    """One instance per call: Powertools writes the function's name into a layer each time it is configured."""

    def __init__(self, effects: Effects, claim: Claim, call: Call, clock: Clock) -> None:
        super().__init__()
        self._effects = effects
        self._claim = claim
        self.call = call
        self._clock = clock
        self.in_doubt = call.in_doubt

    def _put_record(self, data_record: DataRecord) -> None:
        wanted = self._record(data_record.idempotency_key)
        found = self._effects.begin(wanted)
        # Twice at most: what stands there can change once, from in progress to done, or to a higher token's.
        for _ in range(2):
            if found is None:
                return
            self._judge(found)
            if self.in_doubt:
                wanted = replace(wanted, called_at=found.called_at)  # the time counts from the first that may be known
            found = self._effects.take_over(found, wanted)
        if found is not None:
            self._judge(found)
            raise LeaseGone("another attempt is at this effect")

    def _judge(self, found: EffectRecord) -> None:
        """Return where it may be taken over; raise where it is done, another's, or a person's to decide."""
        if self.call.payload is not None and found.payload not in {None, self.call.payload}:
            raise EffectPayloadError(
                f"effect {self.call.label} was begun with other arguments under the same key: "
                "give it another name or item, or pass what the first attempt passed",
                done=found.status == DONE,
            )
        if found.status == DONE:
            raise _already(found)
        if found.token >= self._claim.token:
            raise LeaseGone(f"effect {self.call.label} is in the hands of a later attempt")
        word = self._claim.words.get((found.key, found.owner))
        if word is Verdict.DID_NOT_HAPPEN:
            return
        if word is Verdict.HAPPENED:
            self._found_done(found, None)
        if self.call.repeatable and self._is_known_again(found):
            self.in_doubt = True
            return
        if self.call.find is None:
            raise HoldNeeded(found)
        self._ask(found, self.call.find)

    def _is_known_again(self, found: EffectRecord) -> bool:
        honoured_for = self.call.honoured_for
        return honoured_for is None or (self._clock.now() - found.called_at).total_seconds() < honoured_for

    def _ask(self, found: EffectRecord, find: Callable[[str], Any]) -> None:
        try:
            answer = find(self.call.key)
            told = answer is None or (bool(answer) and not unstarted(answer) and not unfinished(answer))
        except Exception as error:  # the author's code: whatever it raises means that it cannot tell
            raise HoldNeeded(found) from error
        if not told:  # False, or an empty list: whoever wrote that meant nothing found, or that it is all there is
            raise HoldNeeded(found)
        if answer is not None:
            self._found_done(found, answer)
        self.call.ready()  # asking took time

    def _found_done(self, found: EffectRecord, answer: Any) -> None:
        result = json.dumps(boxed(answer))
        self._effects.finish(found.unit_id, found.effect, result=result, now=self._clock.now())
        raise _already(found, result)

    def _update_record(self, data_record: DataRecord) -> None:
        self._effects.finish(
            self._claim.unit_id, data_record.idempotency_key, result=data_record.response_data, now=self._clock.now()
        )

    def delete_record(self, data: Any, exception: Exception) -> None:
        """Any exception out of the call leaves the record in progress, which means unknown: all but NotApplied.

        That one too where the call was a repetition: it says nothing of the call before, which may have been applied.
        """
        if isinstance(exception, NotApplied) and not self.in_doubt:
            super().delete_record(data=data, exception=exception)

    def _delete_record(self, data_record: DataRecord) -> None:
        self._effects.forget(self._claim.unit_id, data_record.idempotency_key, owner=self._claim.owner)

    def _get_record(self, idempotency_key: str) -> DataRecord:
        record = self._effects.read(self._claim.unit_id, idempotency_key)
        if record is None:
            raise LeaseGone(f"the record of effect {self.call.label} is gone")
        return _data_record(record, record.result)

    def _record(self, effect: str) -> EffectRecord:
        return EffectRecord(
            unit_id=self._claim.unit_id,
            effect=effect,
            label=self.call.label,
            key=self.call.key,
            owner=self._claim.owner,
            token=self._claim.token,
            status=IN_PROGRESS,
            called_at=self._clock.now(),
            payload=self.call.payload,
            ttl=self._claim.ttl,
        )


def payload_hash(arguments: Mapping[str, Any]) -> str | None:
    """A fingerprint of an effect's arguments, those left out that have no stable text (an open file, a client).

    None where they cannot be compared at all: a cycle, a key that is no text.
    """
    try:
        text = json.dumps(arguments, sort_keys=True, default=_comparable)
    except Exception:  # noqa: BLE001 - an object of the job's own may raise anything
        return None
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _comparable(value: Any) -> Any:
    match value:
        case date() | time() | Decimal() | UUID():
            return str(value)
        case bytes() | bytearray():
            return value.hex()
        case set() | frozenset():
            members = cast("set[Any]", value)
            return sorted(json.dumps(member, sort_keys=True, default=_comparable) for member in members)
        case Enum():
            return value.value
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {part.name: getattr(value, part.name) for part in fields(value)}
        case _:
            return None


def _already(record: EffectRecord, result: str | None = None) -> IdempotencyItemAlreadyExistsError:
    return IdempotencyItemAlreadyExistsError(old_data_record=_data_record(record, result or record.result))


def _data_record(record: EffectRecord, result: str | None) -> DataRecord:
    return DataRecord(
        idempotency_key=record.effect, status=record.status if result is None else DONE, response_data=result or ""
    )
