"""A JSON Schema of jobs.toml, for editors.  Its source is the tables that `check` validates with.

It knows types, choices and forms; what one look at one value cannot show is `check`'s.
"""

from __future__ import annotations

from typing import Any

from functions.schedules.compile.fields import JobFields
from functions.schedules.rules import in_words
from functions.schedules.zone_names import all_names

TITLE = "Splitshift: jobs.toml"


def jobs_schema() -> dict[str, Any]:
    tables = JobFields.model_json_schema(mode="validation")
    nested: dict[str, Any] = tables.pop("$defs")
    for table in (tables, *nested.values()):
        _tidy(table)
    tables["properties"]["timezone"]["enum"] = sorted(all_names())
    nested["Job"] = {**tables, "description": "A job.  What all jobs of a file share may stand under [defaults]."}
    job = {"$ref": "#/$defs/Job"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": TITLE,
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "defaults": {**job, "description": "For every job of this file."},
            "jobs": {
                "type": "object",
                "propertyNames": {"pattern": "^[a-z][a-z0-9-]{0,62}$"},
                "additionalProperties": job,
                "description": "By name: a-z, 0-9 and -, starting with a letter.",
            },
        },
        "$defs": nested,
    }


def _tidy(table: dict[str, Any]) -> None:
    """As a person writes it: durations as text, nothing that is refused, no default that says nothing."""
    table.pop("title", None)
    properties: dict[str, dict[str, Any]] = table["properties"]
    for name, field in list(properties.items()):
        field.pop("title", None)
        default = field.pop("default", None)
        if field.get("type") == "null":
            del properties[name]
        elif "pattern" in field and isinstance(default, int):
            field["default"] = in_words(default)
        elif isinstance(default, (bool, int)) or (default and isinstance(default, str)):
            field["default"] = default
