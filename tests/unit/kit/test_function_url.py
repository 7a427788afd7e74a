"""Requests to a function behind a URL are signed; an emulator's address stands in for Lambda's."""

from __future__ import annotations

import pytest

from functions.kit.function_url import NotSignedError, addressed, is_function_url

FUNCTION = "https://abcdefghijabcdefghijabcdefghij12.lambda-url.eu-central-1.on.aws"
HEADERS = {"Content-Type": "application/json", "Idempotency-Key": "k1"}


def test_a_request_to_a_function_url_is_signed_for_lambda_in_its_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-a-role")
    url, headers = addressed("POST", f"{FUNCTION}/effects/charge?delay=1", HEADERS, b"{}")
    assert url == f"{FUNCTION}/effects/charge?delay=1"
    assert headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=")
    assert "/eu-central-1/lambda/aws4_request" in headers["Authorization"]
    assert headers["X-Amz-Security-Token"] == "of-a-role"
    assert HEADERS.items() <= headers.items()


def test_what_is_signed_is_this_body() -> None:
    def signature(body: bytes) -> str:
        return addressed("POST", FUNCTION, {}, body)[1]["Authorization"].partition("Signature=")[2]

    assert signature(b"100") != signature(b"200")


def test_on_an_emulator_the_functions_url_is_a_path_of_its_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    url, _ = addressed("GET", f"{FUNCTION}/log?since=2026", {}, None)
    assert url == "http://127.0.0.1:4566/_aws/lambda-url/abcdefghijabcdefghijabcdefghij12/log?since=2026"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080/effects/charge", "https://api.example.com/x.lambda-url.eu-central-1.on.aws"]
)
def test_a_request_to_anybody_else_goes_as_it_is_and_shows_no_credentials(url: str) -> None:
    assert addressed("POST", url, HEADERS, b"{}") == (url, HEADERS)
    assert not is_function_url(url)


def test_without_credentials_there_is_nothing_to_sign_with(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NotSignedError, match="log in, or name a --profile"):
        addressed("POST", FUNCTION, HEADERS, b"{}")
