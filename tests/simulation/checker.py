"""Judges a schedule by its records, call by call and at its end, and by what the receiver saw.

Nothing here asks the code under test what it did: leases, journal, ledger and incidents are read as they stand in the
tables, calls and applications as the receiver counted them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from functions.kit.instants import from_ms
from functions.records.database import Item
from functions.records.tables import COMPLETIONS, EFFECTS, INVENTORY, LEASES
from tests.simulation.engine import Process, ms_of
from tests.simulation.installation import Installation
from tests.simulation.outside import Called

_SKEW_MS = 1_000


@dataclass(frozen=True, kw_only=True)
class Violation:
    """`invariant` is its number in the README of this folder."""

    invariant: int
    text: str
    at_ms: int


class Checker:
    """`violations` grows as it runs.  Where clocks are too far apart, only what the receiver saw counts."""

    def __init__(self, world: Installation) -> None:
        self._world = world
        self.violations: list[Violation] = []
        self.journal_changed_ms = 0
        self.ran_out: set[str] = set()
        self._takers: dict[str, Process | None] = {}
        self._owners: dict[str, str] = {}
        self._tokens: dict[str, int] = {}
        self._receiver_only = world.plan.beyond
        world.settle = self._settle
        world.acknowledged = self._acknowledged
        world.receiver.on_call = self._called

    def found(self, invariant: int, text: str) -> None:
        if self._receiver_only and invariant != 6:
            return
        if any(known.invariant == invariant and known.text == text for known in self.violations):
            return
        self._world.hub.note(f"VIOLATION {invariant}: {text}")
        self.violations.append(Violation(invariant=invariant, text=text, at_ms=self._world.hub.now_ms))

    # --- after each call to the database ------------------------------------------------------------------------------

    def _settle(self) -> None:
        """The changes of one call, which may be a transaction: together they are one instant."""
        world = self._world
        changes = list(world.changes)
        world.changes.clear()
        if not changes:
            return
        judges = {
            COMPLETIONS.name: self._entry,
            LEASES.name: self._lease,
            EFFECTS.name: self._effect,
            INVENTORY.name: self._row,
        }
        # The journal before the leases: an ending is judged by who held the lease until then.
        for table, old, new in sorted(changes, key=lambda change: change[0] != COMPLETIONS.name):
            world.hub.note(f"  {table}: {shown(table, old, new)}")
            if table in judges:
                judges[table](old, new)

    def _row(self, old: Item | None, new: Item | None) -> None:
        if new is None and old is not None:
            self.found(1, f"the row of {old['unit_id']} was deleted")

    def _entry(self, old: Item | None, new: Item | None) -> None:
        self.journal_changed_ms = self._world.hub.now_ms
        if old is not None:
            self.found(3, f"entry {old['entry']} of {old['unit_id']} was changed or deleted")
        if new is None:
            return
        if new["entry"] == "completion":
            self._completion(new)
        elif new["entry"].startswith("stale#") or new.get("ending") == "lost":
            taker = self._takers.get(new["owner"])
            if taker is not None and not taker.troubled:
                self.found(8, f"an attempt of {new['unit_id']} is told as lost or stale, and nothing happened to it")

    def _completion(self, entry: Item) -> None:
        unit_id, owner = str(entry["unit_id"]), entry["owner"]
        lock = self._item(INVENTORY.name, unit_id=unit_id)["lock"]
        if self._owners.get(lock) != owner and entry["outcome"] in {"skipped", "expired"}:
            self._unstarted(unit_id, lock)
        elif self._owners.get(lock) != owner:
            self.found(5, f"{unit_id} was completed by {owner[:6]}, which did not hold its lease")
        lease = self._world.memory.get(LEASES.name, {"lease_key": lock}) or {}
        if lease.get("owner") == owner:
            self.found(4, f"{unit_id} was completed, and its lease not freed with it")
        self._effects_of(entry, unit_id)

    def _unstarted(self, unit_id: str, lock: str) -> None:
        """Ended by a worker that found the lock held: only a unit that never started, and only while that is open."""
        holder = self._item(LEASES.name, lease_key=lock)
        if self._world.memory_journal(unit_id).all_attempts:
            self.found(5, f"{unit_id} had started, and was ended by a worker without its lease")
        if "owner" not in holder or self._item(COMPLETIONS.name, unit_id=holder["unit_id"], entry="completion"):
            self.found(5, f"{unit_id} was ended for a lock that was not held for an open unit")

    def _effects_of(self, entry: Item, unit_id: str) -> None:
        stated = {effect["key"]: effect["state"] for effect in entry.get("effects", [])}
        ledger = [item for item in self._world.memory.scan(EFFECTS.name) if item["unit_id"] == unit_id]
        receiver, said = self._world.receiver, self._said(unit_id)
        words = {item["key"]: said.get((item["label"], item["owner"])) for item in ledger}
        open_ones = [item for item in ledger if item["status"] != "COMPLETED" and words[item["key"]] is None]
        if entry["outcome"] == "succeeded":
            if open_ones:
                self.found(4, f"{unit_id} succeeded while {open_ones[0]['label']} was in progress")
            for key, effect in receiver.expected(unit_id, self._world.plan):
                if not receiver.applied.get(key) and words.get(key) != "did-not-happen":
                    self.found(4, f"{unit_id} succeeded, and {effect} was never applied")
            return
        # Only what was called: a record whose call was never begun is known to be nothing.
        tried = {key for key in receiver.tried_of(unit_id) if words.get(key) != "did-not-happen"}
        for item in open_ones:
            if item["key"] in tried and stated.get(item["key"]) != "unknown":
                self.found(10, f"{item['label']} of {unit_id} is unknown, and the completion does not say so")
        if entry["outcome"] == "failed":
            for key in tried - stated.keys():
                self.found(10, f"a call of {unit_id} with key {key[:6]} is not in its completion")

    def _said(self, unit_id: str) -> dict[tuple[str, str], str]:
        """What the person said of an effect, by its label and by whoever had called it: of no other call."""
        return {
            (str(item["effect"]), str(item["effect_owner"])): str(item["verdict"])
            for item in self._world.memory.scan(COMPLETIONS.name)
            if item["unit_id"] == unit_id and item["entry"].startswith("review#") and "effect_owner" in item
        }

    def _lease(self, old: Item | None, new: Item | None) -> None:
        world, now_ms = self._world, self._world.hub.now_ms
        lock = str((new or old or {})["lease_key"])
        before, after = (old or {}).get("owner"), (new or {}).get("owner")
        token = (new or {}).get("token", 0)
        if after != before and after is not None:
            if token <= self._tokens.get(lock, 0):
                self.found(5, f"the token of {lock} did not rise")
            self._takers[after] = world.hub.process
        self._tokens[lock] = max(token, self._tokens.get(lock, 0))
        self._owners.pop(lock, None)
        if after is not None:
            self._owners[lock] = after
        if before is None or old is None:
            return
        expires_ms = ms_of(from_ms(old["expires_at"]))
        if now_ms + 2 * _SKEW_MS > expires_ms:
            self.ran_out.add(str(old["unit_id"]))
        taker = self._takers.get(before)
        if after is not None and after != before:
            self._taken_over(old, new or {}, expires_ms, taker)
        elif taker is not world.hub.process and (after is None or old["expires_at"] != (new or {}).get("expires_at")):
            self.found(5, f"the lease of {lock} was freed or extended by another than its holder")

    def _taken_over(self, old: Item, new: Item, expires_ms: int, taker: Process | None) -> None:
        offset = taker.offset_ms if taker else 0
        if self._world.hub.now_ms + offset < expires_ms:
            self.found(5, f"the lease of {old['lease_key']} was taken while by its holder's clock it was live")
        if old["owner"] not in {dead["owner"] for dead in new.get("lost", [])}:
            self.found(9, f"the lease of {old['lease_key']} was taken over, and its dead holder is not carried along")

    def _effect(self, old: Item | None, new: Item | None) -> None:
        if old is None:
            return
        label = f"{old['label']} of {old['unit_id']}"
        if old["status"] == "COMPLETED":
            self.found(6, f"the done record of {label} was changed or deleted")
        elif new is None:
            if self._takers.get(old["owner"]) is not self._world.hub.process:
                self.found(6, f"the record of {label} was deleted by another than its owner")
        elif new["owner"] != old["owner"] and new["token"] <= old["token"]:
            self.found(6, f"the record of {label} was taken over without a higher token")

    # --- what the receiver and the queue see --------------------------------------------------------------------------

    def _called(self, called: Called) -> None:
        entry = self._world.memory.get(COMPLETIONS.name, {"unit_id": called.unit_id, "entry": "completion"})
        if entry is None:
            return
        attempt = self._world.memory.get(
            COMPLETIONS.name, {"unit_id": called.unit_id, "entry": f"attempt#{called.owner}"}
        )
        if attempt is None or attempt["ending"] != "lost":
            self.found(4, f"{called.effect} of {called.unit_id} was called after the completion, by no lost attempt")

    def _acknowledged(self, body: str) -> None:
        try:
            unit_id = str(json.loads(body)["unit_id"])
        except ValueError:
            return  # no unit's
        row = self._world.memory.get(INVENTORY.name, {"unit_id": unit_id})
        if row is None or row["state"] != "due" or row.get("needs_review"):
            return
        journal = self._world.memory_journal(unit_id)
        if journal.completion is None and not journal.holds:
            self.found(7, f"a message of {unit_id} was acknowledged, and it neither ended nor waits for a person")

    def _item(self, table: str, **key: str) -> dict[str, Any]:
        return self._world.memory.get(table, key) or {}


_NAMES = ("unit_id", "entry", "lease_key", "effect", "source", "condition", "name")
_SHOWN = (
    "owner",
    "token",
    "lost",
    "status",
    "outcome",
    "ending",
    "state",
    "unsent",
    "cursor",
    "paused",
    "verdict",
    "next",
)


def shown(table: str, old: Item | None, new: Item | None) -> str:
    """A change on one line: what it is of, and what became different."""
    keyed, before = new or old or {}, old or {}
    names = ("lease_key",) if table == LEASES.name else _NAMES
    key = " ".join(str(keyed[name])[:60] for name in names if name in keyed)
    if new is None:
        return f"{key} deleted"
    parts = [f"{name}={_short(new.get(name))}" for name in _SHOWN if new.get(name) != before.get(name)]
    return " ".join([key, *parts])


def _short(value: Any) -> str:
    """An owner by its first characters; of the dead holders of a lease only their owners."""
    if isinstance(value, list):
        return str([_short(dead["owner"]) for dead in value])
    return str(value)[:6] if isinstance(value, str) and len(value) == 32 else str(value)[:40]
