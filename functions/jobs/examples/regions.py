"""A fan-out: each region is a unit of its own, with its own lock, attempts and incident."""

from __future__ import annotations

from typing import Any

from functions.jobs.examples import receiver
from functions.kit.instants import to_text
from functions.sdk import Run


def main(run: Run) -> dict[str, Any]:
    # The window follows from the slot, not from the clock: a late or repeated unit exports what it was meant to.
    run.effect(
        "export",
        export,
        repeatable=True,
        unit_id=run.unit_id,
        region=run.partition,
        after=to_text(run.window.start),
        until=to_text(run.window.end),
    )
    return {"region": run.partition}


def export(*, idempotency_key: str, unit_id: str, region: str, after: str, until: str) -> dict[str, Any]:
    body = {"region": region, "after": after, "until": until}
    return receiver.post("export", body, key=idempotency_key, unit_id=unit_id)
