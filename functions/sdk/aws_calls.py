"""AWS calls as effects: `run.aws(client).run_instances(…)`, with the parameter by which AWS knows a call again.

Which parameter that is stands in botocore's models, as the idempotency trait of a member (`ClientToken`,
`ClientRequestToken`, …): the SDK fills it with a random UUID for its own retries, and here it gets the unit's key in
the form of a UUID, so that a later attempt sends the same.
"""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

from botocore.exceptions import ClientError, ParamValidationError

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.sdk.calls import Calls
from functions.sdk.errors import NotApplied, OutOfTimeError

# How long AWS knows a token again, in seconds.  Eight hours is the shortest that services document (Verified
# Permissions, Directory Service Data), but for DynamoDB's ten minutes and the five of FIFO queues and topics, of which
# one is left for the call itself.
TOKENS_HONOURED_FOR_S = 8 * 3600.0
_SHORTER_S = {"dynamodb": 600.0, "sqs": 240.0, "sns": 240.0}
_NAMES = ("name", "deduplicationid")
_FINDING = re.compile("Invalid |Missing required parameter|Unknown parameter|Must set")
_DEFAULT_ATTEMPTS = {"legacy": 5}
_CLIENT_ADVICE = "its time-outs and retries decide: make it with functions.kit.aws.client(…), or pass timeout="


@dataclass(frozen=True, kw_only=True)
class AwsEffects:
    """A client whose calls are effects.  The fields as in `Run.aws`."""

    calls: Calls
    client: Any
    item: Any
    name: str | None
    key_in: str | None
    honoured_for: float | None
    timeout: float | None

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        """The effect of a client's method.  Raises FinalError for a call that AWS would not know again."""
        if operation not in self.client.meta.method_to_api_mapping:
            raise AttributeError(f"{self._service} has no operation {operation}")
        parameter = self._parameter(operation)

        def effect(**parameters: Any) -> Any:
            return self._effect(operation, parameter, parameters)

        return effect

    @property
    def _service(self) -> str:
        return str(self.client.meta.service_model.service_name)

    @property
    def _honoured_for(self) -> float:
        if self.honoured_for is not None:
            return self.honoured_for
        return _SHORTER_S.get(self._service, TOKENS_HONOURED_FOR_S)

    def _parameter(self, operation: str) -> str:
        model = self.client.meta.service_model.operation_model(self.client.meta.method_to_api_mapping[operation])
        members: Mapping[str, Any] = model.input_shape.members if model.input_shape else {}
        if self.key_in is not None:
            if self.key_in not in members or members[self.key_in].type_name != "string":
                raise FinalError(f"{operation} has no text parameter {self.key_in!r} for key_in")
            return self.key_in
        if model.idempotent_members:
            return str(model.idempotent_members[0])
        names = [name for name in members if name.lower().endswith(_NAMES)]
        by_name = f'run.aws(client, key_in="{names[0]}") if AWS keeps {names[0]} unique, or ' if names else ""
        raise FinalError(
            f"{self._service} {operation} has no parameter by which AWS knows a call again: write {by_name}"
            "run.effect(…, repeatable=False, find=…)"
        )

    def _effect(self, operation: str, parameter: str, parameters: dict[str, Any]) -> Any:
        if parameter in parameters:
            raise FinalError(f"run.aws fills {parameter} of {operation} itself: leave it out")

        def call(*, idempotency_key: str, **sent: Any) -> Any:
            method = getattr(self.client, operation)
            return _called(method, {**sent, parameter: token_of(idempotency_key)}, named=self.key_in is not None)

        try:
            return self.calls.effect(
                self.name or operation.replace("_", "-"),
                call,
                parameters,
                repeatable=True,
                item=self.item,
                timeout=worst_s(self.client) if self.timeout is None else self.timeout,
                honoured_for=self._honoured_for,
                find=None,
            )
        except OutOfTimeError as error:
            raise OutOfTimeError(f"{error}.  Of an AWS client {_CLIENT_ADVICE}") from None


def token_of(key: str) -> str:
    """The key as AWS gets it: a UUID, which every idempotency parameter of botocore's models accepts."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, key))


def worst_s(client: Any) -> float:
    """How long one call of a client can last, its own retries included and back-off apart."""
    config = client.meta.config
    if not config.connect_timeout or not config.read_timeout:
        raise FinalError(f"the client has no time-outs, so that a call may last for ever.  {_CLIENT_ADVICE}")
    attempts = config.retries.get("total_max_attempts", _DEFAULT_ATTEMPTS.get(config.retries.get("mode"), 3))
    return math.ceil((config.connect_timeout + config.read_timeout) * attempts)


def _called(method: Callable[..., Any], parameters: dict[str, Any], *, named: bool) -> Any:
    """`named`: by our key, so that one that exists was made by an earlier try of this very call."""
    try:
        answer: dict[str, Any] = method(**parameters)
    except ParamValidationError as error:
        raise NotApplied(_without_values(str(error))) from None
    except ClientError as error:
        if named and _exists(_code(error)):
            return None
        if _certainly_refused(error):
            raise NotApplied(f"AWS refused it: {_code(error)}") from error
        raise
    return _plain({name: value for name, value in answer.items() if name != "ResponseMetadata"})


def _without_values(report: str) -> str:
    """Which parameters are wrong, not what they hold: a secret, perhaps."""
    lines = [line.partition(", value: ")[0] for line in report.splitlines()]
    return "; ".join(line for line in lines if _FINDING.match(line))


def _exists(code: str) -> bool:
    return "AlreadyOwned" in code or ("Exists" in code and "Not" not in code)


def _certainly_refused(error: ClientError) -> bool:
    """A refusal of the first try.  After a retry it may speak of that one only, and a mismatch, a conflict or what is
    in progress tells of an earlier call that was, or will be, applied.
    """
    metadata: Mapping[str, Any] = error.response.get("ResponseMetadata", {})
    status = metadata.get("HTTPStatusCode", 500)
    told_of_another = status == HTTPStatus.CONFLICT or any(
        word in _code(error) for word in ("Idempotent", "InProgress")
    )
    refused = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    return refused and not told_of_another and metadata.get("RetryAttempts", 1) == 0


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _plain(answer: dict[str, Any]) -> Any:
    """As JSON: instants as text; what has no text (a stream) as its kind."""
    return json.loads(json.dumps(answer, default=_text))


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else f"({type(value).__name__})"
