"""What `splitshift up` leaves running until `splitshift down`: ministack and the receiver, and who keeps them together.

python -m functions.local.host --root FOLDER --python MINISTACK'S [--stage NAME] [--port N] [--receiver-port N]
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from functions.kit.errors import FinalError
from functions.local import processes
from functions.local.ministack import Ministack
from functions.local.places import STAGE, LocalInstallation, Places
from functions.local.receiver import Receiver

LOOK_EVERY_S = 0.5
STOP_TIMEOUT_S = 20.0


class NotStoppedError(FinalError):
    """The processes did not end in time."""


def start(places: Places, python: Path, *, stage: str, port: int, receiver_port: int) -> LocalInstallation:
    """In the background.  Raises PortTakenError, NotStartedError with what it said."""
    places.make()
    arguments = {"--root": places.folder.parent, "--python": python, "--stage": stage}
    ports = {"--port": port, "--receiver-port": receiver_port}
    words = [str(word) for pair in (arguments | ports).items() for word in pair]
    server = processes.start("functions.local.host", *words, log=places.log_of("host"), outlives=True)
    running = places.running()
    if server.process.stdout is not None:
        server.process.stdout.close()
    if running is None:
        raise processes.NotStartedError(f"what was started has ended again: see {places.log_of('host')}")
    return running


def stop(places: Places, running: LocalInstallation) -> None:
    """All of it.  Raises NotStoppedError."""
    os.kill(running.pid, signal.SIGTERM)
    give_up_at = time.monotonic() + STOP_TIMEOUT_S
    while places.running() is not None:
        if time.monotonic() > give_up_at:
            raise NotStoppedError(f"process {running.pid} does not end: look at it, or kill it")
        time.sleep(LOOK_EVERY_S / 5)


def serve(places: Places, python: Path, *, stage: str, port: int, receiver_port: int) -> None:
    """Until SIGTERM, or until one of the two ends: half an installation is none."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stopping.set())
    with ExitStack() as stack:
        stack.enter_context(places.held())
        places.receiver_database.unlink(missing_ok=True)  # a new emulator knows none of the old units
        emulator = stack.enter_context(
            Ministack.start(python, port=port, scratch=places.deployment / "functions", log=places.log_of("ministack"))
        )
        receiver = stack.enter_context(
            Receiver.start(places.receiver_database, port=receiver_port, log=places.log_of("receiver"))
        )
        stack.callback(places.forget)
        places.save(
            LocalInstallation(
                endpoint=emulator.endpoint,
                receiver=receiver.url,
                pid=os.getpid(),
                stage=stage,
                deployed=True,
                pids={"emulator": emulator.pid, "receiver": receiver.pid},
            )
        )
        processes.announce(emulator.endpoint)
        parts = (emulator.process, receiver.server.process)
        while not stopping.wait(LOOK_EVERY_S) and all(part.poll() is None for part in parts):
            pass


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m functions.local.host", description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--stage", default=STAGE)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--receiver-port", type=int, default=0)
    options = parser.parse_args()
    places = Places(options.root)
    try:
        serve(places, options.python, stage=options.stage, port=options.port, receiver_port=options.receiver_port)
    except processes.PortTakenError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a process's last words
        sys.exit(processes.EXIT_PORT_TAKEN)
    except FinalError as error:
        print(error, file=sys.stderr)  # noqa: T201 - as above
        sys.exit(1)


if __name__ == "__main__":
    main()
