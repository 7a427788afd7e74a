"""What a schedule means, for a person: in words, value by value, and over a change of the clock."""

from __future__ import annotations

import re

from cronsim import CronSim

from functions.schedules.cron import Cron, simulator_of
from functions.schedules.cron_fields import DAYS, MONTHS
from functions.schedules.expressions import ALIASES, At, Expression, Rate

_ORDINALS = ("", "1st", "2nd", "3rd", "4th", "5th")
_LISTED = 4
_ALL_DAYS = frozenset(range(1, 32))
_GAP = {"run": "a skipped time runs right after the gap", "skip": "a skipped time does not run"}
_FOLD = {
    "first": "a repeated one the first time only",
    "second": "a repeated one the second time only",
    "both": "a repeated one both times",
}


def words(expression: Expression, seconds: tuple[int, ...] = ()) -> str:
    """One English phrase.  `seconds` are those of each minute that cron fields name."""
    phrase = _words(expression)
    if not seconds:
        return phrase
    *others, last = map(str, seconds)
    told = f"{', '.join(others)} and {last}" if others else last
    return f"{phrase}, at second {told} of the minute"


def _words(expression: Expression) -> str:
    match expression:
        case Rate():
            return f"Every {expression.text.removeprefix('rate(').removesuffix(')').removeprefix('1 ')}"
        case At():
            return f"Once, on {expression.wall:%a} {expression.wall.isoformat(sep=' ')}"
        case Cron(nearest=None):
            phrase = _phrase(expression.text)
        case Cron():
            phrase = _nearest(expression)
    return phrase if expression.years is None else f"{phrase}, in {_years(sorted(expression.years))}"


def spelled_out(text: str, expression: Expression) -> str:
    """The expression as it was written, with what a short form stands for: `@daily = 0 0 * * *`."""
    return f"{text} = {ALIASES[text]}" if text in ALIASES and isinstance(expression, Cron) else text


def values(expression: Expression) -> str:
    """Every value that a cron expression names, field by field; empty for the others."""
    if not isinstance(expression, Cron):
        return ""
    simulator = simulator_of(expression.text)
    days = _spans(sorted(day for day in simulator.days if day > 0), whole=(1, 31))
    special = {CronSim.LAST: "last", CronSim.LAST_WEEKDAY: "last weekday"}
    days = ", ".join(filter(None, (days, *(special[day] for day in sorted(simulator.days) if day in special))))
    if expression.nearest is not None:
        days = f"weekday nearest to {expression.nearest}"
    months = sorted(simulator.months)
    parts = {
        "minute": _spans(sorted(simulator.minutes), whole=(0, 59)),
        "hour": _spans(sorted(simulator.hours), whole=(0, 23)),
        "day": days,
        "month": "every" if len(months) == len(MONTHS) else ", ".join(MONTHS[month - 1] for month in months),
        "weekday": _weekdays(simulator),
    }
    if expression.years is not None:
        parts["year"] = _years(sorted(expression.years))
    return " · ".join(f"{name} {value}" for name, value in parts.items()) + _joint(simulator, days, parts["weekday"])


def over_clock_changes(expression: Expression, gap: str, fold: str) -> str:
    """What becomes of its slots where the clock is put forward or back."""
    if isinstance(expression, Rate):
        return "by the length of time, whatever clocks show"
    if isinstance(expression, Cron) and expression.wildcard:
        return "in real time: whenever the clock shows such a time"
    return f"{_GAP[gap]}, {_FOLD[fold]}"


def _joint(simulator: CronSim, days: str, weekdays: str) -> str:
    """How the two belong together, where that makes a difference."""
    if simulator.day_and:
        return "" if "every" in {days, weekdays} else " (day and weekday)"
    return "" if days == weekdays == "every" else " (day or weekday)"


def _phrase(text: str) -> str:
    """cronsim's, of what is meant: where either may match and one is every day, it is every day whatever the other."""
    simulator = simulator_of(text)
    minute, hour, day, month, weekday = text.split()
    weekday = ",".join(dict.fromkeys("0" if one in {"7", "SUN"} else one for one in weekday.split(",")))
    all_days, all_weekdays = simulator.days >= _ALL_DAYS, _weekdays(simulator) == "every"
    either = not simulator.day_and and (all_days or all_weekdays)
    day, weekday = "*" if either or all_days else day, "*" if either or all_weekdays else weekday
    phrase = simulator_of(f"{minute} {hour} {day} {month} {weekday}").explain()
    days = simulator_of(f"0 0 * * {','.join(map(str, sorted(_plain(simulator)) or [0]))}").explain()
    phrase = re.sub(r"every \S+ day of week(?: from \w+ through \w+)?", days.removeprefix("At 00:00 on "), phrase)
    return re.sub(r"\b([0-9]+)th\b", lambda found: _ordinal(int(found[1])), phrase)  # it says 21th


def _nearest(cron: Cron) -> str:
    minute, hour, _, month, _ = cron.text.split()
    phrase = _phrase(f"{minute} {hour} L {month} *")
    return phrase.replace("the last day", f"the weekday nearest to the {_ordinal(cron.nearest or 0)}")


def _weekdays(simulator: CronSim) -> str:
    plain = _plain(simulator)
    if len(plain) == len(DAYS):
        return "every"
    special = sorted((nth, day % 7) for day, nth in (one for one in simulator.weekdays if isinstance(one, tuple)))
    named = [f"{'last' if nth == CronSim.LAST else _ORDINALS[nth]} {DAYS[day]}" for nth, day in special]
    return ", ".join([*(DAYS[day] for day in sorted(plain)), *named])


def _plain(simulator: CronSim) -> set[int]:
    return {day % 7 for day in simulator.weekdays if isinstance(day, int)}


def _spans(numbers: list[int], whole: tuple[int, int] | None = None) -> str:
    """`0, 15, 30, 45`; runs of five and more as `9 to 17`."""
    if whole and numbers == list(range(whole[0], whole[1] + 1)):
        return "every"
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = [[f"{run[0]} to {run[-1]}"] if len(run) > _LISTED else [str(one) for one in run] for run in runs]
    return ", ".join(text for run in shown for text in run)


def _years(years: list[int]) -> str:
    step = years[1] - years[0] if len(years) > _LISTED else 1
    if step > 1 and years == [*range(years[0], years[-1] + 1, step)]:
        return f"every {_ordinal(step)} year from {years[0]} to {years[-1]}"
    return _spans(years)


def _ordinal(number: int) -> str:
    if number % 100 in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
