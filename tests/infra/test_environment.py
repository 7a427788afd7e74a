"""Where the CDK comes from when a test needs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.infra import conftest, environment


def test_without_an_installation_a_test_is_skipped_with_a_sentence_and_fails_where_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = environment.environment
    monkeypatch.setattr(environment, "here", lambda: False)
    monkeypatch.setattr(environment, "environment", lambda: make(tmp_path))
    monkeypatch.setenv("UV", str(tmp_path / "no-uv"))
    monkeypatch.delenv("SPLITSHIFT_TESTS_NEED_CDK", raising=False)
    with pytest.raises(pytest.skip.Exception, match="not run: the stacks need the AWS CDK, which could not be"):
        conftest.interpreter()
    monkeypatch.setenv("SPLITSHIFT_TESTS_NEED_CDK", "1")
    with pytest.raises(pytest.fail.Exception, match="could not be installed"):
        conftest.interpreter()
