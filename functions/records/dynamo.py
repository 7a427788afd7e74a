"""The records in DynamoDB."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from botocore.exceptions import ClientError

from functions.records import limits
from functions.records.database import (
    BadRequestError,
    Change,
    Check,
    Condition,
    ConditionRefusedError,
    DatabaseBusyError,
    Find,
    Item,
    Key,
    Put,
    Refusal,
    Remove,
    TransactionRefusedError,
    Write,
)
from functions.records.expressions import Expression
from functions.records.values import from_item, to_item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# What a transaction or a write meets when another transaction holds one of its items, or when it is throttled.  The SDK
# retries throttling by itself for single calls, not the reasons inside a cancelled transaction, nor conflicts.
_TRY_AGAIN = frozenset(
    {
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
        "ThrottlingError",
        "ThrottlingException",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
    }
)
_TRIES = 8
_FIRST_WAIT_S = 0.05
_BATCH = 100


class DynamoDatabase:
    """Tables by their logical names; `names` says what they are called in this stage."""

    def __init__(self, client: DynamoDBClient, names: Mapping[str, str], sleep: Callable[[float], None]) -> None:
        self._client: Any = client  # requests are built as dictionaries, which the stubs cannot follow
        self._names = names
        self._logical = {physical: logical for logical, physical in names.items()}
        self._sleep = sleep

    def get(self, table: str, key: Key) -> Item | None:
        limits.check_key(table, key)
        answer = self._client.get_item(TableName=self._names[table], Key=to_item(key), ConsistentRead=True)
        return from_item(answer["Item"]) if "Item" in answer else None

    def get_many(self, keys: Mapping[str, Sequence[Key]]) -> dict[str, list[Item]]:
        found: dict[str, list[Item]] = {table: [] for table in keys}
        wanted = [(table, to_item(key)) for table, some in keys.items() for key in limits.distinct(table, some)]
        for start in range(0, len(wanted), _BATCH):
            request: dict[str, Any] = {}
            for table, key in wanted[start : start + _BATCH]:
                request.setdefault(self._names[table], {"Keys": [], "ConsistentRead": True})["Keys"].append(key)
            self._get_batch(request, found)
        return found

    def _get_batch(self, request: dict[str, Any], found: dict[str, list[Item]]) -> None:
        for attempt in range(_TRIES):
            answer = self._client.batch_get_item(RequestItems=request)
            for physical, items in answer["Responses"].items():
                found[self._logical[physical]].extend(from_item(item) for item in items)
            request = answer.get("UnprocessedKeys") or {}
            if not request:
                return
            self._sleep(_wait(attempt))
        raise DatabaseBusyError("DynamoDB left keys of a batch unread: it is throttling")

    def find(self, query: Find) -> Iterator[Item]:
        expression = Expression()
        name, value = query.key
        condition = f"{expression.name(name)} = {expression.value(value)}" + _sort_condition(query, expression)
        request: dict[str, Any] = {
            "TableName": self._names[query.table],
            "KeyConditionExpression": condition,
            "ScanIndexForward": not query.newest_first,
            **expression.placeholders(),
        }
        if query.index is None:
            request["ConsistentRead"] = True
        else:
            request["IndexName"] = query.index
        return self._pages(self._client.query, request, query.limit)

    def scan(self, table: str) -> Iterator[Item]:
        return self._pages(self._client.scan, {"TableName": self._names[table], "ConsistentRead": True}, None)

    def _pages(self, call: Callable[..., Any], request: dict[str, Any], limit: int | None) -> Iterator[Item]:
        left = limit
        while True:
            page = call(**request, **({} if left is None else {"Limit": left}))
            for item in page["Items"]:
                yield from_item(item)
            left = None if left is None else left - len(page["Items"])
            if "LastEvaluatedKey" not in page or left == 0:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def put(self, write: Put) -> None:
        limits.check(write)
        self._conditional(self._client.put_item, self._put(write), write.condition)

    def change(self, write: Change) -> Item:
        limits.check(write)
        request = self._change(write) | {"ReturnValues": "ALL_NEW"}
        return from_item(self._conditional(self._client.update_item, request, write.condition)["Attributes"])

    def remove(self, write: Remove) -> None:
        limits.check(write)
        self._conditional(self._client.delete_item, self._keyed(write), write.condition)

    def _conditional(self, call: Callable[..., Any], request: dict[str, Any], condition: Condition | None) -> Any:
        for attempt in range(_TRIES):
            try:
                return call(**request)
            except ClientError as error:
                code = error.response.get("Error", {}).get("Code", "")
                if code == "ConditionalCheckFailedException" and condition is not None:
                    old: Any = error.response.get("Item")
                    raise ConditionRefusedError(condition.name, from_item(old) if old else None) from error
                if code == "ValidationException":
                    raise BadRequestError("DynamoDB refuses a write whatever is stored") from error
                if code not in _TRY_AGAIN:
                    raise
            self._sleep(_wait(attempt))
        raise DatabaseBusyError("DynamoDB refused a write for a conflict or for throttling, again and again")

    def transact(self, writes: Sequence[Write]) -> None:
        limits.check_transaction(writes)
        request = [self._transacted(write) for write in writes]
        for attempt in range(_TRIES):
            try:
                self._client.transact_write_items(TransactItems=request)
            except ClientError as error:
                code = error.response.get("Error", {}).get("Code", "")
                if code == "TransactionCanceledException":
                    _judge(error, writes)
                elif code not in _TRY_AGAIN:
                    raise
            else:
                return
            self._sleep(_wait(attempt))
        raise DatabaseBusyError("a transaction met conflicts or throttling, again and again")

    def _transacted(self, write: Write) -> dict[str, Any]:
        match write:
            case Put():
                return {"Put": self._put(write)}
            case Change():
                return {"Update": self._change(write)}
            case Remove():
                return {"Delete": self._keyed(write)}
            case Check():
                return {"ConditionCheck": self._keyed(write)}

    def _put(self, write: Put) -> dict[str, Any]:
        expression = Expression()
        request: dict[str, Any] = {"TableName": self._names[write.table], "Item": to_item(write.item)}
        return request | _condition(expression, write.condition) | expression.placeholders()

    def _change(self, write: Change) -> dict[str, Any]:
        expression = Expression()
        request: dict[str, Any] = {
            "TableName": self._names[write.table],
            "Key": to_item(write.key),
            "UpdateExpression": expression.update(write.update),
        }
        return request | _condition(expression, write.condition) | expression.placeholders()

    def _keyed(self, write: Remove | Check) -> dict[str, Any]:
        expression = Expression()
        request: dict[str, Any] = {"TableName": self._names[write.table], "Key": to_item(write.key)}
        return request | _condition(expression, write.condition) | expression.placeholders()


def _condition(expression: Expression, condition: Condition | None) -> dict[str, Any]:
    if condition is None:
        return {}
    return {
        "ConditionExpression": expression.condition(condition.clause),
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _sort_condition(query: Find, expression: Expression) -> str:
    if query.sort is None or (query.starts_with, query.at_least, query.at_most) == (None, None, None):
        return ""  # a placeholder that is not used is refused
    name = expression.name(query.sort)
    if query.starts_with is not None:
        return f" AND begins_with({name}, {expression.value(query.starts_with)})"
    if query.at_least is not None and query.at_most is not None:
        return f" AND {name} BETWEEN {expression.value(query.at_least)} AND {expression.value(query.at_most)}"
    if query.at_least is not None:
        return f" AND {name} >= {expression.value(query.at_least)}"
    return f" AND {name} <= {expression.value(query.at_most)}"


def _judge(error: ClientError, writes: Sequence[Write]) -> None:
    """Return where trying again may help; raise where it cannot."""
    response: Any = error.response
    reasons: list[Any] = response.get("CancellationReasons", [])
    codes = {reason.get("Code", "None") for reason in reasons}
    if codes & _TRY_AGAIN:
        return  # also beside a refusal: whether the write in conflict would have held is not known yet
    if "ConditionalCheckFailed" in codes:
        _refuse(reasons, writes)
    if "ValidationError" in codes or "ItemCollectionSizeLimitExceeded" in codes:
        raise BadRequestError("DynamoDB refuses a transaction whatever is stored") from error
    raise error


def _refuse(reasons: Sequence[Any], writes: Sequence[Write]) -> NoReturn:
    refusals: list[Refusal | None] = []
    for reason, write in zip(reasons, writes, strict=True):
        if reason.get("Code") == "ConditionalCheckFailed" and write.condition is not None:
            item = reason.get("Item")
            refusals.append(Refusal(write.condition.name, from_item(item) if item else None))
        else:
            refusals.append(None)
    raise TransactionRefusedError(refusals)


def _wait(attempt: int) -> float:
    """Seconds before the next try: doubled, with full jitter, so that rivals do not meet again."""
    return random.uniform(0, _FIRST_WAIT_S * 2**attempt)  # noqa: S311 - jitter, no secret
