"""Commands as a shell calls them, on a stage that stands in the emulator and in which no role runs."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from functions.cli import main as cli
from functions.cli.stage import find_stage
from functions.kit import aws, parameters
from functions.local.installation import LOCAL_SETTINGS
from functions.local.places import LocalInstallation, Places
from functions.local.provision import create_tables
from functions.records.inventory import Row, from_item
from functions.records.tables import INVENTORY, TABLES
from functions.schedules.compile import write_definitions
from tests.support.project import a_project


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


def runner(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            cli.main(list(arguments))
        captured = capsys.readouterr()
        code = ended.value.code
        return Ran(code if isinstance(code, int) else 0, captured.out, captured.err)

    return call


@contextmanager
def installed_at(folder: Path, endpoint: str, jobs: str, *, local: bool = True, **settings: str) -> Generator[Path]:
    """A project whose stage has tables, settings and definitions; no role runs.

    One that is not local is found by its name, SPLITSHIFT_STAGE, as a stage in an account is.
    """
    project = a_project(folder)
    project.write(jobs)
    stage = f"t{uuid.uuid4().hex[:10]}"
    installation = LocalInstallation(endpoint=endpoint, receiver="http://127.0.0.1:9", pid=os.getpid(), stage=stage)
    places = Places(project.root)
    places.make()
    with pytest.MonkeyPatch.context() as patch, places.held():
        for name, value in installation.environment().items():
            patch.setenv(name, value)
        names = create_tables(aws.client("dynamodb"), f"{stage}-")
        tables = {table.variable: names[table.name] for table in TABLES}
        parameters.write(aws.client("ssm"), stage, tables | LOCAL_SETTINGS | settings)
        write_definitions(project.compile().document, places.definitions)
        if local:
            places.save(installation)
        yield project.root


def rows() -> dict[str, Row]:
    found = find_stage(None)
    return {item["unit_id"]: from_item(item) for item in found.stores.database.scan(INVENTORY.name)}
