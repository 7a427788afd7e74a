"""No test reaches AWS: the environment of a test run knows no account, and every client leads nowhere until told."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import MutableMapping

REGION = "eu-central-1"
NOWHERE = "http://127.0.0.1:9"
"""Port 9, "discard": nobody listens, so a client without an endpoint of its own fails at once."""


def isolate(environ: MutableMapping[str, str]) -> None:
    """Take every AWS and Splitshift setting out of an environment and put harmless ones in.

    `SPLITSHIFT_TESTS_*` stay: they are meant for the tests.
    """
    for name in list(environ):
        if name.startswith("AWS_") or (name.startswith("SPLITSHIFT_") and not name.startswith("SPLITSHIFT_TESTS_")):
            del environ[name]
    environ.update(
        AWS_ACCESS_KEY_ID="testing",
        AWS_SECRET_ACCESS_KEY="testing",
        AWS_DEFAULT_REGION=REGION,
        AWS_REGION=REGION,
        AWS_EC2_METADATA_DISABLED="true",
        AWS_CONFIG_FILE=os.devnull,
        AWS_SHARED_CREDENTIALS_FILE=os.devnull,
        AWS_ENDPOINT_URL=NOWHERE,
    )
    # botocore asks a proxy for 127.0.0.1 too, unless told not to.
    for name in ("NO_PROXY", "no_proxy"):
        environ[name] = ",".join(filter(None, [environ.get(name), "127.0.0.1,localhost"]))
