"""What `splitshift invoke` gives to a handler."""

from __future__ import annotations

import io
import json
from pathlib import Path

import click
import pytest

from functions.cli import invoke
from functions.cli.stage import Stage
from functions.kit.clock import SystemClock
from functions.local.session import ROLE_NAMES
from functions.worker.messages import parse

ROOT = Path(__file__).parents[3]


def a_stage(**settings: str) -> Stage:
    queues = json.dumps({"default": "https://queue/default", "heavy": "https://queue/heavy"})
    return Stage(name="dev", settings={"SPLITSHIFT_QUEUES": queues, **settings}, clock=SystemClock())


@pytest.mark.parametrize("path", sorted((ROOT / "events").glob("*.json")), ids=lambda path: path.name)
def test_every_sample_has_the_name_by_which_it_is_asked_for(path: Path) -> None:
    role, name = path.name.removesuffix(".json").split(".")
    assert role in ROLE_NAMES
    assert invoke.read_event(role, name, ROOT) == json.loads(path.read_text())


def test_the_workers_sample_is_a_message_that_it_takes() -> None:
    (record,) = invoke.read_event("worker", "sqs", ROOT)["Records"]
    assert parse(record).unit_id == "nightly-invoices/eu@2026-11-29T06:00:00Z"


def test_an_event_may_be_a_file_or_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.json"
    file.write_text('{"a": 1}')
    monkeypatch.setattr("sys.stdin", io.StringIO('{"b": 2}'))
    assert invoke.read_event("worker", str(file), ROOT) == {"a": 1}
    assert invoke.read_event("worker", "-", ROOT) == {"b": 2}


@pytest.mark.parametrize(
    ("text", "said"), [(None, "one of insert, sweep, triggers"), ("{", "is no JSON"), ("[]", "holds no object")]
)
def test_what_is_no_event_is_wrong_usage(tmp_path: Path, text: str | None, said: str) -> None:
    file = tmp_path / "mine.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(click.UsageError, match=said):
        invoke.read_event("relay", str(file), ROOT)


def test_a_worker_is_told_its_pool_and_the_others_are_not() -> None:
    stage = a_stage(SPLITSHIFT_LEASES_TABLE="leases")
    worker = invoke.variables(stage, "worker", "heavy", Path("d.json"))
    assert (worker["SPLITSHIFT_POOL"], worker["SPLITSHIFT_QUEUE_URL"]) == ("heavy", "https://queue/heavy")
    assert (worker["SPLITSHIFT_STAGE"], worker["SPLITSHIFT_LEASES_TABLE"]) == ("dev", "leases")
    monitor = invoke.variables(stage, "monitor", "default", Path("d.json"))
    assert "SPLITSHIFT_POOL" not in monitor
    assert monitor["SPLITSHIFT_DEFINITIONS"] == "d.json"


def test_a_pool_that_there_is_not_is_named_with_those_there_are() -> None:
    with pytest.raises(click.UsageError, match="no pool nope: write one of default, heavy"):
        invoke.variables(a_stage(), "worker", "nope", Path("d.json"))
