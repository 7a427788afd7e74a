"""The tables and their keys: read by the local provisioning, the in-memory backend and the stacks."""

from __future__ import annotations

from functions.kit.dataclass import dataclass


@dataclass(frozen=True)
class Index:
    """Sparse: holds only items that have both (or the one) of its keys.  Projects keys only."""

    name: str
    hash_key: str
    range_key: str | None = None


@dataclass(frozen=True)
class Table:
    name: str
    hash_key: str
    range_key: str | None = None
    indexes: tuple[Index, ...] = ()
    stream: bool = False
    ttl: str | None = None

    @property
    def variable(self) -> str:
        """The environment variable that holds the physical name."""
        return f"SPLITSHIFT_{self.name.upper()}_TABLE"

    @property
    def key_names(self) -> tuple[str, ...]:
        return (self.hash_key,) if self.range_key is None else (self.hash_key, self.range_key)


BY_DUE = Index("by_due", "due")
BY_JOB = Index("by_job", "job", "slot")
BY_LIST = Index("by_list", "list", "condition")

INVENTORY = Table("inventory", "unit_id", indexes=(BY_DUE,), stream=True, ttl="ttl")
LEASES = Table("leases", "lease_key", ttl="ttl")
COMPLETIONS = Table("completions", "unit_id", "entry", indexes=(BY_JOB,), stream=True, ttl="ttl")
HEARTBEATS = Table("heartbeats", "source")
EFFECTS = Table("effects", "unit_id", "effect", ttl="ttl")
INCIDENTS = Table("incidents", "condition", indexes=(BY_LIST,), ttl="ttl")
CONTROLS = Table("controls", "name", ttl="ttl")

TABLES = (INVENTORY, LEASES, COMPLETIONS, HEARTBEATS, EFFECTS, INCIDENTS, CONTROLS)
