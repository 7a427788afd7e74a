"""What becomes of an effect request: the semantics of `Idempotency-Key`, and the faults a test may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qsl

from functions.kit.dataclass import dataclass
from functions.receiver.requests import EffectRequest, KeyTakenError, Outcome, Status, Store

if TYPE_CHECKING:
    from functions.kit.clock import Clock

MAX_DELAY_S = 120.0


@dataclass(frozen=True, kw_only=True)
class Faults:
    """What a request asks to go wrong with itself."""

    delay_s: float = 0.0
    fail_first: bool = False
    lost_answer: bool = False

    @classmethod
    def asked_for(cls, query: str, header: str) -> Self:
        """Raises ValueError for a delay that is no number of seconds from 0 to 120."""
        asked = dict(parse_qsl(header) + parse_qsl(query))
        delay_s = float(asked.get("delay", 0))
        if not 0 <= delay_s <= MAX_DELAY_S:
            raise ValueError(f"delay must be from 0 to {MAX_DELAY_S:.0f} seconds")
        return cls(
            delay_s=delay_s, fail_first=asked.get("fail_first") == "1", lost_answer=asked.get("lost_answer") == "1"
        )


@dataclass(frozen=True, kw_only=True)
class EffectService:
    """Decides what becomes of an effect request."""

    store: Store
    clock: Clock
    key_required: bool = False

    def receive(self, request: EffectRequest, faults: Faults) -> Outcome:
        outcome = self._decide(request, faults)
        if outcome.status is not Status.APPLIED:
            self.store.note(request, self.clock.now(), outcome.status)
        return outcome

    def _decide(self, request: EffectRequest, faults: Faults) -> Outcome:
        if request.key is None and self.key_required:
            return Outcome(status=Status.KEY_REQUIRED)
        with self.store.working_on(request) as in_the_way:
            if in_the_way is not None:
                return in_the_way
            if faults.fail_first and not self.store.seen(request):
                return Outcome(status=Status.FAILED)
            if faults.delay_s:
                self.clock.sleep(faults.delay_s)
            try:
                return Outcome(status=Status.APPLIED, answer=self.store.apply(request, self.clock.now()))
            except KeyTakenError:
                return Outcome(status=Status.IN_PROGRESS)


def key_of(header: str | None) -> str | None:
    """The key in an `Idempotency-Key` header.  The draft has a quoted string (RFC 8941); callers often leave that out.

    Raises ValueError for an empty one or a quote that is not closed.
    """
    if header is None:
        return None
    text = header.strip()
    if text.startswith('"'):
        if len(text) < 2 or not text.endswith('"'):  # noqa: PLR2004 - two quotes
            raise ValueError("Idempotency-Key: a quote is not closed")
        text = text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    if not text:
        raise ValueError("Idempotency-Key is empty")
    return text
