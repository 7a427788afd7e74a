"""The kinds of entry in a unit's journal.  Each is written once, under a key that repeats for the same fact."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from enum import StrEnum

from functions.kit.dataclass import dataclass

COMPLETION = "completion"


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"  # every effect is done
    FAILED = "failed"  # the last attempt failed, or a person gave it up
    SKIPPED = "skipped"  # did not run, by a policy
    EXPIRED = "expired"  # too late to be useful
    CANCELLED = "cancelled"  # called off by a person or a deployment


class Ending(StrEnum):
    """How one attempt ended."""

    ERROR = "error"  # the job raised
    LOST = "lost"  # its lease ran out: the worker died, froze or was cut off
    RETRY = "retry"  # the job asked for another attempt
    SUCCEEDED = "succeeded"
    GAVE_UP = "gave_up"  # the job said that trying again is of no use
    STOPPED = "stopped"  # a later unit of its job is due, and the job's overlap policy ends this one


class Verdict(StrEnum):
    """What a person says."""

    APPROVE = "approve"
    REJECT = "reject"
    HAPPENED = "happened"
    DID_NOT_HAPPEN = "did-not-happen"
    ABANDON = "abandon"
    CANCEL = "cancel"  # whatever it waits for: it is not to run, or not again


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One ended attempt; the number of an attempt is its place among them."""

    owner: str
    ending: Ending
    started: datetime | None
    finished: datetime
    worker: str | None = None
    error: str | None = None
    overran: bool = False
    retry_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class EffectState:
    """An effect as the journal shows it: `done`, or `unknown` (called, no answer recorded)."""

    label: str
    key: str
    state: str
    at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Review:
    """A person's word.  `hold` and `effect_owner` tie it to the one question that it answers, so it is used once."""

    number: int
    verdict: Verdict
    by: str
    at: datetime
    note: str | None = None
    hold: str | None = None
    effect: str | None = None
    effect_owner: str | None = None


@dataclass(frozen=True, kw_only=True)
class Hold:
    """An effect that nobody knows the outcome of, and that may not be called twice: a person must look."""

    owner: str
    effect: str
    key: str
    effect_owner: str
    called_at: datetime | None
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Duplicate:
    message_id: str
    owner: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Stale:
    """What a worker brought after its lease was gone: kept, and without consequence."""

    owner: str
    brought: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Completion:
    """The unit's end.  `attempts` holds them all, the last one included.

    Where there are too many for one item, the record keeps the last one and those lost before others, and effects that
    are unknown before those done; `effects_total` tells how many there were.
    """

    outcome: Outcome
    owner: str
    job: str
    partition: str | None
    slot: datetime
    run_at: datetime
    started: datetime | None
    finished: datetime
    reason: str | None = None
    attempts: tuple[Attempt, ...] = ()
    effects: tuple[EffectState, ...] = ()
    effects_total: int = 0
    reviews: tuple[Review, ...] = ()
    summary: str | None = None
    worker: str | None = None


Entry = Attempt | Duplicate | Stale | Hold | Review | Completion


@dataclass(frozen=True, kw_only=True)
class Journal:
    """All that is written of one unit."""

    unit_id: str
    attempts: tuple[Attempt, ...] = ()
    duplicates: tuple[Duplicate, ...] = ()
    stale: tuple[Stale, ...] = ()
    holds: tuple[Hold, ...] = ()
    reviews: tuple[Review, ...] = ()
    completion: Completion | None = None
    unreadable: tuple[str, ...] = field(default=())

    @property
    def open_holds(self) -> tuple[Hold, ...]:
        """Holds that no person has answered."""
        answered = {(review.hold, review.effect) for review in self.reviews}
        return tuple(hold for hold in self.holds if (hold.owner, hold.effect) not in answered)

    @property
    def words(self) -> dict[tuple[str, str], Verdict]:
        """What a person said of a call, by its key and its owner: it says nothing of another's, or another effect's."""
        asked = {(hold.owner, hold.effect): hold for hold in self.holds}
        said: dict[tuple[str, str], Verdict] = {}
        for review in self.reviews:
            hold = asked.get((review.hold or "", review.effect or ""))
            if hold is not None and review.verdict in {Verdict.HAPPENED, Verdict.DID_NOT_HAPPEN}:
                said[hold.key, hold.effect_owner] = review.verdict
        return said

    @property
    def begun(self) -> bool:
        """An attempt left something: it is brought to its end, though a deployment suppressed its slot meanwhile."""
        return bool(self.attempts or self.holds or self.unread("attempt", "hold"))

    def unread(self, *kinds: str) -> int:
        """How many entries of these kinds (`attempt`, `hold`, …) this version cannot read."""
        return sum(entry.partition("#")[0] in kinds for entry in self.unreadable)

    @property
    def called_off(self) -> Review | None:
        """The word by which a person cancelled the unit; what it waited for is no question any more."""
        return self._said(Verdict.CANCEL)

    @property
    def rejected(self) -> Review | None:
        """The refusal by which the next message ends the unit."""
        return self._said(Verdict.REJECT)

    @property
    def ends_next(self) -> bool:
        """Whether a person's word ends the unit at its next message, paused or not."""
        words = {Verdict.CANCEL, Verdict.REJECT, Verdict.ABANDON}
        return any(review.verdict in words for review in self.reviews)

    def _said(self, verdict: Verdict) -> Review | None:
        return next((review for review in self.reviews if review.verdict is verdict), None)

    @property
    def all_attempts(self) -> tuple[Attempt, ...]:
        """Those in the completion and those with an entry of their own, each once, by time."""
        known = {attempt.owner: attempt for attempt in self.attempts}
        for attempt in self.completion.attempts if self.completion else ():
            known.setdefault(attempt.owner, attempt)
        return tuple(sorted(known.values(), key=lambda attempt: (attempt.finished, attempt.owner)))


def entry_key(entry: Entry) -> str:
    """The sort key.  An attempt is named by its owner: its number is only a count, and two writers may count alike."""
    match entry:
        case Attempt(owner=owner):
            return f"attempt#{owner}"
        case Duplicate(message_id=message_id):
            return f"duplicate#{message_id}"
        case Stale(owner=owner):
            return f"stale#{owner}"
        case Hold(owner=owner):
            return f"hold#{owner}"
        case Review(number=number):
            return f"review#{number:04d}"
        case Completion():
            return COMPLETION
