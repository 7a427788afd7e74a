"""Keeps a lease, and the messages behind it, while a job runs; and answers whether there is time for a call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from functions.kit.clock import Clock
from functions.kit.logging import get_logger
from functions.records.leases import Lease, LeaseLostError, Leases
from functions.sdk.errors import LeaseGone, OutOfTimeError, Superseded

_log = get_logger("worker")


class KeepAlive:
    """One attempt's lease.  Extended every third of it, never past `acquired_at + max_duration`.

    A passing error is tried again until the lease's own end; a refusal means that the lease is lost, and the attempt is
    told at its next effect, step or progress, as it is when a later unit of its job asked it to end.  It keeps no state
    outside this object, so that a thread which is frozen with its Lambda environment and thaws in a later invocation
    can only be refused.
    """

    def __init__(
        self,
        leases: Leases,
        lease: Lease,
        clock: Clock,
        *,
        length: timedelta,
        max_duration: timedelta,
        extend_messages: Callable[[], None],
    ) -> None:
        self._leases = leases
        self._lease = lease
        self._clock = clock
        self._length = length
        self._end = lease.acquired_at + max_duration
        self._extend_messages = extend_messages
        self._lock = threading.Lock()
        self._lost = False
        self._closed = False
        self.failures = 0

    @property
    def lease(self) -> Lease:
        return self._lease

    @property
    def lost(self) -> bool:
        """Refused, or run out by our own clock: in either case not ours to act on."""
        return self._lost or self._lease.expires_at <= self._clock.now()

    @property
    def deadline(self) -> datetime:
        return self._end

    def close(self) -> None:
        """The job's function has returned: a thread that it left behind may call nothing any more."""
        self._closed = True

    def check(self) -> None:
        if self._closed:
            raise LeaseGone("the attempt is over")
        if self.lost:
            raise LeaseGone("the lease is lost")
        if self._lease.stop is not None:
            raise Superseded(f"ended for {self._lease.stop}, which is due")

    def ensure(self, seconds: float) -> None:
        """Time for a call of that many seconds, by the last answer about the lease; else extend it first."""
        self.check()
        if seconds >= self._length.total_seconds():
            raise OutOfTimeError(
                f"timeout={seconds:g} is not less than the job's lease of {self._length.total_seconds():g} s: "
                "raise the lease in jobs.toml or lower the timeout"
            )
        needed = timedelta(seconds=seconds)
        if self._lease.expires_at - self._clock.now() > needed:
            return
        if self._end - self._clock.now() <= needed:
            raise OutOfTimeError(f"less than {seconds:g} s are left of max_duration")
        self.beat()
        self.check()
        if self._lease.expires_at - self._clock.now() <= needed:
            raise OutOfTimeError("the lease could not be extended in time")

    def beat(self) -> bool:
        """Extend once.  False if it did not work: lost, or a passing error."""
        with self._lock:
            now = self._clock.now()
            until = min(now + self._length, self._end)
            if self._lost or now >= until:
                return False
            try:
                self._lease = self._leases.extend(self._lease, now=now, until=until)
            except LeaseLostError:
                self._lost = True
                _log.warning("lease lost", extra={"action": "lease_lost", "unit_id": self._lease.unit_id})
                return False
            except Exception as error:  # noqa: BLE001 - whatever it is, the next beat must come
                self.failures += 1
                _log.warning(
                    "lease could not be extended",
                    extra={"action": "beat_failed", "unit_id": self._lease.unit_id, "error": type(error).__name__},
                )
                return False
        self._extend_visibility()
        return True

    def _extend_visibility(self) -> None:
        try:
            self._extend_messages()
        except Exception as error:  # noqa: BLE001 - as above
            _log.warning(
                "messages could not be extended",
                extra={"action": "visibility_failed", "unit_id": self._lease.unit_id, "error": type(error).__name__},
            )

    @property
    def pause_s(self) -> float:
        """Until the next beat: a third of the lease; sooner after a failure."""
        third = self._length.total_seconds() / 3
        return third if not self.failures else third / 4


class Ticker:
    """Beats in a thread of its own while the job runs.  A context manager: it is joined at the end, always."""

    def __init__(self, keep_alive: KeepAlive) -> None:
        self._keep_alive = keep_alive
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="keep-alive", daemon=True)

    def __enter__(self) -> KeepAlive:
        self._thread.start()
        return self._keep_alive

    def __exit__(self, *_: object) -> None:
        self._keep_alive.close()
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._keep_alive.pause_s):
            if self._keep_alive.beat():
                self._keep_alive.failures = 0
            elif self._keep_alive.lost:
                return
