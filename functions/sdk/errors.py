"""What a job raises to say how its attempt ended, and what it is told."""

from __future__ import annotations

from datetime import timedelta

from functions.kit.errors import FinalError, SplitshiftError

_LONGEST_S = 366 * 86_400


class Retry(SplitshiftError):  # noqa: N818 - reads as a statement: raise Retry(after=…)
    """Try this unit again; `after` (seconds or timedelta, up to a year) instead of the usual back-off."""

    def __init__(
        self, message: str = "the job asked for another attempt", *, after: float | timedelta | None = None
    ) -> None:
        super().__init__(message)
        seconds = after.total_seconds() if isinstance(after, timedelta) else after
        self.after_s = None if seconds is None else float(min(_LONGEST_S, max(0.0, seconds)))


class GiveUp(SplitshiftError):  # noqa: N818 - reads as a statement: raise GiveUp("card expired")
    """Trying again is of no use: the unit ends as failed, with this reason."""


class NotApplied(SplitshiftError):  # noqa: N818 - reads as a statement
    """Raised inside an effect's call: the receiver certainly did not apply it.  The effect may be called again."""


class EffectUnknownError(SplitshiftError):
    """An effect was called and no answer is recorded: it is unknown whether it happened."""


class DuplicateEffectError(FinalError):
    """One run named the same effect and item twice; the second call would be a silent replay.  Use `item`."""


class EffectPayloadError(FinalError):
    """An effect came again under the same key with other arguments; nothing was called.

    `done`: with the arguments of before it is known to have happened.
    """

    def __init__(self, message: str, *, done: bool) -> None:
        super().__init__(message)
        self.done = done


class StepResultError(FinalError):
    """A step's result cannot be kept, so that a later attempt could not go on from it."""


class OutOfTimeError(SplitshiftError):
    """The attempt has less time left than the call may take; nothing was called."""


class Stop(BaseException):
    """Ends an attempt from within, whatever the job catches: not an error of the job's, so no `Exception`."""


class Superseded(Stop):
    """A later unit of the job waits for the lock, and the job's overlap policy is that this one ends for it."""


class LeaseGone(Stop):
    """The lease is another's by now: nothing that this attempt does counts any more."""
