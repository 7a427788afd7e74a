"""What each role may do in AWS, and nothing else: the one list that policies and tests are held to.

Actions are IAM's: a transaction is judged by each of its writes, a batch of messages as one of them.  Resources are
this project's names: a table, `table/index`, `table/stream`, a queue, a topic.  `key` is the item that a heartbeat's
writer may touch (IAM's `dynamodb:LeadingKeys`), or how it begins; readers may read every one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ANY_HEARTBEAT = "*"


@dataclass(frozen=True, order=True, kw_only=True)
class Permission:
    """`unseen` says why no run of the handlers on one machine shows it; empty where the scenario must."""

    action: str
    resource: str
    key: str = ""
    why: str
    unseen: str = ""


def _table(name: str, **actions: str) -> Iterator[Permission]:
    for action, why in actions.items():
        yield Permission(action=f"dynamodb:{action}", resource=name, why=why)


def _heartbeat(action: str, key: str, why: str) -> Permission:
    return Permission(action=f"dynamodb:{action}", resource="heartbeats", key=key, why=why)


SCHEDULER = (
    *_table(
        "inventory",
        PutItem="a row per slot, on condition that there is none",
        UpdateItem="rows ahead of a deployment give way, and a paused slot is made up for",
    ),
    *_table("controls", Scan="which jobs are paused"),
    _heartbeat("GetItem", "scheduler#*", "its shards' cursors, and the definitions that were replaced"),
    _heartbeat("UpdateItem", "scheduler#*", "moves the cursor, which is its heartbeat; keeps its definitions"),
    _heartbeat("DeleteItem", "scheduler#*", "forgets definitions of long ago, and shards that are no more"),
)

RELAY = (
    *_table("inventory", BatchGetItem="sweep: the rows of candidates"),
    *_table("inventory/by_due", Query="sweep: candidates of a due minute"),
    *_table("completions", BatchGetItem="sweep: which are completed", Query="sweep: the journals of the others"),
    *_table("leases", BatchGetItem="sweep: which are being worked"),
    _heartbeat("GetItem", "relay", "sweep: how far each age got"),
    _heartbeat("UpdateItem", "relay", "beats; the sweep's cursors"),
    Permission(action="sqs:SendMessage", resource="queue default", why="one message per unit; each pool's queue"),
    Permission(action="sqs:SendMessage", resource="queue relay-failures", why="records that cannot be read"),
)

WORKER = (
    *_table("inventory", BatchGetItem="the unit's row, under its lease"),
    *_table("controls", BatchGetItem="whether its job is paused", GetItem="a drill's fault"),
    *_table(
        "leases",
        UpdateItem="takes, extends and frees",
        GetItem="looks again at a lease that changed hands",
        ConditionCheckItem="a unit is skipped only while another holds its lock",
    ),
    *_table(
        "completions",
        Query="the unit's journal, under its lease",
        PutItem="journal entries, each on condition that it is not there",
        ConditionCheckItem="a lost attempt is recorded only while its unit has no completion",
    ),
    *_table(
        "effects",
        PutItem="begins an effect, or takes over one that a dead holder left",
        UpdateItem="done",
        DeleteItem="certainly not applied",
        Query="what earlier attempts left behind, for the completion",
    ),
    _heartbeat("GetItem", "scheduler#0#ended#*", "whether a deployment ended the job of a row of other definitions"),
    _heartbeat("UpdateItem", "worker#default", "beats, for its pool"),
    Permission(action="sqs:ChangeMessageVisibility", resource="queue default", why="when a message is seen again"),
)

MONITOR = (
    *_table("inventory", BatchGetItem="the rows of what is judged"),
    *_table("controls", BatchGetItem="which jobs an operator holds back"),
    *_table("inventory/by_due", Query="candidates of a due minute"),
    *_table("leases", BatchGetItem="who holds the locks"),
    *_table("completions", BatchGetItem="which are completed", Query="the journals of the others"),
    *_table("completions/by_job", Query="whether a later run of a failed job succeeded"),
    *_table(
        "incidents",
        GetItem="whether it is open already",
        BatchGetItem="those that the index names",
        UpdateItem="opens, claims, marks as sent, resolves",
        PutItem="lists a unit that stays open longer",
        DeleteItem="unlists it when it ended; incidents themselves are never deleted",
    ),
    *_table("incidents/by_list", Query="the open ones, and the units listed as open"),
    _heartbeat("GetItem", ANY_HEARTBEAT, "how long each role has been silent"),
    _heartbeat("UpdateItem", "monitor", "beats; up to where it has judged"),
    Permission(action="sns:Publish", resource="topic people", why="an incident's text"),
    Permission(action="sns:Publish", resource="topic events", why="an incident's document"),
)

# Lambda's mappings act in the function's name.  In loop mode the process does the same itself, and a little more.
_LAMBDA_ONLY = "Lambda's mapping asks for it, the loop mode does not"
RELAY_MAPPING = (
    *_table("inventory/stream", DescribeStream="its shards", GetShardIterator="from where to read on"),
    Permission(action="dynamodb:GetRecords", resource="the shard of an iterator", why="its records"),
    Permission(action="dynamodb:ListStreams", resource="*", why="the table's stream", unseen=_LAMBDA_ONLY),
    *_table("inventory", DescribeTable="loop mode: which stream it has"),
    _heartbeat("GetItem", "relay#stream", "loop mode: from where to read on"),
    _heartbeat("UpdateItem", "relay#stream", "loop mode: how far it has read"),
)
MONITOR_MAPPING = (
    *_table("completions/stream", DescribeStream="its shards", GetShardIterator="from where to read on"),
    Permission(action="dynamodb:GetRecords", resource="the shard of an iterator", why="what was changed"),
    Permission(action="dynamodb:ListStreams", resource="*", why="the table's stream", unseen=_LAMBDA_ONLY),
    *_table("completions", DescribeTable="loop mode: which stream it has"),
    _heartbeat("GetItem", "monitor#stream", "loop mode: from where to read on"),
    _heartbeat("UpdateItem", "monitor#stream", "loop mode: how far it has read"),
)
WORKER_MAPPING = (
    Permission(action="sqs:ReceiveMessage", resource="queue default", why="the next message"),
    Permission(action="sqs:DeleteMessage", resource="queue default", why="what the handler is done with"),
    Permission(
        action="sqs:GetQueueAttributes", resource="queue default", why="the queue's settings", unseen=_LAMBDA_ONLY
    ),
    _heartbeat("UpdateItem", "worker#default", "loop mode: beats by a timer of its own"),
)

PERMISSIONS: dict[str, tuple[Permission, ...]] = {
    "scheduler": SCHEDULER,
    "relay": RELAY,
    "worker": WORKER,
    "monitor": MONITOR,
    "relay mapping": RELAY_MAPPING,
    "monitor mapping": MONITOR_MAPPING,
    "worker mapping": WORKER_MAPPING,
}
