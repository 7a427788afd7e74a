"""The job files, compiled, for commands that are about to run them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from functions.cli.common import counted, jobs_folder
from functions.schedules.compile import compile_jobs


def compiled_or_exit(root: Path) -> Mapping[str, Any]:
    """Their document; where anything is wrong with them, what it is on stderr, and exit code 1."""
    jobs_folder(root)
    compiled = compile_jobs(root)
    for error in compiled.errors:
        place = " ".join(filter(None, (f"{error.file}:{error.line}", error.job, error.field)))
        click.echo(f"{place}: {error.message}", err=True)
    if compiled.errors:
        click.echo(f"{counted(len(compiled.errors), 'mistake')}: `splitshift check` says what to write", err=True)
        raise SystemExit(1)
    return compiled.document
