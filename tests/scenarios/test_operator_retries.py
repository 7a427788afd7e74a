"""Retries by a person: a new unit does what the old one did not, and nothing that was done is done again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.cli.decide import decide
from functions.cli.finding import find_unit, lock_of
from functions.cli.requests import RefusedRequestError
from functions.cli.retries import Retry, retry
from functions.cli.show import tell
from functions.cli.unit_page import page_of
from functions.records.entries import Outcome, Verdict
from functions.records.states import State
from functions.records.units import read_unit
from functions.schedules.model import Catchup
from functions.sdk import GiveUp, Run
from tests.support.operators import Town, after, nothing_is_written
from tests.support.stages import ANN
from tests.support.worlds import CHARGE, Crash, a_charge

AGAIN = f"{CHARGE}~again-1"


@pytest.fixture
def town() -> Town:
    return Town(a_charge(attempts=2, backoff_s=1))


def two_charges(town: Town, *, works: bool) -> None:
    """The second of two effects fails until it works."""

    @town.job
    def charge(run: Run) -> None:
        run.effect("charge", town.receiver.charge, item="a", repeatable=True)
        if not works:
            raise GiveUp("no route to the ledger")
        run.effect("charge", town.receiver.charge, item="b", repeatable=True)


def failed(town: Town, **fields: Any) -> None:
    two_charges(town, works=False)
    town.due(sends=0, **fields)
    town.work()
    assert town.state(CHARGE).state is State.FAILED


def watched_from_before(town: Town) -> None:
    town.clock.set(after(-1))
    town.tick(after(-1))
    town.look()
    town.clock.set(after(0))


def retried(town: Town, unit_id: str = CHARGE) -> Retry:
    return retry(town.stage, find_unit(town.stage, unit_id))


def test_a_retry_is_a_new_unit_and_the_effects_that_were_done_are_not_repeated(town: Town) -> None:
    failed(town, payload={"day": "monday"})
    two_charges(town, works=True)
    town.clock.step(3600)

    made = retried(town)
    town.work()

    row = town.rows[AGAIN]
    assert (made.of, made.requested.created, made.requested.row) == (CHARGE, True, row)
    assert (row.effects_of, row.by, row.origin, row.lock) == (CHARGE, ANN, "manual", "charge")
    assert (row.slot, row.run_at, row.payload) == (after(0), after(60), {"day": "monday"})
    assert town.state(AGAIN).state is State.SUCCEEDED
    assert town.state(CHARGE).state is State.FAILED  # a finished unit is never reopened
    assert len(town.receiver.calls) == 2
    assert town.receiver.most_often == 1
    completion = town.journal(AGAIN).completion
    assert completion is not None
    assert [effect.state for effect in completion.effects] == ["done", "done"]


def test_a_retry_heals_what_the_monitor_told_of_the_failed_one(town: Town) -> None:
    watched_from_before(town)
    failed(town)
    town.clock.step(60)
    town.look()
    assert ("failed", CHARGE) in town.alerts.opened
    two_charges(town, works=True)
    retried(town)
    town.work()
    town.clock.step(60)
    town.look()
    assert ("failed", CHARGE) in town.alerts.resolved
    assert [reason for reason, _ in town.alerts.opened] == ["failed"]


def test_the_next_retry_follows_the_last_one_and_shares_its_effects(town: Town) -> None:
    failed(town)
    retried(town)
    town.work()
    assert town.state(AGAIN).state is State.FAILED
    two_charges(town, works=True)

    made = retried(town, CHARGE)
    town.work()

    assert made.of == AGAIN
    assert made.requested.row.unit_id == f"{CHARGE}~again-2"
    assert made.requested.row.effects_of == CHARGE
    assert town.receiver.most_often == 1
    assert len(town.receiver.calls) == 2


@pytest.mark.parametrize("answer", [Verdict.HAPPENED, Verdict.DID_NOT_HAPPEN])
def test_a_call_that_nobody_makes_again_and_nobody_knows_of_is_settled_by_a_persons_word(
    town: Town, answer: Verdict, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its unit failed, and its job does not make that call any more: a retry alone would fail like it."""
    watched_from_before(town)

    @town.job
    def charge(run: Run) -> None:
        run.effect("charge", cut_off, repeatable=True)

    def cut_off(*, idempotency_key: str) -> None:
        raise TimeoutError(idempotency_key)

    town.tick(after(0))
    town.settle()
    assert town.state(CHARGE).state is State.FAILED
    town.handlers.functions["charge"] = lambda run: None
    retried(town)
    town.settle()
    town.clock.step(60)
    town.look()
    assert town.state(AGAIN).state is State.ON_HOLD
    assert town.alerts.opened == [("failed", CHARGE), ("needs_decision", AGAIN)]
    capsys.readouterr()
    tell(town.stage, page_of(town.stage, AGAIN))
    assert f"splitshift decide '{AGAIN}' charge {answer} --note" in capsys.readouterr().out

    decide(town.stage, find_unit(town.stage, AGAIN), "charge", answer, "looked there")
    town.settle()
    town.clock.step(60)
    town.look()

    assert town.state(AGAIN).state is State.SUCCEEDED
    assert set(town.alerts.resolved) == {("failed", CHARGE), ("needs_decision", AGAIN)}
    assert [line.state for line in page_of(town.stage, AGAIN).effects] == (
        ["done"] if answer is Verdict.HAPPENED else []
    )


def test_an_incident_names_the_unit(town: Town) -> None:
    watched_from_before(town)
    failed(town)
    town.clock.step(60)
    town.look()
    [incident] = town.alerts.incidents
    assert retried(town, incident.incident_id).of == CHARGE


def test_the_payload_and_the_lock_are_those_of_the_unit_also_where_the_job_has_others_by_now(town: Town) -> None:
    """The lock is what makes tokens rise: under another one the retry could not take over what an attempt left."""

    @town.job
    def charge(run: Run) -> None:
        run.effect("charge", dying, repeatable=True)

    def dying(**_: Any) -> None:
        raise Crash

    town.due(sends=0)
    for _ in range(2):
        with pytest.raises(Crash):
            town.work()
        town.clock.step(20)
    town.work()
    assert town.state(CHARGE).state is State.FAILED
    job = town.jobs["charge"] = replace(town.jobs["charge"], lock="ledger", payload={"cents": 9})
    assert job.lock_for(None, CHARGE) == "ledger"

    def as_deployed_later(run: Run) -> None:
        run.effect("charge", town.receiver.charge, repeatable=True)

    town.handlers.functions["charge"] = as_deployed_later
    town.stage.__dict__["definitions"] = town.definitions
    row = retried(town).requested.row
    town.work()
    assert (row.lock, row.payload) == ("charge", {})
    assert town.state(AGAIN).state is State.SUCCEEDED


def test_only_what_is_over_and_not_done_is_retried(town: Town) -> None:
    refused: dict[str, str] = {}

    def try_it(what: str) -> None:
        with nothing_is_written(town), pytest.raises(RefusedRequestError) as error:
            retried(town)
        refused[what] = str(error.value)

    town.due(at=after(1), sends=0)
    soon = "charge@2026-11-29T06:01:00Z"
    with nothing_is_written(town), pytest.raises(RefusedRequestError, match="its time has not come"):
        retried(town, soon)
    town.due(sends=0)
    try_it("waiting")
    town.handlers.functions["charge"] = lambda _: try_it("running")
    town.work()
    try_it("succeeded")

    assert "it waits for a worker" in refused["waiting"]
    assert "it is running" in refused["running"]
    assert "splitshift trigger charge" in refused["succeeded"]


def test_a_unit_on_hold_is_refused_with_what_to_do(town: Town) -> None:
    @town.job
    def charge(run: Run) -> None:
        run.effect("charge", dying, repeatable=False)

    def dying(**_: Any) -> None:
        raise Crash

    town.due(sends=0)
    with pytest.raises(Crash):
        town.work()
    town.clock.step(20)
    town.work()
    assert town.state(CHARGE).state is State.ON_HOLD
    with nothing_is_written(town), pytest.raises(RefusedRequestError, match=f"splitshift show {CHARGE}"):
        retried(town)


def test_a_retry_that_is_open_or_has_succeeded_is_not_made_again(town: Town) -> None:
    failed(town)
    two_charges(town, works=True)
    retried(town)
    with (
        nothing_is_written(town),
        pytest.raises(RefusedRequestError, match=f"{AGAIN} is not retried: it has not ended"),
    ):
        retried(town)
    town.work()
    with nothing_is_written(town), pytest.raises(RefusedRequestError, match=f"{AGAIN} is not retried: it succeeded"):
        retried(town)


def test_two_people_who_retry_at_once_make_one_unit(town: Town) -> None:
    failed(town)
    records = read_unit(town.stores, CHARGE, lock_of(town.stage))
    first = retry(town.stage, records)
    rows = dict(town.rows)
    del town.memory._rows["inventory"][(AGAIN,)]  # as the second one's read, made before the first one's write, saw it
    second = retry(town.stage, records)
    assert second.requested.row.unit_id == first.requested.row.unit_id
    assert set(town.rows) == set(rows)


@pytest.mark.parametrize("outcome", ["expired", "skipped", "cancelled"])
def test_what_did_not_run_by_a_policy_or_a_word_can_be_retried(outcome: str) -> None:
    town = Town(a_charge(start_deadline_s=60, catchup=Catchup(policy="none")))
    two_charges(town, works=True)
    town.due(sends=0)
    if outcome == "expired":
        town.clock.step(61)
    elif outcome == "cancelled":
        town.review(Verdict.CANCEL)
    else:
        town.stores.controls.change("charge", lambda c: c.pause(after(0), until=after(1), reason=None, by=ANN))
    town.work()
    completion = town.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome(outcome)
    town.clock.step(3600)

    retried(town)
    town.work()

    assert town.state(AGAIN).state is State.SUCCEEDED  # a start deadline counts from the row that a retry has


def test_what_is_older_than_its_records_live_is_refused(town: Town) -> None:
    """Its effects are forgotten from then on, and a retry would repeat them."""
    failed(town)
    town.clock.set(after(0) + timedelta(days=400) - timedelta(seconds=town.jobs["charge"].complete_within_s))
    retried(town)
    town.work()
    assert town.state(AGAIN).state is State.FAILED
    town.clock.step(1)
    with nothing_is_written(town), pytest.raises(RefusedRequestError, match="older than 400 days"):
        retried(town)


def test_a_job_that_is_gone_is_not_retried(town: Town) -> None:
    failed(town)
    town.jobs.clear()
    town.stage.__dict__["definitions"] = town.definitions
    with nothing_is_written(town), pytest.raises(RefusedRequestError, match="there is no job"):
        retried(town)
