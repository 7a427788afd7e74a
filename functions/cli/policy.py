"""`splitshift policy`: what somebody who uses the command line on a stage must be allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import click

from functions.cli.common import emit_json, json_option
from functions.cli.display import region
from functions.cli.permissions import DRILLS, OPERATOR, PARAMETERS, READER, RECEIVER, Permission
from functions.cli.stage import Stage, find_stage, stage_options
from functions.kit import parameters
from functions.kit.function_url import is_function_url
from functions.records.stores import table_names


@click.command(short_help="The IAM policy that a reader or an operator of a stage needs.")
@click.option(
    "--read-only", is_flag=True, help="For who only looks: status, report, units, show, audit and their like."
)
@stage_options
@json_option
def command(*, read_only: bool, as_json: bool, **where_to_look: Any) -> None:
    """The IAM policy that a person needs at the command line of a stage: an operator, or with --read-only a reader.

    Exact actions on this stage's own tables and parameters.  Print it again after a restore, which makes new tables.
    Deploying is the CDK's and not in it, nor are `run` and `invoke`, which do a role's work with your credentials.

    \b
    Examples:
      splitshift policy --stage prod --read-only
      splitshift policy --stage prod > operator.json
      aws iam create-policy --policy-name splitshift-prod-operator --policy-document file://operator.json
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    del as_json  # it is JSON anyway
    emit_json(document(find_stage(**where_to_look), read_only=read_only))


def document(stage: Stage, *, read_only: bool) -> dict[str, Any]:
    """An identity policy.  Only the resources that the stage has are named in it."""
    receiver = not read_only and is_function_url(stage.receiver_url or "")
    permissions = READER if read_only else (*OPERATOR, *DRILLS) if receiver else OPERATOR
    return {"Version": "2012-10-17", "Statement": _statements(permissions, _arns(stage))}


def _statements(permissions: Sequence[Permission], arns: Mapping[str, str]) -> list[dict[str, Any]]:
    """One for each resource, and for each condition."""

    def together(one: Permission) -> tuple[str, str]:
        return one.resource, str(one.condition)

    return [
        {
            "Effect": "Allow",
            "Action": [one.action for one in of_one],
            "Resource": arns[of_one[0].resource],
            **({"Condition": of_one[0].condition} if of_one[0].condition else {}),
        }
        for of_one in (list(group) for _, group in groupby(sorted(permissions, key=together), key=together))
    ]


def _arns(stage: Stage) -> dict[str, str]:
    partition, of_stage = stage.identity.split(":")[1], f"{region(stage)}:{stage.account}"
    tables = {
        name: f"arn:{partition}:dynamodb:{of_stage}:table/{physical}"
        for name, physical in table_names(stage.settings).items()
    }
    indexes = {one.resource: one.resource.split("/") for one in OPERATOR if "/" in one.resource}
    return {
        **tables,
        **{resource: f"{tables[table]}/index/{index}" for resource, (table, index) in indexes.items()},
        PARAMETERS: f"arn:{partition}:ssm:{of_stage}:parameter{parameters.folder(stage.name)}",
        RECEIVER: f"arn:{partition}:lambda:{of_stage}:function:splitshift-{stage.name}-{RECEIVER}",
    }
