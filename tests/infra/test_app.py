"""The app as a whole: what it needs, that its stacks are independent, and the rules that templates are held to."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.infra.environment import ROOT, alone
from tests.infra.synthesis import PARTS, Synthesis

STAGES = ("prod", "dev", "trial", "bare")
DRILLS = "splitshift-trial-drills"

AGAINST_THE_RULES = """
import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from infra import nag
app = cdk.App(analytics_reporting=False)
nag.check(app)
sqs.Queue(cdk.Stack(app, "planted"), "queue")
app.synth()
"""


def test_stacks_are_synthesised_without_account_network_git_docker_and_uv_and_pass_cdk_nag(
    synthesis: Synthesis,
) -> None:
    assert synthesis.returncode == 0, synthesis.said
    assert not synthesis.said, "CDK's own checks of the templates warn here"
    assert {path.name for path in synthesis.out.glob("*.template.json")} == {
        f"{DRILLS}.template.json",
        *(f"splitshift-{stage}-{part}.template.json" for stage in STAGES for part in PARTS),
    }


@pytest.mark.slow
def test_a_finding_of_cdk_nag_that_nobody_acknowledged_ends_the_synthesis(cdk_python: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [cdk_python, "-c", AGAINST_THE_RULES],
        cwd=ROOT,
        env=alone(cdk_python, CDK_OUTDIR=str(tmp_path / "out")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "AwsSolutions-SQS4" in (tmp_path / "out" / "validation-report.json").read_text()


@pytest.mark.slow
def test_templates_pass_cfn_lint(synthesis: Synthesis, cdk_python: Path) -> None:
    # Of the stages, prod has every kind of resource that the others have, but for the drills'.
    stacks = [DRILLS, *(f"splitshift-prod-{part}" for part in PARTS)]
    templates = [str(synthesis.out / f"{stack}.template.json") for stack in stacks]
    done = subprocess.run(
        # W3005: a dependency said twice.  CDK's functions wait for their role by name and by reference.
        [cdk_python.parent / "cfn-lint", "--regions", "eu-central-1", "--ignore-checks", "W3005", "--", *templates],
        env=alone(cdk_python),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("stage", STAGES)
def test_no_stack_exports_or_imports_so_each_can_go_without_the_others(synthesis: Synthesis, stage: str) -> None:
    for template in synthesis.whole(stage):
        assert "Outputs" not in template.document
        assert "Fn::ImportValue" not in json.dumps(template.document)


def test_every_stack_waits_for_the_records_and_for_nothing_else(synthesis: Synthesis) -> None:
    artifacts = json.loads((synthesis.out / "manifest.json").read_text())["artifacts"]
    needed = {
        part: {name for name in artifacts[f"splitshift-prod-{part}"]["dependencies"] if not name.endswith(".assets")}
        for part in PARTS
    }
    after_the_records = {"splitshift-prod-records"}
    assert needed == {
        "records": set(),
        "scheduler": after_the_records,
        "worker": after_the_records,
        "monitor": after_the_records,
    }


def test_two_stages_share_no_name(synthesis: Synthesis) -> None:
    keys = ("FunctionName", "QueueName", "TopicName", "AlarmName", "Name", "LogGroupName", "DashboardName")

    def names(stage: str) -> set[tuple[str, str]]:
        return {
            (resource["Type"], value)
            for template in synthesis.whole(stage)
            for resource in template.resources.values()
            for key in keys
            if isinstance(value := resource.get("Properties", {}).get(key), str)
        }

    assert names("prod")
    assert names("dev")
    assert not names("prod") & names("dev")


def test_resources_carry_stage_cost_centre_and_pool_as_tags(synthesis: Synthesis) -> None:
    worker = synthesis.template("prod", "worker")
    queue = worker.one("AWS::SQS::Queue", QueueName="splitshift-prod-heavy")
    tags = {tag["Key"]: tag["Value"] for tag in queue["Tags"]}
    assert tags == {"splitshift-stage": "prod", "splitshift-pool": "heavy", "cost-centre": "4711", "team": "payments"}


def test_a_permissions_boundary_is_put_on_every_role_and_only_where_it_is_configured(synthesis: Synthesis) -> None:
    def bounded(stage: str) -> set[bool]:
        roles = [role for template in synthesis.whole(stage) for role in template.properties("AWS::IAM::Role")]
        assert roles
        return {"PermissionsBoundary" in role for role in roles}

    assert bounded("prod") == {True}
    assert bounded("dev") == {False}


def test_the_bootstrap_qualifier_of_the_stage_is_used(synthesis: Synthesis) -> None:
    assert "cdk-mine-" in (synthesis.out / "splitshift-dev-records.assets.json").read_text()
    assert "cdk-hnb659fds-" in (synthesis.out / "splitshift-prod-records.assets.json").read_text()


def test_only_a_protected_stage_keeps_its_records_stack_from_being_deleted(synthesis: Synthesis) -> None:
    artifacts = json.loads((synthesis.out / "manifest.json").read_text())["artifacts"]
    protected = {
        name for name, artifact in artifacts.items() if artifact.get("properties", {}).get("terminationProtection")
    }
    assert protected == {"splitshift-prod-records"}
