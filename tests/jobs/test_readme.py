"""The code in the README of the jobs: its modules and its tests, run as a project of one's own would run them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from functions import jobs
from functions.kit import aws
from functions.sdk.testing import Harness, Receiver
from tests.support.local import a_user_project

ROOT = Path(__file__).parents[2]
ROLE = "arn:aws:iam::123456789012:role/any"
MACHINE = {"StartAt": "End", "States": {"End": {"Type": "Succeed"}}}
BLOCK = re.compile(r"```python\n# (\S+)\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def blocks() -> Mapping[str, str]:
    text = (ROOT / "functions" / "jobs" / "README.md").read_text(encoding="utf-8")
    found = dict(BLOCK.findall(text))
    assert len(found) == text.count("```python"), "each block begins with the name of its file"
    return found


def test_the_tests_that_it_shows_pass_on_the_jobs_that_it_shows(blocks: Mapping[str, str], tmp_path: Path) -> None:
    modules = {Path(name).stem: text for name, text in blocks.items() if name.startswith("functions/jobs/")}
    root = a_user_project(tmp_path, "", **modules)
    tests = [name for name in blocks if name.startswith("tests/")]
    for name in tests:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(blocks[name])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", *tests]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)

    assert re.search(r"^2 passed", ran.stdout, re.MULTILINE), ran.stdout + ran.stderr


def test_the_other_job_that_it_shows_starts_one_execution_and_sends_one_report(
    blocks: Mapping[str, str], moto_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    receiver = Receiver(honours_keys=False)
    mailer = SimpleNamespace(send=receiver.call("report"), sent=receiver.find)
    monkeypatch.setattr(jobs, "mailer", mailer, raising=False)
    with closing(aws.client("stepfunctions")) as workflows:
        made = workflows.create_state_machine(name="cleanup", definition=json.dumps(MACHINE), roleArn=ROLE)
        machine = made["stateMachineArn"]
        monkeypatch.setattr(jobs, "servers", SimpleNamespace(cleanup=lambda: machine), raising=False)
        shown: dict[str, Any] = {}
        exec(blocks["functions/jobs/cleanup.py"], shown)

        ended = Harness(shown["main"], receiver).run(crash_at="report applied")

        assert ended.state == "succeeded", ended.reason
        assert receiver.times("report") == 1, "found at the receiver, and not sent again"
        assert len(workflows.list_executions(stateMachineArn=machine)["executions"]) == 1
