"""As an agent works: think once, then act, each act with a key of its own.

The second reply fails on the first attempt.  The next attempt neither thinks again nor repeats the first reply.
"""

from __future__ import annotations

from typing import Any

from functions.jobs.examples import receiver
from functions.sdk import Run

TICKETS = {"t1": "cannot log in", "t2": "charged twice"}


def main(run: Run) -> dict[str, Any]:
    # What a model said is kept: asked again, it might decide otherwise, and half of the acts would follow each answer.
    replies: dict[str, str] = run.step("decide", decide)
    for count, (ticket, text) in enumerate(replies.items(), start=1):
        # `item` gives each reply a key of its own.  The receiver answers the first call for t2 with 503 and does
        # nothing, as an overloaded service would.
        run.http(
            "reply",
            "POST",
            receiver.address("reply") + ("?fail_first=1" if ticket == "t2" else ""),
            item=ticket,
            repeatable=True,
            json={"ticket": ticket, "text": text},
            headers=receiver.headers(run),
        )
        run.progress(count, of=len(replies))
    return {"replied": len(replies)}


def decide() -> dict[str, str]:
    """Where a model would be asked."""
    return {ticket: f"About “{subject}”: we are looking into it." for ticket, subject in TICKETS.items()}
