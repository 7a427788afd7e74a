"""The names of all time zones, for the build and whoever writes one: no role lists them."""

from __future__ import annotations

import difflib
import functools
from importlib import resources

from functions.schedules.zones import load_zone, may_name_a_zone, refused


def known_zone(value: object) -> str:
    """As load_zone, for the build: exact in case on every file system, and with the nearest name in what to write."""
    known = all_names()
    if isinstance(value, str) and value in known:
        load_zone(value)
        return value
    folded = {one.casefold(): one for one in known}
    near = difflib.get_close_matches(str(value)[:100].casefold().replace(" ", "_"), folded, n=1, cutoff=0.7)
    raise refused(value, f'"{folded[near[0]]}"') if near else refused(value)


@functools.cache
def all_names() -> frozenset[str]:
    """Every zone that a job may have."""
    names = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    return frozenset(one for one in names if may_name_a_zone(one))
