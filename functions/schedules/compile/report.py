"""What is wrong in a job file, as one line for a person: where, what, and what to write."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from functions.kit.dataclass import dataclass
from functions.schedules.compile.fields import keys_at
from functions.schedules.rules import Refused, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails


@dataclass(frozen=True, kw_only=True)
class Error:
    """`job` and `field` are None where the mistake belongs to no single one; `line` counts from 1."""

    file: str
    line: int
    job: str | None
    field: str | None
    message: str
    fix: str


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A refused value: `path` leads from the table that was validated to the offending key."""

    path: tuple[str | int, ...]
    message: str
    fix: str

    @property
    def field(self) -> str:
        return ".".join(str(part) for part in self.path)


def problems(error: ValidationError, model: type[BaseModel]) -> Iterator[Problem]:
    for detail in error.errors(include_url=False):
        path = tuple(detail["loc"])
        refused = detail.get("ctx", {}).get("error")
        if isinstance(refused, Refused):
            yield from (Problem(path=path, message=one.message, fix=one.fix) for one in (refused, *refused.others))
        else:
            message, fix = _said(detail, model)
            yield Problem(path=path, message=message, fix=fix)


def _said(detail: ErrorDetails, model: type[BaseModel]) -> tuple[str, str]:
    value, limits = shown(detail["input"]), detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            known = keys_at(model, detail["loc"][:-1])
            near = difflib.get_close_matches(str(detail["loc"][-1]), known, n=1, cutoff=0.6)
            return "is not a known field", f"write {near[0]}" if near else "leave it out"
        case "bool_type":
            return f"must be true or false, not {value}", "write true or false, without quotes"
        case "int_type" | "int_from_float" | "int_parsing_size":
            return f"must be a whole number, not {value}", "write digits only, without quotes"
        case "greater_than_equal":
            return f"{value} is too small", f"write {limits['ge']} or more"
        case "less_than_equal":
            return f"{value} is too large", f"write {limits['le']} or less"
        case "model_type" | "dict_type":
            keys = ", ".join(keys_at(model, detail["loc"]))
            return f"must be a table, not {value}", "write { key = value }" + (f", with {keys}" if keys else "")
        case _:
            return f"{value} is refused: {detail['msg']}", "write a value of the right type"
