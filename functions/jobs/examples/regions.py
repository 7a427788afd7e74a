"""A fan-out: each region is a unit of its own, with its own lock, attempts and incident."""

from __future__ import annotations

from typing import Any

from functions.jobs.examples import receiver
from functions.kit.instants import to_text
from functions.sdk import Run


def main(run: Run) -> dict[str, Any]:
    # The window follows from the slot, not from the clock: a late or repeated unit exports what it was meant to.
    window = {"after": to_text(run.window.start), "until": to_text(run.window.end)}
    run.http(
        "export",
        "POST",
        receiver.address("export"),
        repeatable=True,
        json={"region": run.partition, **window},
        headers=receiver.headers(run),
    )
    return {"region": run.partition}
