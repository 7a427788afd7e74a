"""Three stages of a small project, synthesised once by one process; tests read the templates it left."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.infra.environment import ROOT, alone
from tests.support.project import a_project

PARTS = ("records", "scheduler", "worker", "monitor")
POOLS = ("default", "heavy")
STAGES = """
    [stages.prod]                        # everything there is
    account                 = "111122223333"
    region                  = "eu-central-1"
    emails                  = ["oncall@example.com"]
    sms                     = ["+4915112345678"]
    https                   = ["https://example.com/splitshift"]
    last_resort_https       = ["https://example.com/last"]
    protected               = true
    customer_key            = true
    tracing                 = true
    cost_centre             = "4711"
    shards                  = 2
    endpoints               = ["heavy"]
    tags                    = { team = "payments" }
    permissions_boundary    = "developers"
    reserved_concurrency    = { scheduler = 2, heavy = 4 }

    [stages.dev]                         # to throw away
    removal   = "destroy"
    alarms    = "switches"
    dashboard = false
    drills    = true
    receiver  = "https://drills.example.com"
    ping      = "ssm:/outside/ping"
    log_days  = 7
    qualifier = "mine"

    [stages.trial]                       # where drills are counted in the account
    removal     = "destroy"
    alarms      = "none"
    dashboard   = false
    drills      = true
    drill_stack = true

    [stages.bare]                        # for emulators, which know no metric math
    removal   = "destroy"
    alarms    = "none"
    dashboard = false
"""
POOLS_TOML = """
    [pools.default]

    [pools.heavy]
    timeout         = "5m"
    memory          = 1024
    batch           = 5
    max_concurrency = 4
    environment     = { BILLING_URL = "https://billing.example.com" }
    secrets         = { TOKEN = "ssm:/billing/token", PASSWORD = "secretsmanager:billing/password" }

    [pools.heavy.vpc]
    id              = "vpc-0123abcd"
    subnets         = ["subnet-0123abcd"]
    security_groups = ["sg-0123abcd"]
    route_tables    = ["rtb-0123abcd"]
"""
JOBS_TOML = """
    [defaults]
    owner = "payments"

    [jobs.nightly]
    schedule = "0 2 * * *"
    run      = "work:main"

    [jobs.invoices]
    schedule     = "0 3 * * *"
    run          = "work:main"
    pool         = "heavy"
    max_duration = "2m"
    permissions  = ["s3:GetObject arn:aws:s3:::invoices/*", "s3:PutObject arn:aws:s3:::reports/*"]

    [jobs.only-in-dev]
    schedule    = "0 4 * * *"
    run         = "work:main"
    stages      = ["dev"]
    permissions = ["s3:GetObject arn:aws:s3:::playground/*"]
"""


@dataclass(frozen=True, kw_only=True)
class Synthesis:
    returncode: int
    said: str
    out: Path

    def template(self, stage: str, part: str) -> Template:
        path = self.out / f"splitshift-{stage}-{part}.template.json"
        assert path.exists(), f"no template was written: {self.said}"
        return Template(json.loads(path.read_text()))

    def whole(self, stage: str) -> list[Template]:
        return [self.template(stage, part) for part in PARTS]


@dataclass(frozen=True)
class Template:
    document: Mapping[str, Any]

    @cached_property
    def resources(self) -> dict[str, Any]:
        return self.document["Resources"]

    def of_type(self, kind: str) -> dict[str, Any]:
        """Whole resources by logical id."""
        return {name: found for name, found in self.resources.items() if found["Type"] == kind}

    def properties(self, kind: str) -> list[dict[str, Any]]:
        return [found["Properties"] for found in self.of_type(kind).values()]

    def one(self, kind: str, **wanted: Any) -> dict[str, Any]:
        """The properties of the one resource that has these."""
        fits = [
            found for found in self.properties(kind) if all(found.get(key) == value for key, value in wanted.items())
        ]
        assert len(fits) == 1, f"{len(fits)} of {kind} with {wanted}"
        return fits[0]

    def text(self, value: Any) -> str:
        """A value with its functions spelled out: `<Name.Arn>`, `<AWS::Region>`, and SSM parameters by their names."""
        if isinstance(value, str):
            return value
        assert isinstance(value, dict), value
        (function, of), *_ = value.items()
        if function == "Ref":
            parameter = self.document.get("Parameters", {}).get(of)
            return f"<{parameter['Default']}>" if parameter else f"<{of}>"
        if function == "Fn::GetAtt":
            return f"<{'.'.join(of)}>"
        assert function == "Fn::Join", value
        return of[0].join(self.text(part) for part in of[1])

    def statements(self, role: str) -> Iterator[dict[str, Any]]:
        """What the role of that logical id is allowed, in its own policy and in those attached to it."""
        for policy in self.resources[role]["Properties"].get("Policies", []):
            yield from policy["PolicyDocument"]["Statement"]
        for policy in self.properties("AWS::IAM::Policy"):
            if {"Ref": role} in policy["Roles"]:
                yield from policy["PolicyDocument"]["Statement"]

    def role_of(self, function_name: str) -> str:
        function = self.one("AWS::Lambda::Function", FunctionName=function_name)
        return function["Role"]["Fn::GetAtt"][0]


def synthesise(python: Path, folder: Path) -> Synthesis:
    """Without account, network, git, Docker and uv."""
    project = a_project(folder / "project")
    project.write(POOLS_TOML, "pools.toml")
    project.write(JOBS_TOML)
    stages = folder / "stages.toml"
    stages.write_text(dedent(STAGES))
    out = folder / "cdk.out"
    done = subprocess.run(
        [python, "-m", "infra.app", "--stages", stages, "--root", project.root],
        cwd=ROOT,
        env=alone(python, CDK_OUTDIR=str(out)),
        capture_output=True,
        text=True,
        check=False,
    )
    return Synthesis(returncode=done.returncode, said=done.stdout + done.stderr, out=out)
