"""Time zones by IANA name, from `tzdata`, which is a dependency and locked: what a machine has is not looked at.

A slim image has no zones, an old one has yesterday's rules.  The build, the roles and whoever asks for a preview must
not differ in what a zone is.
"""

from __future__ import annotations

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
        raise refused(value)
    return zone


def refused(value: object, instead: str = "an IANA name, such as Europe/Berlin or UTC") -> Refused:
    return Refused(f"{shown(value)} is not a time zone", f"write {instead}")


def may_name_a_zone(text: str) -> bool:
    return _NAME.fullmatch(text) is not None and text not in _NOT_A_PLACE


@functools.lru_cache(maxsize=1024)  # more than there are
def _zone(name: str) -> zoneinfo.ZoneInfo | None:
    if not may_name_a_zone(name):
        return None
    try:
        with resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).open("rb") as file:
            return zoneinfo.ZoneInfo.from_file(file, key=name)
    except (ValueError, OSError):  # no such file, a folder, a file that is no zone
        return None
