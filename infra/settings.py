"""Environment variables of functions, by the fields of their settings classes: no name stands here a second time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields

from functions.kit.settings import Settings
from functions.records.tables import Table


class NotASettingError(Exception):
    """A stack gives a function what it does not read, or not what it needs."""


def environment(settings: type[Settings], tables: Iterable[tuple[Table, str]], **values: str) -> dict[str, str]:
    """Of one function: its settings by field, and the names of the tables that it may touch.

    Raises NotASettingError for a field that there is not.
    """
    variables = variables_by_field(settings)
    for field in values:
        if field not in variables:
            raise NotASettingError(f"{settings.__name__} has no {field}")
    return {variables[field]: value for field, value in values.items()} | {
        table.variable: name for table, name in tables
    }


def complete(settings: type[Settings], given: Mapping[str, str]) -> Mapping[str, str]:
    """The same, once everything that has no default is there.  Raises NotASettingError."""
    missing = [variable for variable, required in settings.variables().items() if required and variable not in given]
    if missing:
        raise NotASettingError(f"{settings.__name__} needs {', '.join(missing)}")
    return given


def variables_by_field(settings: type[Settings]) -> dict[str, str]:
    return dict(zip((field.name for field in fields(settings)), settings.variables(), strict=True))
