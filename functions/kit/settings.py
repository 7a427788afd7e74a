"""Settings of a role: environment variables, read when a handler is built and never at import.

The names of the variables stand in the fields of the settings classes; the stacks and the loop mode read them there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any, Self, get_type_hints

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError

_VARIABLE = "variable"


class SettingError(FinalError):
    """A variable is missing or cannot be read; the message names it."""


def setting(variable: str, default: Any = MISSING) -> Any:
    """A field that is read from this variable; without a default it is required."""
    if default is MISSING:
        return field(metadata={_VARIABLE: variable})
    return field(default=default, metadata={_VARIABLE: variable})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The base of each role's settings."""

    stage: str = setting("SPLITSHIFT_STAGE", "local")
    definitions: Path = setting("SPLITSHIFT_DEFINITIONS", Path("definitions.json"))
    skew: timedelta = setting("SPLITSHIFT_SKEW_SECONDS", timedelta(seconds=5))

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Raises SettingError for the first variable that is missing or cannot be read."""
        values = os.environ if environment is None else environment
        hints = get_type_hints(cls)
        read = {part.name: _read(part, hints[part.name], values) for part in fields(cls)}
        return cls(**read)

    @classmethod
    def variables(cls) -> dict[str, bool]:
        """Every variable of this role, and whether it is required."""
        return {part.metadata[_VARIABLE]: part.default is MISSING for part in fields(cls)}


def _read(part: Field[Any], kind: Any, values: Mapping[str, str]) -> Any:
    variable: str = part.metadata[_VARIABLE]
    text = values.get(variable)
    if not text:
        if part.default is MISSING:
            raise SettingError(f"{variable} is not set: run inside an installation, or set it")
        return part.default
    try:
        return _converted(text, kind)
    except (ValueError, OverflowError) as error:
        raise SettingError(f"{variable} cannot be read: {error}") from error


def _converted(text: str, kind: Any) -> Any:
    if kind is timedelta:
        return timedelta(seconds=float(text))
    if kind is bool:
        return _flag(text)
    if kind in {int, float, Path}:
        return kind(text)
    return text


def _flag(text: str) -> bool:
    if text.lower() in {"1", "true", "yes"}:
        return True
    if text.lower() in {"0", "false", "no"}:
        return False
    raise ValueError("write true or false")
