"""`splitshift audit`: all that is stored about one unit, to be kept elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from functions.cli.auditing import Checked, collect, verify, write
from functions.cli.common import counted, emit_json, json_option
from functions.cli.display import plain, where
from functions.cli.finding import find_unit
from functions.cli.stage import find_stage, stage_options
from functions.kit.instants import to_text_ms


@click.command(short_help="All that is stored about one unit, as an archive.")
@click.argument("unit", required=False)
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="The archive to write; never overwritten.")
@click.option(
    "--verify",
    "archive",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An archive to check instead: is it as it was written?",
)
@stage_options
@json_option
def command(unit: str | None, *, out: Path | None, archive: Path | None, as_json: bool, **where_to_look: Any) -> None:
    """Write all that is stored about UNIT into a zip archive, or check such an archive.

    It holds the unit's row, journal, effect records, control, lease, incidents and definition as they are stored, and a
    manifest with the SHA-256 of each.  The manifest's own SHA-256 is printed: keep it elsewhere, and nobody can change
    the archive unseen.  Payload and results are in it.  --verify needs no stage; exit code 1 if anything was changed.

    \b
    Examples:
      splitshift audit nightly-invoices/eu@02:00 --out evidence.zip
      splitshift audit --verify evidence.zip
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    if archive is not None:
        if unit is not None or out is not None:
            raise click.UsageError("--verify checks an archive alone: leave UNIT and --out away")
        _check(archive, as_json=as_json)
    elif unit is None or out is None:
        raise click.UsageError("write UNIT and --out FILE, or --verify FILE")
    else:
        _write(unit, out, as_json=as_json, where_to_look=where_to_look)


def _write(unit: str, out: Path, *, as_json: bool, where_to_look: dict[str, Any]) -> None:
    stage = find_stage(**where_to_look)
    click.echo(where(stage), err=True)
    records = find_unit(stage, unit)
    documents = collect(stage, records)
    digest = write(out, records.unit_id, documents, by=stage.identity, at=to_text_ms(stage.clock.now()))
    if as_json:
        emit_json({"unit_id": records.unit_id, "file": str(out), "files": sorted(documents), "sha256": digest})
    else:
        click.echo(f"{out}  {plain(records.unit_id)}  {counted(len(documents), 'file')}\nsha256 {digest}")


def _check(archive: Path, *, as_json: bool) -> None:
    checked: Checked = verify(archive)
    ok = not checked.problems
    if as_json:
        problems = list(checked.problems)
        emit_json({"ok": ok, "unit_id": checked.unit_id, "sha256": checked.digest, "problems": problems})
    else:
        for problem in checked.problems:
            click.echo(plain(problem))
        verdict = "as it was written" if ok else "CHANGED since it was written"
        click.echo(f"{archive}  {plain(checked.unit_id)}  {verdict}\nsha256 {checked.digest}")
    raise SystemExit(0 if ok else 1)
