"""JSON logs: a constant message and fields, one line each.  Never a payload, a result or a secret."""

from __future__ import annotations

from aws_lambda_powertools import Logger


def get_logger(role: str) -> Logger:
    """The role's logger.  The level comes from POWERTOOLS_LOG_LEVEL (Lambda sets it too); INFO where it is unset."""
    return Logger(service=f"splitshift-{role}", use_rfc3339=True, utc=True)
