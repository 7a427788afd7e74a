"""Requests to a Lambda function behind a URL that asks for IAM: such a URL answers nobody whose request is not signed.

https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from functions.kit.errors import FinalError

_HOST = re.compile(r"([a-z0-9-]+)\.lambda-url\.([a-z0-9-]+)\.on\.aws")


class NotSignedError(FinalError):
    """There are no AWS credentials to sign with."""


def is_function_url(url: str) -> bool:
    return _HOST.fullmatch(urlsplit(url).hostname or "") is not None


def addressed(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> tuple[str, dict[str, str]]:
    """Where to send a request, and with which headers: to a function URL with a signature by this process's
    credentials, to anybody else as it is.  Raises NotSignedError.
    """
    function = _HOST.fullmatch(urlsplit(url).hostname or "")
    if function is None:
        return url, dict(headers)
    import boto3  # noqa: PLC0415 - other receivers are called without it
    from botocore.auth import SigV4Auth  # noqa: PLC0415 - as above
    from botocore.awsrequest import AWSRequest  # noqa: PLC0415 - as above

    credentials = boto3.Session().get_credentials()
    if credentials is None:
        raise NotSignedError("the receiver asks for AWS credentials, and there are none: log in, or name a --profile")
    signed: Any = AWSRequest(method=method, url=url, data=body, headers=dict(headers))
    SigV4Auth(credentials.get_frozen_credentials(), "lambda", function[2]).add_auth(signed)
    return _where(url, function[1]), dict(signed.headers)


def _where(url: str, function: str) -> str:
    """An emulator answers for a function's URL at its own address."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    if not endpoint:
        return url
    parts = urlsplit(url)
    return f"{endpoint}/_aws/lambda-url/{function}{parts.path}?{parts.query}"
