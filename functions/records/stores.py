"""The stores of one stage, as a role needs them: one database behind them all.

Each record is imported when it is first asked for: a function starts with those that it touches alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from functions.kit import aws
from functions.kit.clock import Clock
from functions.kit.settings import SettingError
from functions.records.database import Database
from functions.records.dynamo import DynamoDatabase
from functions.records.tables import TABLES

if TYPE_CHECKING:
    from functions.records.completions import Completions
    from functions.records.controls import Controls
    from functions.records.effects import Effects
    from functions.records.ended_jobs import EndedJobs
    from functions.records.heartbeats import Heartbeats
    from functions.records.incidents import Incidents
    from functions.records.inventory import Inventory
    from functions.records.kept import KeptDefinitions
    from functions.records.leases import Leases


class Stores:
    """`claimant` is only the monitor's: it names the invocation that publishes incidents."""

    def __init__(self, database: Database, *, skew: timedelta, claimant: str = "") -> None:
        self.database = database
        self.skew = skew
        self._claimant = claimant

    @cached_property
    def ended_jobs(self) -> EndedJobs:
        from functions.records.ended_jobs import EndedJobs  # noqa: PLC0415 - see above

        return EndedJobs(self.database)

    @cached_property
    def inventory(self) -> Inventory:
        from functions.records.inventory import Inventory  # noqa: PLC0415 - see above

        return Inventory(self.database)

    @cached_property
    def leases(self) -> Leases:
        from functions.records.leases import Leases  # noqa: PLC0415 - see above

        return Leases(self.database, self.skew)

    @cached_property
    def completions(self) -> Completions:
        from functions.records.completions import Completions  # noqa: PLC0415 - see above

        return Completions(self.database)

    @cached_property
    def heartbeats(self) -> Heartbeats:
        from functions.records.heartbeats import Heartbeats  # noqa: PLC0415 - see above

        return Heartbeats(self.database)

    @cached_property
    def kept(self) -> KeptDefinitions:
        from functions.records.kept import KeptDefinitions  # noqa: PLC0415 - see above

        return KeptDefinitions(self.database)

    @cached_property
    def effects(self) -> Effects:
        from functions.records.effects import Effects  # noqa: PLC0415 - see above

        return Effects(self.database)

    @cached_property
    def controls(self) -> Controls:
        from functions.records.controls import Controls  # noqa: PLC0415 - see above

        return Controls(self.database)

    @cached_property
    def incidents(self) -> Incidents:
        from functions.records.incidents import Incidents  # noqa: PLC0415 - see above

        return Incidents(self.database, self._claimant)


def dynamo_database(clock: Clock, *, shortest_lease_s: float = aws.DEFAULT_LEASE_S) -> DynamoDatabase:
    """The stage's tables, by the names in the environment.  Using one that is not named there is a SettingError."""
    return DynamoDatabase(
        aws.client("dynamodb", shortest_lease_s=shortest_lease_s), table_names(os.environ), clock.sleep
    )


def table_names(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Logical to physical names.  A role's environment holds only the tables that it may touch."""
    return _Names({table.name: environment.get(table.variable, "") for table in TABLES})


class _Names(dict[str, str]):
    def __getitem__(self, logical: str) -> str:
        physical = super().__getitem__(logical)
        if not physical:
            raise SettingError(f"SPLITSHIFT_{logical.upper()}_TABLE is not set: this role does not know its {logical}")
        return physical
