"""One deployed stage for all tests that ask for it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from functions.local.cdk import Cdk
from functions.local.ministack import NotInstalledError, environment
from tests.support.deployed import ROOT, Up, brought_up


@pytest.fixture(scope="session")
def installed() -> None:
    """ministack and the CDK; where they cannot be installed, the tests are skipped and the summary says so."""
    try:
        environment(ROOT / ".cache")
        Cdk.installed(ROOT)
    except NotInstalledError as error:
        sentence = f"not run: the deployed stack needs ministack and the CDK ({error})"
        if {os.environ.get(f"SPLITSHIFT_TESTS_NEED_{what}") for what in ("CDK", "MINISTACK")} != {None}:
            pytest.fail(sentence, pytrace=False)
        pytest.skip(sentence)


@pytest.fixture(scope="session")
def up(installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Brought up by `splitshift up`, and gone after `splitshift down`."""
    with brought_up(tmp_path_factory.mktemp("up") / "project") as made:
        yield made
