"""What a job's values may be: one set of rules, for the file at build time and for the stored definition at run time.

Every function returns the value in the form that is kept or raises Refused, which says what is wrong and what to write.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from functions.kit.errors import FinalError
from functions.records.unit_id import LONGEST_LOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

T = TypeVar("T")

DAY_S = 86_400
YEAR_S = 366 * DAY_S
PAYLOAD_BYTES = 8_192
YEARS = range(1971, 2200)  # one year clear of 1970, so that an offset cannot lead below it
PARTITIONS = 1_000

# Inclusive; seconds where the name ends in _s.  SQS hides a message for at most 12 hours, hence the back-off's limit.
RANGES: Mapping[str, tuple[int, int]] = {
    "spread_s": (0, YEAR_S),
    "attempts": (1, 20),
    "backoff_s": (1, 12 * 3600),
    "backoff_max_s": (1, 12 * 3600),
    "max_duration_s": (1, 15 * 60),
    "start_grace_s": (60, YEAR_S),
    "grace_s": (60, YEAR_S),
    "complete_within_s": (1, YEAR_S),
    "start_deadline_s": (1, YEAR_S),
    "lease_s": (15, 15 * 60),
    "window_s": (60, YEAR_S),
    "review_within_s": (60, YEAR_S),
    "max": (1, 10_000),
    "timeout_s": (30, 15 * 60),
    "memory": (128, 10_240),
    "batch": (1, 10),
    "max_concurrency": (2, 1_000),
}

# The delimiters of a unit id (`/ @ ~ :`) are in none of these.
_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_RUN = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*:[A-Za-z][A-Za-z0-9_]*")
_LOCK = re.compile(r"(?:[A-Za-z0-9._-]|\{job\}|\{partition\}){1,200}")
_LINK = re.compile(r"https://(?:[A-Za-z0-9._~:/?#@!$&()*+,;=%-]|\{job\}){1,500}")
_DURATION = re.compile(r"(?:([0-9]{1,8})d)?(?:([0-9]{1,8})h)?(?:([0-9]{1,8})m)?(?:([0-9]{1,8})s)?")
_SECONDS = re.compile(r"[0-5]?[0-9](?:,[0-5]?[0-9])*")
_LOOSE_DURATION = re.compile(r"([0-9]{1,8}(?:\.[0-9]{1,8})?)(d|h|m|s)[a-z]*")
_UNITS = {"d": DAY_S, "h": 3600, "m": 60, "s": 1}
# What SQS refuses (its allowed set is #x9 #xA #xD #x20-#xD7FF #xE000-#xFFFD #x10000-#x10FFFF) and DEL.
_FORBIDDEN = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]"  # slow to compile, and seldom asked


class Refused(FinalError, ValueError):  # noqa: N818  a verdict on a value, raised
    """A value that breaks a rule: what is wrong, and what to write instead.

    `others` is what else is wrong with it, where it is a list.
    """

    def __init__(self, message: str, fix: str, *, others: tuple[Refused, ...] = ()) -> None:
        super().__init__(message, fix)
        self.message = message
        self.fix = fix
        self.others = others

    def __str__(self) -> str:
        return f"{self.message}; {self.fix}"


def shown(value: object) -> str:
    """A value for a message: on one line, without control characters, at most about 60 characters."""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:200])
    return text if len(text) <= 60 else text[:57] + "…"  # noqa: PLR2004  the docstring's 60


def name(value: object, what: str = "a name") -> str:
    return _matching(
        _NAME, value, f"is not {what}", "write a-z, 0-9 and -, starting with a letter, at most 63 characters"
    )


def word(value: object, what: str) -> str:
    fix = "write letters, digits, . _ and -, starting with a letter or digit, at most 63 characters"
    return _matching(_WORD, value, f"is not {what}", fix)


def run(value: object) -> str:
    """`module:function`; what it names is looked up in the jobs folder and nowhere else."""
    fix = 'write "module:function", such as "invoices:main" for functions/jobs/invoices.py, def main(run)'
    return _matching(_RUN, value, "does not name a job's function", fix)


def lock(value: object) -> str:
    fix = "write letters, digits, . _ and -, with {job} and {partition} as the only placeholders"
    template = "" if value == "" else _matching(_LOCK, value, "is not a lock", fix)
    longest = template.replace("{job}", "x" * 63).replace("{partition}", "x" * 63)
    if len(longest) > LONGEST_LOCK:
        raise Refused(f"may become {len(longest)} characters long", f"write a lock that stays within {LONGEST_LOCK}")
    return template


def link(value: object) -> str:
    return _matching(_LINK, value, "is not an https link", 'write "https://…"; {job} is the only placeholder')


def text(value: object, limit: int = 200) -> str:
    """One line of text."""
    if not isinstance(value, str):
        raise Refused(f"must be text, not {shown(value)}", "write it in quotes")
    if len(value) > limit:
        raise Refused(f"has {len(value)} characters", f"write at most {limit}")
    if not value.isprintable():
        raise Refused("holds a control character", "write one line of plain text")
    return value


def duration(value: object, low: int = 0, high: int = YEAR_S) -> int:
    """Seconds of `"1h30m"`: whole numbers with d, h, m, s in that order, each once; a day is 24 hours."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None or not match[0]:
        raise Refused(f"{shown(value)} is not a duration", _duration_fix(value))
    seconds = sum(int(number or 0) * unit for number, unit in zip(match.groups(), _UNITS.values(), strict=True))
    if not low <= seconds <= high:
        raise Refused(f"{shown(value)} is out of range", f'write "{in_words(low)}" to "{in_words(high)}"')
    return seconds


def seconds(value: object) -> tuple[int, ...]:
    """Seconds of a minute, as `"0,30"` says them, rising."""
    fix = 'write the seconds, rising, with commas between them, such as "0,30"'
    if not isinstance(value, str) or not _SECONDS.fullmatch(value):
        raise Refused(f"{shown(value)} are no seconds of a minute", fix)
    found = tuple(int(one) for one in value.split(","))
    if any(later <= one for one, later in itertools.pairwise(found)):
        raise Refused(f"{shown(value)} are not rising", fix)
    return found


def in_words(seconds: int) -> str:
    """`5400` → `1h30m`: the form in which durations are written."""
    parts: list[str] = []
    for unit, size in _UNITS.items():
        count, seconds = divmod(seconds, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"


def instant(value: object) -> datetime:
    """UTC.  A date and time of a file must carry an offset and be a whole second, as slots are."""
    if not isinstance(value, datetime):
        raise Refused(f"{shown(value)} is not a date and time", "write it without quotes: 2026-12-01T00:00:00+01:00")
    if value.tzinfo is None:
        raise Refused(f"{value.isoformat()} has no offset", f"write {value.isoformat()}Z, or an offset such as +01:00")
    if value.microsecond:
        raise Refused(f"{value.isoformat()} is not a whole second", "leave out the fraction")
    # As it is written and in UTC, as it is kept: the stored one is judged by the same rule.
    if value.year not in YEARS or value.astimezone(UTC).year not in YEARS:
        raise Refused(f"{value.isoformat()} is out of range", "write a year from 1971 to 2199, in UTC too")
    return value.astimezone(UTC)


def each(values: Iterable[object], rule: Callable[[object], T]) -> tuple[T, ...]:
    """Every value by the rule.  One that breaks it hides no other: what is raised names them all."""
    kept: list[T] = []
    wrong: list[Refused] = []
    for one in values:
        try:
            kept.append(rule(one))
        except Refused as refused:
            wrong.append(refused)
    if wrong:
        raise Refused(wrong[0].message, wrong[0].fix, others=tuple(wrong[1:]))
    return tuple(kept)


def partitions(value: object) -> tuple[str, ...]:
    names = words(value, "a partition")
    if len(names) > PARTITIONS:
        raise Refused(f"holds {len(names)} partitions", f"write at most {PARTITIONS}")
    return names


def words(value: object, what: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise Refused(f"must be a list, not {shown(value)}", 'write ["…", "…"]')
    names = each(cast("list[object]", value), lambda one: word(one, what))
    twice = [one for one, count in Counter(names).items() if count > 1]
    each(twice, _once)
    return names


def _once(name: object) -> None:
    raise Refused(f"holds {shown(name)} twice", "write each once")


def payload(value: object) -> dict[str, Any]:
    """A JSON object of at most 8 KB that every transport takes (no control characters, no lone surrogates, no NaN)."""
    if not isinstance(value, dict):
        raise Refused(f"must be a table, not {shown(value)}", "write payload = { key = value }")
    table = cast("dict[str, Any]", value)
    for leaf in _leaves(table):
        if isinstance(leaf, str) and not leaf.isprintable() and (bad := re.search(_FORBIDDEN, leaf)):
            raise Refused(f"holds the character {bad[0]!a}, which queues refuse", "leave it out")
        if isinstance(leaf, float) and not math.isfinite(leaf):
            raise Refused(f"holds {leaf}, which is not JSON", "write a number, or text in quotes")
        if leaf is not None and not isinstance(leaf, (str, int, float)):
            raise Refused(f"holds {shown(leaf)}, which is not JSON", "write it as text, in quotes")
    size = len(json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode())
    if size > PAYLOAD_BYTES:
        raise Refused(
            f"has {size} bytes as JSON", f"write at most {PAYLOAD_BYTES}; keep large data in S3 and pass its key"
        )
    return table


def _leaves(value: object) -> Iterator[object]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            items = cast("dict[object, object]", one)
            waiting += [*items.keys(), *items.values()]
        elif isinstance(one, list):
            waiting += cast("list[object]", one)
        else:
            yield one


def _matching(pattern: re.Pattern[str], value: object, problem: str, fix: str) -> str:
    if not isinstance(value, str):
        raise Refused(f"must be text, not {shown(value)}", "write it in quotes")
    if not pattern.fullmatch(value):
        raise Refused(f"{shown(value)} {problem}", fix)
    return value


def _duration_fix(value: object) -> str:
    """The likely meaning in the right form: 300 → "5m", "1.5h" → "1h30m", "PT5M" and "5 minutes" → "5m"."""
    seconds = None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= YEAR_S:
        seconds = float(value)
    elif isinstance(value, str):
        plain = re.sub(r"[\s,_]|^pt|^p", "", value.lower())[:100]
        tokens = _LOOSE_DURATION.findall(plain)
        if tokens and _LOOSE_DURATION.sub("", plain) == "":
            seconds = sum(float(number) * _UNITS[unit] for number, unit in tokens)
    if seconds is not None and 1 <= seconds <= YEAR_S:
        return f'write "{in_words(round(seconds))}"'
    return 'write whole numbers with d, h, m, s in that order, such as "1h30m"'
