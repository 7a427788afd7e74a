"""The worker's Lambda handler, for one pool's queue."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from functions.kit.start import loaded, set_up
from functions.kit import aws
from functions.kit.clock import SystemClock
from functions.records.stores import Stores, dynamo_database
from functions.schedules.definitions import Definitions, for_stage, load, shortest_lease_s
from functions.schedules.model import Pool
from functions.worker.faults import Faults
from functions.worker.messages import Visibility
from functions.worker.protocol import Protocol
from functions.worker.registry import BundledRegistry
from functions.worker.secrets import Secrets
from functions.worker.settings import WorkerSettings
from functions.worker.worker import Worker


@cache
@set_up
def worker() -> Worker:
    """Built once per process, at the first event."""
    return build(WorkerSettings.from_env())


def build(settings: WorkerSettings) -> Worker:
    """With clients of its own: one process may hold workers of several pools."""
    definitions = for_stage(load(settings.definitions), settings.stage)
    place_variables(definitions.pools.get(settings.pool))
    lease_s = shortest_lease_s(definitions, settings.pool)
    clock = SystemClock()
    stores = Stores(dynamo_database(clock, shortest_lease_s=lease_s), skew=settings.skew)
    protocol = Protocol(
        stores,
        definitions,
        BundledRegistry(definitions.jobs),
        clock,
        faults=Faults(stores.controls, settings.drill_faults),
        worker=settings.worker,
        secrets=Secrets(secrets_of(definitions, settings.pool), lease_s),
    )
    visibility = Visibility(aws.client("sqs", shortest_lease_s=lease_s), settings.queue_url)
    return Worker(protocol, stores, definitions, visibility=visibility, clock=clock, settings=settings)


def place_variables(pool: Pool | None) -> None:
    """Set a pool's `environment` where it is missing: a Lambda function has it from the start, a process here not."""
    if pool is not None:
        for name, value in pool.environment.items():
            os.environ.setdefault(name, value)


def secrets_of(definitions: Definitions, pool: str) -> Mapping[str, str]:
    known = definitions.pools.get(pool)
    return known.secrets if known else {}


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return worker().handle(event, context)


loaded()
