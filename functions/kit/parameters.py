"""A stage's settings in SSM, `/splitshift/<stage>/<name>`: how the command line and the loop mode find an installation.

The parameter `inventory-table` is the environment variable SPLITSHIFT_INVENTORY_TABLE.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_ssm import SSMClient

_PREFIX = "SPLITSHIFT_"

STAGE_NAME = re.compile(r"[a-z][a-z0-9]{0,15}")
"""Without a hyphen, so that there is no doubt which stage a name with one belongs to."""
NO_STAGE_NAME = "is no name for a stage: write at most 16 of a-z and 0-9, starting with a letter"


def folder(stage: str) -> str:
    return f"/splitshift/{stage}"


def read(client: SSMClient, stage: str) -> dict[str, str]:
    """The stage's settings as environment variables; empty where there is no such installation."""
    found: dict[str, str] = {}
    pages = client.get_paginator("get_parameters_by_path").paginate(Path=folder(stage), Recursive=False)
    for page in pages:
        for parameter in page["Parameters"]:
            name = parameter.get("Name", "").rpartition("/")[2]
            found[variable(name)] = parameter.get("Value", "")
    return found


def write(client: SSMClient, stage: str, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        client.put_parameter(Name=f"{folder(stage)}/{parameter(name)}", Value=value, Type="String", Overwrite=True)


def variable(name: str) -> str:
    return _PREFIX + name.upper().replace("-", "_")


def parameter(name: str) -> str:
    return name.removeprefix(_PREFIX).lower().replace("_", "-")
