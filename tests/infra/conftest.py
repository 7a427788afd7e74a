"""The templates, synthesised once per session; whoever asks for them is marked `cdk`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

from functions.local.ministack import NotInstalledError
from tests.infra import environment
from tests.infra.judging import Engine
from tests.infra.synthesis import Synthesis, synthesise

_NEEDS_CDK = {"cdk_python", "synthesis", "engine"}
# jsii compiles half a gigabyte of modules on its first start, on a machine that may be busy.
_TIMEOUT_S = 1200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _NEEDS_CDK.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("cdk")
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))


@pytest.fixture(scope="session")
def cdk_python() -> Path:
    """An interpreter with the CDK.

    Without a network to install it from, tests that ask for it are skipped and the summary says so; with
    `SPLITSHIFT_TESTS_NEED_CDK=1` they fail instead, so that no gate is passed by skipping.
    """
    return interpreter()


def interpreter() -> Path:
    try:
        return environment.environment()
    except environment.NotInstalledError as error:
        not_run(f"the stacks need the AWS CDK, which could not be installed ({error})")


def not_run(reason: str) -> NoReturn:
    if os.environ.get("SPLITSHIFT_TESTS_NEED_CDK") == "1":
        pytest.fail(f"not run: {reason}", pytrace=False)
    pytest.skip(f"not run: {reason}")


@pytest.fixture(scope="session")
def synthesis(cdk_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    return synthesise(cdk_python, tmp_path_factory.mktemp("infra"))


@pytest.fixture(scope="session")
def engine(cdk_python: Path) -> Engine:
    """Skipped or failed like `cdk_python`."""
    try:
        return Engine.installed(cdk_python)
    except NotInstalledError as error:
        not_run(f"policies need an engine from npm, which could not be installed ({error})")
