"""Slots by brute force: every minute around a change of the clock, read off zoneinfo, compared with slots.py.

What is expected here shares no code with what is compared.

nice python -m tests.unit.schedules.oracle --all            the ten years from 2026
nice python -m tests.unit.schedules.oracle --all --from 2007
"""

from __future__ import annotations

import argparse
import random
import re
import time
import zoneinfo
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from functions.schedules.expressions import parse
from functions.schedules.rules import Refused
from functions.schedules.slots import between
from tests.support.jobs import a_job
from tests.unit.schedules.meaning import Meaning, meaning_of

MINUTE = timedelta(minutes=1)
AROUND = timedelta(hours=26)
YEARS = 10
_PROBE = timedelta(hours=6)

EXPRESSIONS = """
* * * * *|*/5 * * * *|*/7 * * * *|*/15 * * * *|*/30 * * * *|0 * * * *|30 * * * *|5/15 * * * *|0,30 * * * *|17 */2 * * *
*/20 0 * * *|*/20 1 * * *|*/20 2 * * *|*/10 3 * * *|* 2 * * *|*/2,5 1-3 * * *|59 */1 * * *|0 */6 * * *|*/45 */5 * * *
0 0 * * *|1 0 * * *|30 0 * * *|59 0 * * *|0 1 * * *|15 1 * * *|30 1 * * *|45 1 * * *|0 2 * * *|1 2 * * *|30 2 * * *
59 2 * * *|0 3 * * *|30 3 * * *|59 23 * * *|30 23 * * *|0 12 * * *|15,45 2 * * *|0,15,30,45 1,2,3 * * *|0-59 1-2 * * *
0 0-23 * * *|30 0-23/2 * * *|0 0,1,2,3 * * *|10-50/20 1-3 * * *|30 2 * * 0|30 1 * * SUN|30 2 8-14 3 *|0 2 * * 6,7
0 0 L * *|30 1 L * 5|30 2 LW * *|0 3 * * 0L|30 2 * * SUN#2|30 1 * * 0#1|0 1 */2 * 0|0 1 1-31 * 0|15 2 29-31 3,10 0
@hourly|@daily|@midnight|@weekly|@monthly
cron(0 * * * ? *)|cron(*/15 * ? * SUN *)|cron(0/10 2 * * ? *)|cron(30 2 * * ? *)|cron(30 1 ? * 1 *)|cron(0 0 ? * 7 *)
cron(15 1-3 ? * 1,7 *)
cron(0 2 ? * L *)|cron(30 2 ? * 1L *)|cron(30 1 ? * 1#1 *)|cron(0 1 ? * SUN#2 *)|cron(0 3 L * ? *)
cron(30 1 LW * ? *)|cron(30 2 1W * ? *)|cron(0 2 15W * ? *)|cron(30 1 28W * ? *)|cron(30 2 ? 3-4 SUN 2026-2030)
cron(0 1 1/7 * ? */2)|cron(30 0-4 * * ? 2027)|cron(1/10 0/3 * * ? *)
at(SKIPPED)|at(REPEATED)|at(PLAIN)|rate(25 minutes)|rate(6 hours)|rate(1 day)
"""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A clock put forward or back; `zone` stands for all whose changes are the same."""

    zone: str
    instant: datetime


@dataclass(frozen=True, kw_only=True)
class Minutes:
    """What the clock shows around a change: each minute with its wall-clock time, and the times it never shows.

    `shown` is what is compared, by time of day; `passes` goes further, so that a time at the edge is known to be
    repeated.
    """

    shown: dict[tuple[int, int], list[tuple[datetime, datetime]]]
    skipped: list[tuple[datetime, datetime]]
    """(first instant after the gap, wall-clock time that was left out)"""
    passes: dict[datetime, list[datetime]]

    @property
    def repeated(self) -> list[datetime]:
        return sorted(wall for wall, instants in self.passes.items() if len(instants) > 1)


Found = list[tuple[datetime, str, str | None]]
"""(instant, state, reason)"""


def expressions() -> list[str]:
    return [text for line in EXPRESSIONS.strip().splitlines() for text in line.split("|")]


def changes(first_year: int, years: int = YEARS) -> list[Change]:
    """Those of all IANA zones, one zone for all that change alike."""
    start, end = datetime(first_year, 1, 1, tzinfo=UTC), datetime(first_year + years, 1, 1, tzinfo=UTC)
    alike: dict[tuple[tuple[datetime, timedelta, timedelta], ...], str] = {}
    for name in sorted(zoneinfo.available_timezones() - {"Factory", "localtime"}):
        if name.startswith(("posix", "right")):
            continue
        found = tuple(_changes_of(ZoneInfo(name), start, end))
        if found:
            alike.setdefault(found, name)
    return [Change(zone=name, instant=instant) for found, name in alike.items() for instant, _, _ in found]


def _changes_of(zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[tuple[datetime, timedelta, timedelta]]:
    at, offset = start, _offset(zone, start)
    while at < end:
        ahead = at + _PROBE
        if (other := _offset(zone, ahead)) != offset:
            minute = at
            while _offset(zone, minute) == offset:
                minute += MINUTE
            yield minute, offset, other
            offset = other
        at = ahead


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


def walked(change: Change) -> Minutes:
    zone = ZoneInfo(change.zone)
    shown: dict[tuple[int, int], list[tuple[datetime, datetime]]] = defaultdict(list)
    skipped: list[tuple[datetime, datetime]] = []
    passes: dict[datetime, list[datetime]] = defaultdict(list)
    at, before = change.instant - 2 * AROUND, None
    while at <= change.instant + 2 * AROUND:
        wall = at.astimezone(zone).replace(tzinfo=None, fold=0)
        if before is not None:
            missing = before + MINUTE
            while missing < wall:
                skipped.append((at, missing))
                missing += MINUTE
        if -AROUND < at - change.instant <= AROUND:
            shown[wall.hour, wall.minute].append((at, wall))
        passes[wall].append(at)
        at, before = at + MINUTE, wall
    return Minutes(shown=dict(shown), skipped=skipped, passes=dict(passes))


def written_for(text: str, minutes: Minutes) -> str | None:
    """The expression, with the times of `at(…)` filled in; None where the change has none."""
    times = {"SKIPPED": [wall for _, wall in minutes.skipped], "REPEATED": minutes.repeated}
    for name, walls in times.items():
        if name in text:
            return text.replace(name, walls[len(walls) // 3].isoformat()) if walls else None
    return text.replace("PLAIN", minutes.shown[12, 34][0][1].isoformat())


def expected(text: str, minutes: Minutes, gap: str, fold: str) -> Found:
    """All slots within 26 hours of the change."""
    if text.startswith("rate("):
        instants = sorted(at for shown in minutes.shown.values() for at, _ in shown)
        return [(at, "due", None) for at in instants if _on_rate(text, at)]
    meaning = meaning_of(text)
    found: dict[datetime, tuple[str, str | None]] = {}
    if not meaning.real_time:
        for at, wall in minutes.skipped:
            if _matches(meaning, wall):
                found[at] = ("due", None) if gap == "run" else ("suppressed", "dst_gap")
    times = ((hour, minute) for hour in meaning.hours for minute in meaning.minutes)
    for at, wall in (one for time_of_day in times for one in minutes.shown.get(time_of_day, ())):
        if _matches(meaning, wall):
            passes = minutes.passes[wall]
            runs = meaning.real_time or len(passes) == 1 or fold == "both" or passes[fold == "second"] == at
            if runs or at not in found:
                found[at] = ("due", None) if runs else ("suppressed", "dst_fold")
    return [(at, *found[at]) for at in sorted(found)]


def _on_rate(text: str, at: datetime) -> bool:
    count, unit = re.findall(r"\d+|minute|hour|day", text)
    seconds = int(count) * {"minute": 60, "hour": 3600, "day": 86_400}[unit]
    return int(at.timestamp()) % seconds == 0


def _matches(meaning: Meaning, wall: datetime) -> bool:
    return wall.minute in meaning.minutes and wall.hour in meaning.hours and meaning.day(wall.date())


# --- comparing --------------------------------------------------------------------------------------------------------

CHOICES = (("run", "first"), ("skip", "second"), ("run", "both"))


def differences(change: Change, choices: tuple[tuple[str, str], ...], rng: random.Random) -> Iterator[str | None]:
    """One element per comparison: None, or in what slots.py and brute force differ."""

    minutes = walked(change)
    for text in expressions():
        written = written_for(text, minutes)
        if written is None:
            continue
        try:
            parse(written)
        except Refused:
            if "at(" in text and change.instant.year < 2026:
                continue
            raise
        for gap, fold in choices:
            want = expected(written, minutes, gap, fold)
            got = found_by_slots(written, change, gap, fold, rng)
            where = f"{written} {change.zone} {change.instant} {gap}/{fold}"
            yield None if got == want else f"{where}: {told(want, got)}"


def found_by_slots(text: str, change: Change, gap: str, fold: str, rng: random.Random) -> Found:
    """In two windows that meet anywhere, as often as not within two hours of the change."""

    job = a_job(text, timezone=change.zone, dst_gap=gap, dst_fold=fold)
    low, high = change.instant - AROUND, change.instant + AROUND
    near = 2 * 3600 if rng.random() < 0.5 else 26 * 3600
    cut = change.instant + timedelta(seconds=rng.randrange(-near, near))
    windows = (between(job, low, cut), between(job, cut, high))
    return [(slot.instant, slot.state, slot.reason) for window in windows for slot in window]


def told(want: Found, got: Found) -> str:
    only_want = [str(one) for one in want if one not in got]
    only_got = [str(one) for one in got if one not in want]
    return f"expected {only_want[:3]}, got {only_got[:3]}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--all", action="store_true", help="every change; without it a tenth")
    options.add_argument("--from", dest="year", type=int, default=2026)
    given = options.parse_args()
    zoneinfo.reset_tzpath(())  # the zones that are shipped, not this machine's
    begun, rng = time.monotonic(), random.Random(4)
    found = changes(given.year)
    chosen = found if given.all else rng.sample(found, len(found) // 10)
    total = wrong = 0
    for change in chosen:
        for difference in differences(change, CHOICES, rng):
            total += 1
            if difference:
                wrong += 1
                print(difference)  # noqa: T201  a command's answer
    zones = len({change.zone for change in chosen})
    print(  # noqa: T201
        f"{len(expressions())} expressions, {zones} zones that differ, {len(chosen)} of {len(found)} changes: "
        f"{total} comparisons, {wrong} differences, {time.monotonic() - begun:.0f} s"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
