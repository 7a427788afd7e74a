"""A charge with a key: called as often as it takes, made once."""

from __future__ import annotations

from typing import Any

from functions.jobs.examples import receiver
from functions.sdk import Run


def main(run: Run) -> dict[str, Any]:
    # repeatable: this receiver honours the key, so after a crash the same call is simply made again.  For one that
    # does not, say False, and give `find=` if it can be asked what became of a key.
    answer = run.http(
        "charge",
        "POST",
        receiver.address("charge"),
        repeatable=True,
        json={"customer": run.payload.get("customer", "c-1001"), "cents": run.payload.get("cents", 1990)},
        headers=receiver.headers(run),
    )
    return {"receipt": answer["body"]["effect"]}
