"""A job's journal against the receiver's own log: each kind of difference, and silence where there is none."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.cli.listing import Window
from functions.cli.receiver_log import Applied, BadRow
from functions.cli.reconcile import document, tell
from functions.cli.reconciling import EARLIER, EXTRAS_KEPT, Reconciled, reconcile
from functions.cli.stage import Stage
from functions.records.database import Remove
from functions.records.tables import EFFECTS
from functions.sdk import Retry, Run
from functions.sdk.aws_calls import token_of
from tests.support.stages import a_stage
from tests.support.worlds import CHARGE, SLOT, Crash, World, a_charge

MINUTE = timedelta(minutes=1)
DAY = Window(since=SLOT - timedelta(hours=12), until=SLOT + timedelta(hours=12))


@pytest.fixture
def world() -> World:
    return World(a_charge(attempts=2, backoff_s=1))


@pytest.fixture
def stage(world: World) -> Stage:
    return a_stage(world.stores, world.definitions, world.clock)


def compared(stage: Stage, *log: Applied | BadRow, window: Window = DAY) -> Reconciled:
    return reconcile(stage, "charge", stage.definitions.jobs, log, window)


def row(key: str, at: datetime = SLOT, line: int = 2) -> Applied:
    return Applied(line=line, key=key, at=at)


def charged(world: World, *items: str, **fields: Any) -> list[str]:
    """One unit that charged these; their keys."""

    @world.job
    def charge(run: Run) -> None:
        run.step("decide", lambda: 1)
        for item in items:
            run.effect("charge", world.receiver.charge, item=item, repeatable=True)

    before = len(world.receiver.applied)
    world.due(**fields)
    world.settle()
    return [key for key, _ in world.receiver.applied[before:]]


def test_a_log_that_has_every_effect_once_is_fine(world: World, stage: Stage) -> None:
    keys = charged(world, "a", "b")
    found = compared(stage, *map(row, keys))
    assert found.ok
    assert (found.units, found.judged, found.log.rows) == (1, 2, 2)


def test_an_effect_that_the_receiver_never_applied_is_missing(world: World, stage: Stage) -> None:
    first, second = charged(world, "a", "b")
    found = compared(stage, row(first))
    assert not found.ok
    [missing] = found.missing
    assert (missing.key, missing.known and missing.known.label) == (second, "charge[b]")
    assert (found.doubled, found.unknown, found.extra) == ((), (), ())


def test_an_effect_that_was_applied_twice_is_doubled(world: World, stage: Stage) -> None:
    [key] = charged(world, "a")
    found = compared(stage, row(key, line=2), row(key, line=9))
    assert not found.ok
    [doubled] = found.doubled
    assert doubled.seen is not None
    assert (doubled.key, doubled.seen.times, doubled.seen.line) == (key, 2, 2)
    assert found.missing == ()


def test_a_call_without_an_answer_is_unknown_and_the_log_says_what_became_of_it(world: World, stage: Stage) -> None:
    keys: list[str] = []

    @world.job
    def charge(run: Run) -> None:
        for item in ("a", "b"):
            keys.append(run.idempotency_key("charge", item))
            run.effect("charge", dying if item == "b" else world.receiver.charge, item=item, repeatable=False)

    def dying(**_: Any) -> None:
        raise Crash

    world.due()
    with pytest.raises(Crash):
        world.deliver()
    world.settle()

    without, with_it = compared(stage, row(keys[0])), compared(stage, row(keys[0]), row(keys[1]))
    for found in (without, with_it):
        assert not found.ok
        assert [one.key for one in found.unknown] == [keys[1]]
        assert (found.missing, found.doubled, found.extra) == ((), (), ())
    assert without.unknown[0].seen is None
    assert with_it.unknown[0].seen is not None


def test_the_call_that_is_running_now_is_no_difference(world: World, stage: Stage) -> None:
    found: list[Reconciled] = []

    @world.job
    def charge(run: Run) -> None:
        run.effect("charge", lambda idempotency_key: found.append(compared(stage)), repeatable=True)

    world.due()
    world.deliver()
    assert found[0].ok
    assert found[0].judged == 1


def test_a_key_that_no_unit_has_is_extra_and_only_where_its_time_is_asked_for(world: World, stage: Stage) -> None:
    keys = charged(world, "a")
    late = DAY.until + MINUTE
    found = compared(stage, *map(row, keys), row("nobodys", line=5), row("nobodys", line=6), row("later", late))
    assert not found.ok
    [extra] = found.extra
    assert extra.seen is not None
    assert (extra.key, extra.known, extra.seen.times, extra.seen.line) == ("nobodys", None, 2, 5)
    assert found.log.outside == 1


def test_the_key_of_a_unit_from_before_that_called_late_is_no_stranger_and_still_may_be_doubled(
    world: World, stage: Stage
) -> None:
    @world.job
    def charge(run: Run) -> None:
        if run.attempt == 1:
            raise Retry(after=timedelta(days=2))
        run.effect("charge", world.receiver.charge, repeatable=True)

    world.due()
    world.settle(within_s=3 * 86_400)
    [(key, _)] = world.receiver.applied
    now = world.clock.now()
    window = Window(since=now - MINUTE, until=now)
    assert window.since - EARLIER < SLOT

    assert compared(stage, row(key, now), window=window).ok
    assert [one.key for one in compared(stage, row(key, now), row(key, now), window=window).doubled] == [key]


def test_aws_knows_a_key_as_the_uuid_that_it_was_sent(world: World, stage: Stage) -> None:
    first, second = charged(world, "a", "b")
    found = compared(stage, row(token_of(first)), row(token_of(second)), row(token_of(second)))
    assert (found.missing, found.extra) == ((), ())
    [doubled] = found.doubled
    assert doubled.key == second

    later = Window(since=SLOT + MINUTE, until=DAY.until)
    found = compared(stage, row(token_of(first), SLOT + 2 * MINUTE), window=later)
    assert found.ok, "a unit's from before, that called late"


def test_a_retry_shares_the_effects_of_its_unit_and_they_count_once(world: World, stage: Stage) -> None:
    [key] = charged(world, "a")
    assert charged(world, "a", suffix="~again-1", effects_of=CHARGE) == []
    found = compared(stage, row(key))
    assert found.ok
    assert (found.units, found.judged) == (2, 1)


def test_effects_that_only_the_completion_still_tells_of_are_judged_by_it(world: World, stage: Stage) -> None:
    [key] = charged(world, "a")
    for record in world.effects():
        world.database.remove(Remove(EFFECTS.name, {"unit_id": CHARGE, "effect": record.effect}))
    assert [one.key for one in compared(stage).missing] == [key]


def test_a_row_that_cannot_be_read_leaves_the_answer_open(world: World, stage: Stage) -> None:
    keys = charged(world, "a")
    found = compared(stage, *map(row, keys), BadRow(line=7, problem="has no time"))
    assert not found.ok
    assert document("charge", found)["bad_rows"] == [{"line": 7, "problem": "has no time"}]


def test_strangers_beyond_those_that_are_listed_are_counted(world: World, stage: Stage) -> None:
    found = compared(stage, *(row(f"k{n}") for n in range(EXTRAS_KEPT + 3)))
    assert (len(found.extra), found.log.unlisted) == (EXTRAS_KEPT, 3)


def test_rows_that_cannot_be_read_beyond_those_that_are_listed_are_counted(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = [BadRow(line=n, problem="has no time") for n in range(EXTRAS_KEPT + 3)]
    found = compared(stage, *bad)
    told = document("charge", found)
    assert (len(told["bad_rows"]), told["bad_rows_not_listed"]) == (EXTRAS_KEPT, 3)
    tell(stage, "charge", found)
    assert "10003 rows could not be read" in capsys.readouterr().out


def test_the_document_and_the_text_name_every_difference(
    world: World, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = charged(world, "a", "b")
    found = compared(stage, row(first), row(first), row("nobodys", line=4))
    got = json.loads(json.dumps(document("charge", found)))
    assert {kind: len(got[kind]) for kind in ("missing", "doubled", "unknown", "extra", "bad_rows")} == {
        "missing": 1,
        "doubled": 1,
        "unknown": 0,
        "extra": 1,
        "bad_rows": 0,
    }
    assert got["missing"][0] == {
        "unit_id": CHARGE,
        "effect": "charge[b]",
        "key": second,
        "at": "2026-11-29T06:00:00.000Z",
        "times": 0,
        "line": None,
        "applied_at": None,
    }
    assert (got["ok"], got["units"], got["effects"], got["rows"], got["rows_outside"]) == (False, 1, 2, 3, 0)

    tell(stage, "charge", found)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    assert all(word in text for word in ("MISSING", "DOUBLED", "EXTRA", "2x, line 2"))
    assert all(whole in text for whole in (CHARGE, first, second)), "they are copied into the next command"
    tell(stage, "charge", compared(stage, row(first), row(second)))
    assert "every effect is there once, and nothing else" in capsys.readouterr().out
