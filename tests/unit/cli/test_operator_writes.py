"""The commands that hold back, call off, run again and fill in, as a shell calls them: codes, streams, documents."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from functions.cli.main import COMMANDS, LazyGroup
from functions.cli.stage import find_stage
from functions.kit import aws, parameters
from functions.records.controls import Control
from functions.records.database import Put
from functions.records.entries import Attempt, Completion, EffectState, Ending, Outcome
from functions.records.entry_items import to_item
from functions.records.tables import COMPLETIONS
from tests.support.commands import Run, installed_at, rows, runner
from tests.support.local import wait_for

JOBS = """
[defaults]
owner = "ops"
[jobs.charge]
schedule = "0 * * * *"
run      = "work:main"
tags     = ["billing"]
[jobs.regions]
schedule   = "*/30 * * * *"
run        = "work:main"
partitions = ["eu", "us"]
[jobs.backup]
schedule = "0 3 * * *"
run      = "work:main"
owner    = "infra"
"""
NEW = ("report", "units", "retry", "cancel", "approve", "reject", "backfill", "pause", "resume", "diff")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


@pytest.fixture(scope="module")
def root(moto_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with installed_at(tmp_path_factory.mktemp("operated"), moto_endpoint, JOBS) as project:
        yield project


@pytest.fixture(autouse=True)
def installed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)


def controls() -> dict[str, Control]:
    return find_stage(None).stores.controls.read_many(["charge", "regions", "backup"])


def set_protected(value: str) -> None:
    stage = os.environ["SPLITSHIFT_STAGE"]
    parameters.write(aws.client("ssm"), stage, {"SPLITSHIFT_PROTECTED": value})


@pytest.fixture
def protected() -> Iterator[None]:
    set_protected("true")
    yield
    set_protected("false")


def test_pause_and_resume_from_the_command_line(run: Run) -> None:
    before = controls()
    dry = run("pause", "--all", "--except", "backup", "--for", "2h", "--dry-run", "--json")
    assert (dry.code, controls()) == (0, before)
    assert dry.document["dry_run"] is True
    assert {one["job"]: one["slots"] for one in dry.document["jobs"]} == {"charge": 2, "regions": 8}
    assert (dry.document["slots"], dry.document["made_up"]) == (10, 3)  # the latest, by partition
    assert "this machine" in dry.err
    one = run("pause", "charge", "--for", "2h", "--dry-run")
    assert "1 runs when it ends, 1 is not made up for (catchup latest)" in one.out

    told = run("pause", "--all", "--except", "backup", "--for", "2h", "--reason", "Aurora upgrade", "--wait")
    assert told.code == 0
    assert "2 jobs, 10 slots until" in told.out
    assert "3 run when it ends, 7 are not made up for (catchup latest)" in told.out
    assert "quiet at" in told.err
    assert max(map(len, told.out.splitlines())) <= 100
    now = datetime.now(UTC)
    paused = {name for name, control in controls().items() if control.paused_at(now)}
    assert paused == {"charge", "regions"}
    stands = controls()["charge"]
    assert (stands.reason, stands.by is None) == ("Aurora upgrade", False)
    assert stands.until is not None
    assert abs(stands.until - now - timedelta(hours=2)) < timedelta(minutes=1)

    refused = run("trigger", "charge")
    assert (refused.code, "is paused (Aurora upgrade)" in refused.err) == (1, True)
    backfill = run("backfill", "charge", "--from", "2h", "--until", "now")
    assert (backfill.code, "is paused (Aurora upgrade)" in backfill.err) == (1, True)

    far = run("pause", "charge", "--until", "2199-01-01", "--dry-run")
    assert "10000 slots or more until 01 Jan 2199 00:00 UTC" in far.out

    assert run("resume", "--all", "--dry-run").out.endswith("2 jobs of 3 paused.  Nothing written\n")
    resumed = run("resume", "--all", "--json")
    assert resumed.code == 0
    assert [one["job"] for one in resumed.document["jobs"]] == ["charge", "regions"]
    assert [one["reason"] for one in resumed.document["jobs"]] == ["Aurora upgrade"] * 2
    assert not any(control.paused_at(datetime.now(UTC)) for control in controls().values())
    assert "0 jobs of 3 resumed" in run("resume", "--all").out


def test_a_unit_is_cancelled_listed_and_shown(run: Run) -> None:
    unit_id = run("trigger", "charge", "--json").document["unit_id"]
    dry = run("cancel", "--all", "--tag", "billing", "--dry-run", "--json")
    assert [one["unit_id"] for one in dry.document["units"]] == [unit_id]
    assert run("cancel", unit_id, "--dry-run").out.endswith("1 unit of 1.  Nothing written\n")
    refused = run("retry", unit_id)
    assert (refused.code, "it has not ended" in refused.err) == (1, True)

    done = run("cancel", unit_id, "--note", "wrong customer", "--json")
    assert done.code == 0
    assert done.document == {
        "dry_run": False,
        "units": [{"unit_id": unit_id, "called_off": True, "state": "waiting"}],
    }
    listed = run("units", "charge", "--state", "waiting", "--json")
    assert [one["unit_id"] for one in listed.document] == [unit_id]
    assert listed.document[0]["reason"].startswith("called off by arn:")
    assert "cancel, by arn:" in run("show", unit_id).out


def test_a_backfill_shows_what_it_would_write_and_writes_nothing(run: Run) -> None:
    before = rows()
    dry = run("backfill", "regions", "--from", "2026-01-10T00:00Z", "--until", "2026-01-10T02:00Z", "--dry-run")
    assert dry.code == 0
    assert "10 units (5 slots x eu, us): 0 completed, 0 failed, 10 never.  Nothing written" in dry.out
    assert "regions/eu@2026-01-10T00:00:00Z" in dry.out
    made = run(
        "backfill",
        "regions",
        "--from",
        "2026-01-10T00:00Z",
        "--until",
        "2026-01-10T02:00Z",
        "--partition",
        "us",
        "--max",
        "2",
        "--order",
        "newest",
        "--dry-run",
        "--json",
    )
    assert made.document["units"] == ["regions/us@2026-01-10T02:00:00Z", "regions/us@2026-01-10T01:30:00Z"]
    assert made.document["standing"] == {
        "completed": 0,
        "open": 0,
        "failed": 0,
        "cancelled": 0,
        "never": 5,
        "unclear": 0,
    }
    assert rows() == before


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell that starts the tests in the background has Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_backfill_that_is_stopped_says_what_it_has_written(run: Run) -> None:
    """Ctrl-C once the first of two is written; nobody works it."""
    before, main_thread = rows(), threading.main_thread().ident
    assert main_thread is not None

    def interrupt() -> None:
        wait_for(lambda: len(rows()) > len(before))
        signal.pthread_kill(main_thread, signal.SIGINT)

    with ThreadPoolExecutor(1) as beside:
        stopped = beside.submit(interrupt)
        ran = run("backfill", "backup", "--from", "2026-03-10", "--until", "2026-03-11T12:00", "--json")
        stopped.result()
    unit_id = "backup@2026-03-10T03:00:00Z"
    assert ran.code == 1
    assert "stopped: 1 written, 1 not; the same command goes on" in ran.err
    assert (ran.document["stopped"], ran.document["units"], ran.document["open"]) == (True, [unit_id], [unit_id])
    assert rows().keys() - before.keys() == {unit_id}


def test_up_to_now_is_no_time_ahead(run: Run) -> None:
    """The clock goes on between two looks at it."""
    assert run("report", "--since", "1h", "--until", "now", "--json").code == 1
    dry = run("backfill", "charge", "--from", "1h", "--until", "now", "--dry-run", "--json")
    assert (dry.code, "ahead" in dry.err) == (0, False)


def test_a_report_without_a_scheduler_is_no_good_news(run: Run) -> None:
    ran = run("report", "--json")
    assert ran.code == 1
    assert (ran.document["ok"], ran.document["doubt"]) == (False, "the scheduler was never heard of")


def test_the_deployed_definitions_are_those_of_the_local_stage(run: Run, root: Path) -> None:
    assert run("diff", "--json").document["unchanged"] == 3
    file = root / "functions" / "jobs" / "jobs.toml"
    text = file.read_text()
    try:
        file.write_text(text.replace('"0 3 * * *"', '"0 4 * * *"'))
        ran = run("diff", "--json")
    finally:
        file.write_text(text)
    assert [one["job"] for one in ran.document["changed"]] == ["backup"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["pause"], 2, "name jobs, or write --all"),
        (["pause", "charge", "--all"], 2, "name jobs, or write --all"),
        (["pause", "charge", "--owner", "ops"], 2, "belong to --all"),
        (["pause", "chrage"], 1, "did you mean charge?"),
        (["pause", "--all", "--except", "chrage"], 1, "did you mean charge?"),
        (["pause", "--all", "--tag", "lunch"], 1, "no job fits"),
        (["pause", "charge", "--for", "2h", "--until", "3h"], 2, "not both"),
        (["pause", "charge", "--for", "soon"], 2, "--for"),
        (["pause", "charge", "--for", ""], 2, "--for"),  # as a shell has it whose variable is not set
        (["pause", "charge", "--for", "0s"], 2, "--for"),
        (["pause", "charge", "--until", ""], 2, "is not a time"),
        (["pause", "charge", "--until", "2020-01-01"], 2, "is over"),
        (["pause", "charge", "--until", "now"], 2, "is over"),
        (["resume"], 2, "name jobs, or write --all"),
        (["cancel"], 2, "name a unit"),
        (["cancel", "--all"], 2, "--tag"),
        (["cancel", "charge@last", "--tag", "billing"], 2, "name a unit"),
        (["cancel", "--all", "--tag", "lunch"], 1, "has the tag lunch"),
        (["cancel", "charge@2026-01-01T02:00:00Z"], 1, "nothing was ever written of it"),
        (["retry", "charge@2026-01-01T02:00:00Z"], 1, "nothing was ever written of it"),
        (["retry", "I-7KQ2M"], 1, "no open incident"),
        (["backfill", "charge", "--from", "2h"], 2, "--until"),
        (["backfill", "charge", "--from", "2h", "--until", "3h"], 2, "lies before"),
        (["backfill", "chrage", "--from", "2h", "--until", "now"], 1, "did you mean charge?"),
        (["backfill", "charge", "--from", "500d", "--until", "now"], 2, "is not a time"),
        (["backfill", "charge", "--from", "2025-01-01", "--until", "2025-01-02"], 1, "older than 400 days"),
        (["backfill", "charge", "--from", "2h", "--until", "now", "--max", "0"], 2, "--max"),
        (["units", "--since", "2h", "--until", "3h"], 2, "lies before"),
        (["units", "chrage"], 1, "did you mean charge?"),
        (["units", "--owner", "opps"], 1, "did you mean ops?"),
        (["units", "--since", ""], 2, "is not a time"),
        (["units", "--until", ""], 2, "is not a time"),
        (["units", "--state", "fine"], 2, "succeeded"),
        (["report", "--since", "2h", "--until", "3h"], 2, "of the past"),
        (["report", "--until", ""], 2, "is not a time"),
    ],
)
def test_wrong_input_is_one_sentence_on_stderr_a_code_and_nothing_written(
    run: Run, arguments: list[str], code: int, says: str
) -> None:
    before, held = rows(), controls()
    ran = run(*arguments)
    assert ran.code == code
    assert ran.out == ""
    assert says in " ".join(ran.err.split())
    assert "Traceback" not in ran.err
    assert (rows(), controls()) == (before, held)


@pytest.mark.usefixtures("protected")
@pytest.mark.parametrize(
    "arguments",
    [
        ["pause", "charge"],
        ["trigger", "charge"],
        ["backfill", "charge", "--from", "2026-01-10T00:00Z", "--until", "2026-01-10T02:00Z"],
        ["cancel", "--all", "--tag", "billing"],
    ],
)
def test_on_a_protected_stage_a_person_is_asked_and_no_answer_is_a_no(arguments: list[str]) -> None:
    before, held = rows(), controls()
    for answer in ("n\n", ""):
        ran = CliRunner().invoke(LazyGroup(), arguments, input=answer)
        assert ran.exit_code == 1
        assert "is protected.  Go on?" in ran.stderr
        assert ("nobody answered: --yes does" in ran.stderr) is (answer == "")
        assert "nothing was written" in ran.stderr
        assert (rows(), controls()) == (before, held)


@pytest.mark.usefixtures("protected")
def test_on_a_protected_stage_yes_is_an_answer(run: Run) -> None:
    assert run("pause", "backup", "--yes").code == 0
    assert controls()["backup"].paused
    assert CliRunner().invoke(LazyGroup(), ["resume", "backup"], input="y\n").exit_code == 0
    assert not controls()["backup"].paused


@pytest.mark.slow
def test_a_list_of_more_than_a_megabyte_is_read_to_its_end(run: Run) -> None:
    """DynamoDB answers a query with a megabyte at most, and says where to go on."""
    count, stores = 170, find_stage(None).stores
    first = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(days=30)
    for number in range(count):
        completion = a_large_completion(first + timedelta(minutes=number))
        unit_id = f"charge@{completion.slot:%Y-%m-%dT%H:%M:%SZ}~manual"
        stores.database.put(Put(COMPLETIONS.name, to_item(unit_id, completion, 4_000_000_000)))
    table = find_stage(None).settings[COMPLETIONS.variable]
    page = aws.client("dynamodb").query(
        TableName=table,
        IndexName="by_job",
        KeyConditionExpression="job = :job",
        ExpressionAttributeValues={":job": {"S": "charge"}},
    )
    assert page["Count"] < count
    assert "LastEvaluatedKey" in page

    ran = run("units", "charge", "--since", "31d", "--until", "29d", "--state", "failed", "--json")

    assert ran.code == 0
    assert len(ran.document) == count


def a_large_completion(slot: datetime) -> Completion:
    attempts = [
        Attempt(owner=f"w{n}", ending=Ending.LOST, started=slot, finished=slot, error="x" * 256) for n in range(9)
    ]
    effects = [EffectState(label="x" * 500, key=f"k{n}", state="done") for n in range(9)]
    return Completion(
        outcome=Outcome.FAILED,
        owner="w",
        job="charge",
        partition=None,
        slot=slot,
        run_at=slot,
        started=slot,
        finished=slot,
        attempts=(*attempts, Attempt(owner="w", ending=Ending.ERROR, started=slot, finished=slot, error="x" * 2048)),
        effects=tuple(effects),
        summary="x" * 2048,
    )


@pytest.mark.parametrize("name", NEW)
def test_help_has_examples_and_fits_a_hundred_columns(run: Run, name: str) -> None:
    assert name in COMMANDS
    ran = run(name, "--help")
    assert ran.code == 0
    assert "Examples:" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100
