"""`splitshift check`: are the job files right?"""

from __future__ import annotations

import dataclasses
import textwrap
from pathlib import Path

import click

from functions.cli.common import WIDTH, counted, emit_json, jobs_folder, json_option, root_option
from functions.schedules.compile import JOBS_FILE, POOLS_FILE, Compiled, Error, compile_jobs


@click.command(short_help="Are the job files right? Every mistake at once.")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@root_option
@json_option
def command(files: tuple[Path, ...], root: Path, *, as_json: bool) -> None:
    """Are the job files right?  Every mistake at once: where it is, what is wrong, what to write.

    Checks functions/jobs/**/jobs.toml and functions/jobs/pools.toml; with FILE, says only what concerns these.
    Nothing is imported or run.  Exit code 1 if anything is wrong.

    \b
    Examples:
      splitshift check
      splitshift check functions/jobs/billing/jobs.toml
      splitshift check --json
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    _refuse_others(files, jobs_folder(root))
    compiled = compile_jobs(root, files)
    errors = _of_files(compiled, files, root)
    if as_json:
        emit_json({"ok": not errors, "errors": [dataclasses.asdict(error) for error in errors]})
    else:
        _tell(errors, len(compiled.document["jobs"]))
    raise SystemExit(1 if errors else 0)


def _refuse_others(files: tuple[Path, ...], folder: Path) -> None:
    """Raises a usage error for a file in the jobs' folder that nobody reads: of that, nothing would be wrong."""
    for file in files:
        if file.resolve().is_relative_to(folder.resolve()) and not _is_read(file.resolve(), folder.resolve()):
            raise click.UsageError(f"{file} is no job file: those are named {JOBS_FILE}, and {folder / POOLS_FILE}")


def _is_read(file: Path, folder: Path) -> bool:
    return file.name == JOBS_FILE or file == folder / POOLS_FILE


def _of_files(compiled: Compiled, files: tuple[Path, ...], root: Path) -> list[Error]:
    wanted = {path.resolve() for path in files}
    return [error for error in compiled.errors if not wanted or (root / error.file).resolve() in wanted]


def _tell(errors: list[Error], jobs: int) -> None:
    for error in errors:
        place = f"{error.file}:{error.line}"
        click.echo(f"{click.style(place, bold=True)}  {_plain(error.job)}  {_plain(error.field)}".rstrip())
        for text in (error.message, f"fix: {error.fix}"):
            click.echo(textwrap.fill(_plain(text), WIDTH, initial_indent="    ", subsequent_indent="      "))
    if errors:
        click.echo(f"\n{click.style('WRONG', fg='red')}  {counted(len(errors), 'mistake')}")
    else:
        click.echo(f"{click.style('OK', fg='green')}  {counted(jobs, 'job')}")


def _plain(text: str | None) -> str:
    """A file's own text must not steer the terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text or "")
