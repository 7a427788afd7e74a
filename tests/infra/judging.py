"""A policy engine that says what IAM would: @cloud-copilot/iam-simulate, pinned in iam_simulate/.

Not the `SimulateCustomPolicy` of our emulator, ministack: it takes no context keys and no resource policy, so that it
allows a heartbeat's writer every row, and everybody to change the journal.  The engine knows from AWS's service
reference which kinds of resource and which condition keys an action has, and will not judge a request with others.

It is licensed under the AGPL, so it is neither shipped nor imported: a process of its own asks it.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from functions.local.ministack.environment import run_installer
from tests.infra.environment import CACHE, alone
from tests.infra.policies import ACCOUNT

FOLDER = Path(__file__).with_name("iam_simulate")
_PACKAGE = "@cloud-copilot/iam-simulate"


class Verdict(StrEnum):
    ALLOWED = "Allowed"
    NOT_ALLOWED = "ImplicitlyDenied"
    DENIED = "ExplicitlyDenied"


@dataclass(frozen=True, order=True, kw_only=True)
class Request:
    """`principal` and `resource` are ARNs, `*` where the action has no resource.

    `key` is the item's partition key as `dynamodb:LeadingKeys` tells it, empty where the request tells none.
    `context` are other condition keys; that the call comes by TLS is one of every request, unless it says otherwise.
    `account` is whose the resource is.
    """

    principal: str
    action: str
    resource: str
    key: str = ""
    context: tuple[tuple[str, str], ...] = ()
    account: str = ACCOUNT

    def as_document(self) -> dict[str, Any]:
        context: dict[str, Any] = {"aws:SecureTransport": "true", **dict(self.context)}
        if self.key:
            context["dynamodb:LeadingKeys"] = [self.key]
        return {
            "principal": self.principal,
            "account": self.account,
            "action": self.action,
            "resource": self.resource,
            "context": context,
        }


@dataclass(frozen=True, kw_only=True)
class Engine:
    """`python` has Node beside it."""

    python: Path

    @classmethod
    def installed(cls, python: Path) -> Engine:
        """As locked, on first use; safe to call from several test runs at once.  Raises NotInstalledError."""
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / "iam-simulate.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _found() != _pinned():
                _install(python)
        return cls(python=python)

    def judge(
        self,
        requests: Iterable[Request],
        *,
        principals: Mapping[str, Sequence[Any]],
        resource_policies: Mapping[str, Any],
    ) -> dict[Request, Verdict]:
        """`principals` are identity policies by ARN, `resource_policies` one each by ARN.

        Fails where a policy or request is none that AWS knows.
        """
        asked = list(dict.fromkeys(requests))
        document = {
            "principals": principals,
            "resourcePolicies": resource_policies,
            "requests": [one.as_document() for one in asked],
        }
        done = subprocess.run(
            [self.python.parent / "node", FOLDER / "judge.mjs"],
            input=json.dumps(document),
            env=alone(self.python),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return {one: Verdict(said) for one, said in zip(asked, json.loads(done.stdout), strict=True)}


def _pinned() -> str:
    return json.loads((FOLDER / "package.json").read_text())["devDependencies"][_PACKAGE]


def _found() -> str | None:
    try:
        return json.loads((FOLDER / "node_modules" / _PACKAGE / "package.json").read_text())["version"]
    except (OSError, ValueError, KeyError):
        return None


def _install(python: Path) -> None:
    command = [str(python.parent / "npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(FOLDER)]
    run_installer(command, variables={"PATH": os.pathsep.join((str(python.parent), os.environ.get("PATH", "")))})
