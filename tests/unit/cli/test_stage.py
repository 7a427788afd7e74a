"""Which installation a command talks to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest

from functions.cli.stage import NoInstallationError, find_stage

if TYPE_CHECKING:
    from pathlib import Path


def test_a_stage_asked_for_without_a_region_says_where_to_write_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(NoInstallationError, match="prod cannot be reached: NoRegionError: write --region"):
        find_stage("prod", root=tmp_path)


@pytest.mark.parametrize("name", ["Bad Stage!", "prod/eu", "a" * 17, ""])
def test_what_is_no_name_for_a_stage_is_told_before_anybody_is_asked(name: str, tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="is no name for a stage: write at most 16 of a-z and 0-9"):
        find_stage(name, root=tmp_path)
