"""A charge with a key: called as often as it takes, made once."""

from __future__ import annotations

from typing import Any

from functions.jobs.examples import receiver
from functions.sdk import Run


def main(run: Run) -> dict[str, Any]:
    # repeatable: this receiver honours the key, so after a crash the same call is simply made again.  For one that
    # does not, say False, and give `find=` if it can be asked what became of a key.
    receipt = run.effect(
        "charge",
        charge,
        repeatable=True,
        unit_id=run.unit_id,
        customer=run.payload.get("customer", "c-1001"),
        cents=run.payload.get("cents", 1990),
    )
    return {"receipt": receipt["effect"]}


def charge(*, idempotency_key: str, unit_id: str, customer: str, cents: int) -> dict[str, Any]:
    return receiver.post("charge", {"customer": customer, "cents": cents}, key=idempotency_key, unit_id=unit_id)
