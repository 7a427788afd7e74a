"""Time zones by IANA name.  `tzdata` is a dependency, so a slim image knows them all."""

from __future__ import annotations

import difflib
import functools
import re
import zoneinfo

from functions.schedules.rules import Refused, shown

_NAME = re.compile(r"[A-Z][A-Za-z0-9_+-]{0,31}(?:/[A-Za-z0-9][A-Za-z0-9_+-]{0,31}){0,2}")
# These follow a machine's files, not a place; the trees `posix/` and `right/` (leap seconds) fail the pattern.
_NOT_A_PLACE = frozenset({"Factory"})


def load_zone(value: object) -> zoneinfo.ZoneInfo:
    """The zone of that name.  Raises Refused for everything else, paths and directories included."""
    zone = _zone(value) if isinstance(value, str) else None
    if zone is None:
        raise Refused(f"{shown(value)} is not a time zone", "write an IANA name, such as Europe/Berlin or UTC")
    return zone


@functools.lru_cache(maxsize=1024)  # zoneinfo itself keeps eight, and reads the others again and again
def _zone(name: str) -> zoneinfo.ZoneInfo | None:
    if not _NAME.fullmatch(name) or name in _NOT_A_PLACE:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
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
    return frozenset(one for one in zoneinfo.available_timezones() if _NAME.fullmatch(one)) - _NOT_A_PLACE
