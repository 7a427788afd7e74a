"""`splitshift demo`: it at work on this machine in about a minute, counted at a receiver that is not us."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import click

from functions.cli.common import emit_json, json_option


@click.command(short_help="See it work: an ordinary run, a duplicate, a kill.")
@json_option
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="Keep records and logs in this folder.")
def command(*, as_json: bool, keep: Path | None) -> None:
    """See it work: an ordinary run, a duplicate, a kill, and the same accidents on a bare cron loop.

    Real processes on this machine: an AWS emulator, a scheduler, a relay, two workers, a monitor, and a receiver that
    counts what reached it.  No AWS account, no Docker, nothing installed, nothing sent elsewhere.  Exit code 1 if
    anything differs from what it must be.

    \b
    Examples:
      splitshift demo
      splitshift demo --json
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(128 + signal.SIGTERM))  # what was started is ended
    tell = Teller(began=time.monotonic(), silent=as_json)
    tell("real processes on this machine, no AWS account, no Docker")
    from functions.cli.demo_steps import run_demo  # noqa: PLC0415 - after the first line: it takes a second to load

    report = run_demo(tell, keep)
    if as_json:
        emit_json(report)
    raise SystemExit(0 if report["ok"] else 1)


class Teller:
    """Says what happens while it happens; with --json to stderr only."""

    def __init__(self, *, began: float, silent: bool) -> None:
        self.began = began
        self._silent = silent

    def __call__(self, text: str) -> None:
        click.echo(text, err=self._silent)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.began

    def clock(self) -> str:
        """`00:27`: minutes and seconds since the beginning."""
        seconds = int(self.elapsed_s)
        return f"{seconds // 60:02d}:{seconds % 60:02d}"
