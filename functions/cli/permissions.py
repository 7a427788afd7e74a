"""What a person at the command line may do in AWS, and nothing else: the one list behind `splitshift policy`.

A reader runs every command that only looks, an operator all that ask a stage.  Commands that do a role's work here
(`run`, `invoke`) need what that role may, and are not in it.  Who asks is told by STS, which needs no permission:
https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from functions.kit.dataclass import dataclass
from functions.records.tables import (
    BY_DUE,
    BY_JOB,
    BY_LIST,
    COMPLETIONS,
    CONTROLS,
    EFFECTS,
    HEARTBEATS,
    INCIDENTS,
    INVENTORY,
    LEASES,
    Index,
    Table,
)

PARAMETERS = "parameters"
RECEIVER = "receiver"

Condition = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, kw_only=True)
class Permission:
    """`resource` is a table, `table/index`, the stage's parameters, or the receiver of its drills."""

    action: str
    resource: str
    why: str
    condition: Condition = field(default_factory=dict[str, Mapping[str, str]])


def _table(table: Table, index: Index | None = None, **actions: str) -> Iterator[Permission]:
    resource = f"{table.name}/{index.name}" if index else table.name
    for action, why in actions.items():
        yield Permission(action=f"dynamodb:{action}", resource=resource, why=why)


READER = (
    Permission(
        # https://docs.aws.amazon.com/systems-manager/latest/userguide/ps-retrieval-authorization.html: by the path
        # that is asked for, and not by the parameters below it.
        action="ssm:GetParametersByPath",
        resource=PARAMETERS,
        why="how the stage's tables are called",
    ),
    *_table(INVENTORY, BatchGetItem="units' rows"),
    *_table(INVENTORY, BY_DUE, Query="what is due, and what was for so short that no schedule names it"),
    *_table(LEASES, BatchGetItem="who holds a unit's lock"),
    *_table(COMPLETIONS, BatchGetItem="how units ended", Query="journals"),
    *_table(COMPLETIONS, BY_JOB, Query="a job's completed units"),
    *_table(EFFECTS, Query="what a unit called"),
    *_table(CONTROLS, BatchGetItem="which jobs are paused"),
    *_table(
        HEARTBEATS, Scan="what each role did last", GetItem="cursors, and the definitions that the scheduler keeps"
    ),
    *_table(INCIDENTS, BatchGetItem="the open ones"),
    *_table(INCIDENTS, BY_LIST, Query="which are open"),
)

# The journal's own policy lets nobody change or delete an entry: an operator's word is a new one.
_WRITES = (
    *_table(
        INVENTORY,
        GetItem="whether a drill's unit is there already",
        PutItem="trigger, retry, backfill, drill: a unit's row, on condition that there is none",
        UpdateItem="asks for a unit again: after a word on it, at the end of a pause",
    ),
    *_table(COMPLETIONS, PutItem="cancel, decide, approve, reject: a person's word, beside those there are"),
    *_table(CONTROLS, GetItem="pause, resume: as it stands", PutItem="pause, resume; drill: the fault of its own unit"),
)

# As the workers call it: infra/drill_stack.py.
DRILLS = (
    Permission(
        action="lambda:InvokeFunctionUrl",
        resource=RECEIVER,
        why="drill: what the receiver counted",
        condition={"StringEquals": {"lambda:FunctionUrlAuthType": "AWS_IAM"}},
    ),
    Permission(
        action="lambda:InvokeFunction",
        resource=RECEIVER,
        why="drill: the same, through its URL only",
        condition={"Bool": {"lambda:InvokedViaFunctionUrl": "true"}},
    ),
)
"""Where the receiver stands in the account."""

OPERATOR = (*READER, *_WRITES)
