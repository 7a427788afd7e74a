"""What a bare cron loop makes of the accidents that Splitshift is for: the comparison in the demo.

The loop is a real process.  It posts its charge without a key and keeps no records, as cron does, so neither of
these can be noticed by it or anybody: the job is fired twice (a second host with the same crontab, an hour that
comes twice), or it is killed right after the charge and its supervisor starts it again.  The unit id that it sends
is a label for counting at the receiver; nobody acts on it.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import urllib.request
import uuid
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from functions.kit.errors import FinalError
from functions.local.receiver import ReceiverLog

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMEOUT_S = 10.0
PROCESS_TIMEOUT_S = 30.0


class AccidentFailedError(FinalError):
    """A cron process did not end as its accident demands, so that its count would prove nothing."""


def charge(receiver_url: str, job: str) -> None:
    """The job's one effect.  Raises OSError when the receiver does not take it."""
    request = urllib.request.Request(  # noqa: S310 - the receiver's URL, http on this machine
        f"{receiver_url}/effects/charge", data=b'{"amount": 100}', headers={"X-Unit-Id": job}, method="POST"
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=TIMEOUT_S) as answer:
        if answer.status != HTTPStatus.CREATED:
            raise OSError(f"the receiver answered {answer.status}")


def run(receiver_url: str, job: str, accident: str | None) -> None:
    """One due minute of the loop."""
    charge(receiver_url, job)
    if accident == "twice":
        charge(receiver_url, job)
    elif accident == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


def run_accidents(receiver_url: str) -> dict[str, Any]:
    """Run both accidents in real processes and count at the receiver.

    `{"duplicate": {"effects_at_receiver": n, "alerts": n}, "killed": {…}}`; one effect each would be right.
    """
    duplicate, killed = (f"bare-cron-{name}-{uuid.uuid4().hex[:8]}" for name in ("duplicate", "killed"))
    _process(receiver_url, duplicate, "twice", ends_with=0)
    _process(receiver_url, killed, "kill", ends_with=-signal.SIGKILL)
    # Its supervisor sees a dead process and starts it again; there is no record that could tell it not to.
    _process(receiver_url, killed, None, ends_with=0)
    log = ReceiverLog(url=receiver_url)
    return {
        name: {"effects_at_receiver": log.effects(job), "alerts": len(log.alerts(job))}
        for name, job in (("duplicate", duplicate), ("killed", killed))
    }


def _process(receiver_url: str, job: str, accident: str | None, *, ends_with: int) -> None:
    command = [sys.executable, "-m", "functions.local.bare_cron", "--receiver", receiver_url, "--job", job]
    if accident:
        command += ["--accident", accident]
    ended = subprocess.run(command, capture_output=True, timeout=PROCESS_TIMEOUT_S, check=False)  # noqa: S603
    if ended.returncode != ends_with:
        said = ended.stderr.decode(errors="replace").strip()
        raise AccidentFailedError(f"the cron process ended with {ended.returncode}, not {ends_with}: {said[-500:]}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m functions.local.bare_cron", description=__doc__)
    parser.add_argument("--receiver", required=True, help="the receiver's URL")
    parser.add_argument("--job", required=True, help="the label under which its charges are counted")
    parser.add_argument("--accident", choices=["twice", "kill"], help="none: an ordinary run")
    options = parser.parse_args(arguments)
    run(options.receiver, options.job, options.accident)


if __name__ == "__main__":
    main()
