"""Time zones by IANA name, from `tzdata`, which is a dependency and locked: what a machine has is not looked at.

A slim image has no zones, an old one has yesterday's rules.  The build, the roles and whoever asks for a preview must
not differ in what a zone is.
"""

from __future__ import annotations

import difflib
import functools
import re
import zoneinfo
from importlib import resources

from functions.schedules.rules import Refused, shown

_NAME = re.compile(r"[A-Z][A-Za-z0-9_+-]{0,31}(?:/[A-Za-z0-9][A-Za-z0-9_+-]{0,31}){0,2}")
_NOT_A_PLACE = frozenset({"Factory"})


def load_zone(value: object) -> zoneinfo.ZoneInfo:
    """The zone of that name.  Raises Refused for everything else, paths and directories included."""
    zone = _zone(value) if isinstance(value, str) else None
    if zone is None:
        raise Refused(f"{shown(value)} is not a time zone", "write an IANA name, such as Europe/Berlin or UTC")
    return zone


@functools.lru_cache(maxsize=1024)  # more than there are
def _zone(name: str) -> zoneinfo.ZoneInfo | None:
    if not _NAME.fullmatch(name) or name in _NOT_A_PLACE:
        return None
    try:
        with resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).open("rb") as file:
            return zoneinfo.ZoneInfo.from_file(file, key=name)
    except (ValueError, OSError):  # no such file, a folder, a file that is no zone
        return None


def known_zone(value: object) -> str:
    """As load_zone, for the build: exact in case on every file system, and with the nearest name in what to write."""
    known = all_names()
    if isinstance(value, str) and value in known:
        load_zone(value)
        return value
    folded = {one.casefold(): one for one in known}
    near = difflib.get_close_matches(str(value)[:100].casefold().replace(" ", "_"), folded, n=1, cutoff=0.7)
    fix = f'write "{folded[near[0]]}"' if near else "write an IANA name, such as Europe/Berlin or UTC"
    raise Refused(f"{shown(value)} is not a time zone", fix)


@functools.cache
def all_names() -> frozenset[str]:
    """Every zone that a job may have."""
    names = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    return frozenset(one for one in names if _NAME.fullmatch(one)) - _NOT_A_PLACE
