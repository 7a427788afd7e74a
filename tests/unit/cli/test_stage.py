"""Which installation a command talks to."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
