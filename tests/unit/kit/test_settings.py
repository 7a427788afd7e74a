from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from functions.kit.dataclass import dataclass
from functions.kit.settings import SettingError, Settings, setting


@dataclass(frozen=True, kw_only=True)
class RoleSettings(Settings):
    queue: str = setting("QUEUE")
    batch: int = setting("BATCH", 10)
    ratio: float = setting("RATIO", 0.5)
    strict: bool = setting("STRICT", default=False)


def test_settings_are_read_from_their_variables_and_converted() -> None:
    read = RoleSettings.from_env(
        {
            "QUEUE": "https://q",
            "BATCH": "7",
            "RATIO": "0.25",
            "STRICT": "Yes",
            "SPLITSHIFT_STAGE": "prod",
            "SPLITSHIFT_DEFINITIONS": "/opt/d.json",
            "SPLITSHIFT_SKEW_SECONDS": "1.5",
        }
    )

    assert read == RoleSettings(
        queue="https://q",
        batch=7,
        ratio=0.25,
        strict=True,
        stage="prod",
        definitions=Path("/opt/d.json"),
        skew=timedelta(seconds=1.5),
    )


def test_what_is_not_set_or_empty_has_its_default() -> None:
    read = RoleSettings.from_env({"QUEUE": "q", "BATCH": "", "STRICT": "0"})

    assert (read.batch, read.ratio, read.strict, read.stage, read.skew) == (
        10,
        0.5,
        False,
        "local",
        timedelta(seconds=5),
    )


def test_the_environment_is_read_when_asked_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUEUE", "later")

    assert RoleSettings.from_env().queue == "later"


@pytest.mark.parametrize("environment", [{}, {"QUEUE": ""}])
def test_a_missing_variable_is_named(environment: dict[str, str]) -> None:
    with pytest.raises(SettingError, match="QUEUE is not set"):
        RoleSettings.from_env(environment)


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("BATCH", "ten"),
        ("BATCH", "1.5"),
        ("RATIO", "half"),
        ("STRICT", "ture"),
        ("SPLITSHIFT_SKEW_SECONDS", "5s"),
        ("SPLITSHIFT_SKEW_SECONDS", "inf"),
        ("SPLITSHIFT_SKEW_SECONDS", "nan"),
    ],
)
def test_a_variable_that_cannot_be_read_is_named(variable: str, text: str) -> None:
    with pytest.raises(SettingError, match=f"{variable} cannot be read"):
        RoleSettings.from_env({"QUEUE": "q", variable: text})


def test_a_role_tells_its_variables_and_which_are_required() -> None:
    assert RoleSettings.variables() == {
        "SPLITSHIFT_STAGE": False,
        "SPLITSHIFT_DEFINITIONS": False,
        "SPLITSHIFT_SKEW_SECONDS": False,
        "QUEUE": True,
        "BATCH": False,
        "RATIO": False,
        "STRICT": False,
    }
