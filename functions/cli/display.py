"""How commands show times, texts and tables."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise

from rich.table import Column, Table

from functions.cli.stage import Stage
from functions.kit import aws
from functions.kit.instants import to_text
from functions.records.states import State

_GAP, _NARROW = 2, 14
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def plain(text: str | None) -> str:
    """What stands in a record must not steer the terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text or "")


def state_name(state: State) -> str:
    """`on hold`: a unit's state in words."""
    return str(state).replace("_", " ")


def table(*columns: str, wrap: str | Collection[str] = ()) -> Table:
    """Without lines; `wrap` is the column, or are those, that give way where the terminal is narrow."""
    wrapped = {wrap} if isinstance(wrap, str) else set(wrap)
    made = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for column in columns:
        made.add_column(column, no_wrap=column not in wrapped, overflow="fold")
    return made


def keep_whole(lines: Table, name: str, width: int) -> None:
    """Of a filled table: an id is copied into the next command, so where there is room the others give way."""
    kept = next(column for column in lines.columns if column.header == name)
    others = [column for column in lines.columns if column is not kept]
    least = sum(_width(one) if one.no_wrap else min(_NARROW, _width(one)) for one in others)
    kept.no_wrap = _width(kept) + least <= width + _GAP


def _width(column: Column) -> int:
    """With the gap after it, which the last one has not."""
    texts = (str(cell) for cell in (column.header, *column.cells))
    return max(len(line) for text in texts for line in text.splitlines() or [""]) + _GAP


def span(length: timedelta) -> str:
    """`41s`, `2m`, `5h48m`, `3d4h`: the two largest units of a length; minutes without their seconds."""
    seconds = max(0, int(length.total_seconds()))
    for (unit, size), (next_unit, next_size) in pairwise(_UNITS):
        if seconds >= size:
            rest = seconds % size // next_size
            return f"{seconds // size}{unit}" + (f"{rest}{next_unit}" if rest and unit != "m" else "")
    return f"{seconds}s"


def both_times(instant: datetime, zone: tzinfo) -> str:
    """UTC, and the wall clock of the job's zone with its offset where that is another."""
    local = instant.astimezone(zone)
    if local.utcoffset() == timedelta(0):
        return to_text(instant)
    return f"{to_text(instant)}   {local:%a} {local.isoformat(sep=' ', timespec='seconds')} {plain(str(zone))}"


def day_and_time(instant: datetime | None, zone: tzinfo) -> str:
    """`30 Nov 02:00` by the wall clock of a zone, with its seconds where there are any; nothing for no instant."""
    if instant is None:
        return ""
    return instant.astimezone(zone).strftime("%d %b %H:%M:%S" if instant.second else "%d %b %H:%M")


def where(stage: Stage) -> str:
    """`prod · 1111-2222-3333 · eu-central-1`: what a person must see before they act."""
    if stage.local is not None:
        return f"{stage.name} · this machine"
    account = stage.account
    shown = f"{account[:4]}-{account[4:8]}-{account[8:]}"
    return f"{stage.name} · {shown} · {region(stage)}"


def region(stage: Stage) -> str:
    del stage  # its environment is this process's by now
    return str(aws.client("sts").meta.region_name)
