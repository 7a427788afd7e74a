"""The CDK app: every stage of stages.toml, four stacks each, and one more where a stage asks for it.

    python -m infra.app [--stages FILE] [--root FOLDER]

Needs no account, no network, no git and no Docker.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam

from functions.schedules.compile import compile_jobs
from functions.schedules.definitions import parse
from infra import nag
from infra.assets import Assets
from infra.config import ConfigurationError, StageConfig, load
from infra.dependencies import AssetError
from infra.drill_stack import DrillStack
from infra.limits import exceeded
from infra.monitor_stack import MonitorStack
from infra.records_stack import RecordsStack
from infra.scheduler_stack import SchedulerStack
from infra.stage import Stage
from infra.worker_stack import WorkerStack

ROOT = Path(__file__).parents[1]
STAGES = ROOT / "infra" / "stages.toml"
BUILT = ROOT / ".cache" / "assets"


def add_stage(app: cdk.App, stage: Stage) -> None:
    """Four stacks that share nothing but names and SSM parameters: each can be deployed and removed by itself."""
    records = RecordsStack(app, stage)
    others = (SchedulerStack(app, stage), WorkerStack(app, stage), MonitorStack(app, stage))
    for stack in others:
        stack.add_stack_dependency(records, "it looks the tables up by the parameters that the records write")
    drills = [DrillStack(app, stage)] if stage.config.drill_stack else []
    for stack in drills:
        for other in others:
            other.add_stack_dependency(stack, "it sends to the receiver of drills, or asks it to be told")
    for stack in (records, *drills, *others):
        _tag(stack, stage.name, stage.config)
        _bound(stack, stage.config)


def _tag(stack: cdk.Stack, name: str, config: StageConfig) -> None:
    own = {"splitshift-stage": name} | ({"cost-centre": config.cost_centre} if config.cost_centre else {})
    for key, value in (config.tags | own).items():
        cdk.Tags.of(stack).add(key, value)


def _bound(stack: cdk.Stack, config: StageConfig) -> None:
    boundary = config.permissions_boundary
    if boundary is None:
        return
    if boundary.startswith("arn:"):
        policy = iam.ManagedPolicy.from_managed_policy_arn(stack, "boundary", boundary)
    else:
        policy = iam.ManagedPolicy.from_managed_policy_name(stack, "boundary", boundary)
    iam.PermissionsBoundary.of(stack).apply(policy)


def stages_of(root: Path, file: Path) -> Mapping[str, Stage]:
    """Raises ConfigurationError for whatever is wrong with job files or stages."""
    compiled = compile_jobs(root)
    if compiled.errors:
        lines = (
            f"{error.file}:{error.line} {error.job or ''} {error.message}: {error.fix}" for error in compiled.errors
        )
        raise ConfigurationError("\n".join(lines))
    definitions = parse(compiled.document)
    if definitions.bad:
        raise ConfigurationError(
            "\n".join(f"{bad.job} would be refused by every role: {bad.message}" for bad in definitions.bad)
        )
    assets = Assets(root=ROOT, project=root, out=BUILT, document=compiled.document)
    stages = {
        name: Stage(name=name, config=config, assets=assets, definitions=definitions)
        for name, config in load(file, definitions.pools).items()
    }
    if too_much := [line for stage in stages.values() for line in exceeded(stage.name, stage.own)]:
        raise ConfigurationError("\n".join(dict.fromkeys(too_much)))
    return stages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--stages", type=Path, default=STAGES)
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder that holds functions/jobs")
    options = parser.parse_args()
    app = cdk.App(analytics_reporting=False)
    nag.check(app)
    try:
        for stage in stages_of(options.root, options.stages).values():
            add_stage(app, stage)
    except (ConfigurationError, AssetError) as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
