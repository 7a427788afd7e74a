"""A finished unit is never reopened: a retry is the next unit of its chain, and the last of the chain says how it is.

job@2026-11-29T06:00:00Z     failed
job@2026-11-29T06:00:00Z~again-1     succeeded: what the first one was for is done
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from functions.cli.stage import Stage
from functions.records.unit_id import parse_unit_id


def first_of(unit_id: str) -> str:
    """The unit whose effects all retries of its chain share."""
    return str(replace(parse_unit_id(unit_id), again=0))


def last_of(stage: Stage, unit_ids: Collection[str]) -> dict[str, str]:
    """Of each unit the last retry that has a row; itself where there is none.  One batched read for each round."""
    last: dict[str, str] = {unit_id: unit_id for unit_id in unit_ids}
    looking: dict[str, str] = dict(last)
    while looking:
        following = {str(parse_unit_id(known).retried()): unit_id for unit_id, known in looking.items()}
        rows = stage.stores.inventory.read_many(sorted(following))
        looking = {following[again]: again for again in rows}
        last |= looking
    return last
