"""One stage, as its stacks see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import aws_cdk as cdk
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from functions.kit.parameters import folder, parameter
from functions.schedules.definitions import Definitions, for_stage
from infra.assets import Assets
from infra.config import StageConfig
from infra.naming import Names


@dataclass(frozen=True, kw_only=True)
class Stage:
    """`definitions` are those of all stages, as they go into the assets."""

    name: str
    config: StageConfig
    assets: Assets
    definitions: Definitions

    @property
    def names(self) -> Names:
        return Names(stage=self.name)

    @cached_property
    def own(self) -> Definitions:
        """The jobs of this stage only."""
        return for_stage(self.definitions, self.name)

    @property
    def pools(self) -> tuple[str, ...]:
        return tuple(sorted(self.definitions.pools))


class StageStack(cdk.Stack):
    """A stack of a stage: where it goes, and what it is called."""

    def __init__(self, scope: Construct, part: str, stage: Stage, *, protected: bool = False) -> None:
        super().__init__(
            scope,
            stage.names.of(part),
            env=cdk.Environment(account=stage.config.account, region=stage.config.region),
            synthesizer=cdk.DefaultStackSynthesizer(qualifier=stage.config.qualifier),
            termination_protection=protected,
        )
        self.stage = stage

    def tell(self, settings: Mapping[str, str]) -> None:
        """Write environment variables where the command line and the other stacks look for them, by their names."""
        for variable, value in settings.items():
            self.tell_as(parameter(variable), value)

    def tell_as(self, name: str, value: str) -> None:
        path = f"{folder(self.stage.name)}/{name}"
        ssm.StringParameter(self, f"tell-{name}", parameter_name=path, string_value=value)
