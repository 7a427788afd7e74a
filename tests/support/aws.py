"""Clients and handlers against an emulator."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import boto3
import pytest

from functions.local.provision import create_tables
from functions.records.tables import TABLES
from functions.schedules.definitions import Job, Pool

EVENTS = Path(__file__).parents[2] / "events"


class Context:
    """What Lambda hands to a handler, as far as ours look at it."""

    def __init__(self, remaining_s: int = 60) -> None:
        self._remaining_s = remaining_s

    def get_remaining_time_in_millis(self) -> int:
        return self._remaining_s * 1000


def sample(name: str) -> dict[str, Any]:
    return json.loads((EVENTS / f"{name}.json").read_text())


def client(service: str, endpoint: str) -> Any:
    return cast("Any", boto3).client(service, endpoint_url=endpoint)


def installation(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> dict[str, str]:
    """Tables of their own, and the environment in which a handler finds them; logical to physical names."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    names = create_tables(client("dynamodb", endpoint), f"{uuid.uuid4().hex[:8]}-")
    for table in TABLES:
        monkeypatch.setenv(table.variable, names[table.name])
    return names


def document(*jobs: Job) -> dict[str, Any]:
    """The compiled form of these jobs, as functions load it."""
    stored = {one.name: {name: value for name, value in asdict(one).items() if name != "name"} for one in jobs}
    pool = {name: value for name, value in asdict(Pool()).items() if name != "name"}
    return json.loads(json.dumps({"schema": 1, "version": "v1", "jobs": stored, "pools": {"default": pool}}))
