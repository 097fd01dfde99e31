"""Parsing of header names and methods."""

from __future__ import annotations

import pytest

from flagsvc.settings import headers
from flagsvc.settings.kinds import RefusedError


@pytest.mark.parametrize("value", ["", "a b", "a:b", "ä", 5, "a,b"])
def test_no_header_names(value: object) -> None:
    """A header name that is no HTTP token is refused."""
    with pytest.raises(RefusedError):
        headers.parse_header_name(value)


FRAMING = (
    *("connection", "content-length", "expect", "host", "keep-alive", "proxy-authenticate", "proxy-authorization"),
    *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
)
READ = (
    *("accept-encoding", "access-control-request-headers", "access-control-request-method", "content-encoding"),
    *("content-type", "if-none-match", "origin", "x-forwarded-for"),
)


@pytest.mark.parametrize("name", [*FRAMING, *READ])
def test_headers_that_carry_no_key(name: str) -> None:
    """Headers that frame a request, belong to a connection, or have another meaning for the proxy cannot carry a key."""
    for spelling in (name, name.upper()):
        with pytest.raises(RefusedError, match=f"^`{name}` is reserved for another purpose$"):
            headers.KEY_HEADER.parse(spelling)
    assert headers.KEY_HEADER.parse(f"X-{name}") == f"x-{name}"


@pytest.mark.parametrize("name", [*READ, "Cookie", "Authorization", "Host", "sec-fetch-site", "unleash-appname"])
def test_headers_that_name_no_user(name: str) -> None:
    """Headers that the flag server reads for another purpose cannot name a user."""
    with pytest.raises(RefusedError, match=r"is reserved for another purpose$"):
        headers.USER_HEADER.parse(name)
    assert headers.USER_HEADER.parse("X-Forwarded-User") == "x-forwarded-user"


def test_header_names_and_methods() -> None:
    """Header names become lower case, methods upper case."""
    assert headers.parse_header_name("X-Client-Key") == "x-client-key"
    assert headers.ANSWER_HEADER.parse("Age") == "age"
    assert headers.METHODS.parse("get, Post") == ("GET", "POST")
    assert headers.HEADER_NAMES.parse("*") == ("*",)


@pytest.mark.parametrize(
    "name", ["ETag", "content-length", "Set-Cookie", "Access-Control-Allow-Origin", "a b", "a\r\nb", ""]
)
def test_headers_that_answers_cannot_have_in_addition(name: str) -> None:
    """Headers that answers already have, and invalid names, are refused as additional headers."""
    with pytest.raises(RefusedError):
        headers.ANSWER_HEADER.parse(name)
