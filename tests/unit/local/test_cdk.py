"""The CDK's command line, as far as it says what it lacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from functions.local.cdk import Cdk, NotDeployedError
from functions.local.ministack import NotInstalledError

CDK = "infra/node_modules/aws-cdk"


@pytest.fixture
def cdk(tmp_path: Path) -> Cdk:
    """A project that pins a command line, and an npm that is out of reach of its registry."""
    write(tmp_path, "infra/package.json", json.dumps({"devDependencies": {"aws-cdk": "2.1.0"}}))
    script(tmp_path, "npm", "echo asked >> $(dirname $0)/asked; echo 'npm error network ENOTFOUND' >&2; exit 1")
    script(tmp_path, "node", 'echo "$2 with $1"; echo "no such stack" >&2; exit 1')
    return Cdk(python=tmp_path / "bin" / "python", project=tmp_path)


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def script(root: Path, name: str, text: str) -> None:
    write(root, f"bin/{name}", f"#!/bin/sh\n{text}\n").chmod(0o755)


def test_without_npms_registry_it_says_so_in_one_line(cdk: Cdk) -> None:
    with pytest.raises(NotInstalledError) as raised:
        cdk.install_command_line()
    assert "could not be installed from npm: check the network (npm error network ENOTFOUND)" in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(("found", "asked"), [("2.1.0", False), ("2.0.9", True), (None, True)])
def test_npm_is_asked_only_for_another_version_than_the_pinned(cdk: Cdk, found: str | None, asked: bool) -> None:  # noqa: FBT001
    if found:
        write(cdk.project, f"{CDK}/package.json", json.dumps({"version": found}))
    if asked:
        with pytest.raises(NotInstalledError):
            cdk.install_command_line()
    else:
        cdk.install_command_line()
    assert (cdk.project / "bin" / "asked").exists() is asked


def test_a_command_that_fails_is_told_with_its_last_words_and_where_all_stand(cdk: Cdk, tmp_path: Path) -> None:
    log = tmp_path / "cdk.log"
    log.write_text("of an earlier run\n")
    with pytest.raises(NotDeployedError) as raised:
        cdk.bootstrap({}, log, tmp_path)
    assert "cdk bootstrap failed" in str(raised.value)
    assert "no such stack" in str(raised.value)
    assert str(log) in str(raised.value)
    assert "earlier run" not in str(raised.value)


def test_outside_a_checkout_it_says_where_to_go(tmp_path: Path) -> None:
    with pytest.raises(NotInstalledError, match="run this in a checkout"):
        Cdk.installed(tmp_path)
