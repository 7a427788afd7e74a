"""A pool's secrets: read by reference before a job's module is imported, and given to it as environment variables.

A value goes nowhere else: not into a log, not into the journal.  What a job raises or returns is cleared of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, cast

from functions.kit import aws
from functions.kit.dataclass import dataclass
from functions.kit.errors import RetryableError

MAX_AGE_S = 300
"""A value is read again after so long, so that a rotated one arrives."""
SHORTEST = 4
"""Characters: what is shorter would be cleared out of ordinary words."""
CLEARED = "***"


class SecretUnavailableError(RetryableError):
    """A secret could not be read; the message has its variable and its reference, never a value."""


@dataclass(frozen=True, kw_only=True)
class _Source:
    """A Powertools provider, which keeps values for `MAX_AGE_S`, and how it is asked."""

    provider: Any
    options: Mapping[str, Any]

    def read(self, name: str) -> Any:
        return self.provider.get(name, max_age=MAX_AGE_S, **self.options)


@dataclass
class Secrets:
    """`references` are `ssm:NAME` or `secretsmanager:NAME`, by variable.  One per process.

    A variable that the process had from its start wins, and its reference is not read: so a job runs on a machine that
    may not read the secret.
    """

    references: Mapping[str, str]
    shortest_lease_s: float = aws.DEFAULT_LEASE_S
    _sources: dict[str, _Source] = field(default_factory=dict[str, _Source])

    def __post_init__(self) -> None:
        self._wanted = {name: of for name, of in self.references.items() if not os.environ.get(name) or name in _placed}

    def provide(self) -> None:
        """Set the variables.  Raises SecretUnavailableError for the first that cannot be read."""
        for name, reference in self._wanted.items():
            value = self._read(name, reference)
            os.environ[name] = _placed[name] = value

    def clear(self, text: str) -> str:
        """The text without any value, as it is or as JSON writes it."""
        values = {os.environ.get(name, "") for name in self.references}
        parts = {part for value in values for part in _parts(value) if len(part) >= SHORTEST}
        for part in sorted(parts, key=len, reverse=True):
            text = text.replace(part, CLEARED).replace(json.dumps(part)[1:-1], CLEARED)
        return text

    def _read(self, name: str, reference: str) -> str:
        kind, _, of = reference.partition(":")
        try:
            value = self._source(kind).read(of)
        except Exception as error:  # noqa: BLE001 - Powertools and AWS have many, and each is the same to the attempt
            # What they say may hold a value; the kind of error says enough.
            raise SecretUnavailableError(
                f"secret {name} ({reference}) could not be read ({_kind(error)}): see that it exists in this Region "
                "and that the pool's role may use its key"
            ) from None
        if not isinstance(value, str) or not value or "\0" in value:
            raise SecretUnavailableError(f"secret {name} ({reference}) holds no text: store it as a string")
        return value

    def _source(self, kind: str) -> _Source:
        if kind not in self._sources:
            self._sources[kind] = _SOURCES[kind](self.shortest_lease_s)
        return self._sources[kind]


_placed: dict[str, str] = {}
"""What this process put into its environment itself: read again, where what was there before is left alone."""


def _ssm(shortest_lease_s: float) -> _Source:
    from aws_lambda_powertools.utilities.parameters import SSMProvider  # noqa: PLC0415 - only pools with secrets pay

    client = aws.client("ssm", shortest_lease_s=shortest_lease_s)
    return _Source(provider=SSMProvider(boto3_client=client), options={"decrypt": True})


def _secretsmanager(shortest_lease_s: float) -> _Source:
    from aws_lambda_powertools.utilities.parameters import SecretsProvider  # noqa: PLC0415 - as above

    client = aws.client("secretsmanager", shortest_lease_s=shortest_lease_s)
    return _Source(provider=SecretsProvider(boto3_client=client), options={})


_SOURCES: dict[str, Callable[[float], _Source]] = {"ssm": _ssm, "secretsmanager": _secretsmanager}


def _kind(error: Exception) -> str:
    """AWS's own code, where Powertools wrapped it."""
    cause = error.__cause__ or error.__context__ or error
    code = aws.refusal(cause).get("Code")
    return str(code or type(cause).__name__)


def _parts(value: str) -> Iterator[str]:
    """A value, and what stands in it where it is a JSON object, as Secrets Manager's often are."""
    yield value
    try:
        document: object = json.loads(value)
    except ValueError:
        return
    if isinstance(document, dict):
        for part in cast("dict[str, object]", document).values():
            if isinstance(part, str):
                yield part
