"""cdk-nag's AWS Solutions rules, on every synth; what we do otherwise stands where we do it, with its reason."""

from __future__ import annotations

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks
from constructs import IConstruct


def check(app: cdk.App) -> None:
    """A finding that nobody has acknowledged ends the synthesis."""
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))


def acknowledge(construct: IConstruct, finding: str, reason: str) -> None:
    cdk.Validations.of(construct).acknowledge(cdk.Acknowledgment(id=finding, reason=reason))
