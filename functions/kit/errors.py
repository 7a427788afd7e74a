"""The base of every error of ours.  Retryable and final are kept apart; a message says what to do."""

from __future__ import annotations


class SplitshiftError(Exception):
    """Something went wrong that we have a name for."""


class RetryableError(SplitshiftError):
    """The same call may succeed later: throttling, a conflict, a time-out."""


class FinalError(SplitshiftError):
    """Trying again changes nothing: wrong input, a missing setting."""
