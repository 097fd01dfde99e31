"""Names of headers and methods: read and refused."""

from __future__ import annotations

import pytest

from flagsvc.settings import headers
from flagsvc.settings.kinds import RefusedError


@pytest.mark.parametrize("value", ["", "a b", "a:b", "ä", 5, "a,b"])
def test_no_header_names(value: object) -> None:
    """The name of a header is a token."""
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
    """What frames a request, belongs to one connection or says something else to the proxy is no place for a key."""
    for spelling in (name, name.upper()):
        with pytest.raises(RefusedError, match=f"^`{name}` is reserved for another purpose$"):
            headers.KEY_HEADER.parse(spelling)
    assert headers.KEY_HEADER.parse(f"X-{name}") == f"x-{name}"


def test_header_names_and_methods() -> None:
    """Header names lose their case, methods get theirs."""
    assert headers.parse_header_name("X-Client-Key") == "x-client-key"
    assert headers.ANSWER_HEADER.parse("Age") == "age"
    assert headers.METHODS.parse("get, Post") == ("GET", "POST")
    assert headers.HEADER_NAMES.parse("*") == ("*",)


@pytest.mark.parametrize(
    "name", ["ETag", "content-length", "Set-Cookie", "Access-Control-Allow-Origin", "a b", "a\r\nb", ""]
)
def test_headers_that_answers_cannot_have_in_addition(name: str) -> None:
    """A header that answers have already would come twice, or say something else."""
    with pytest.raises(RefusedError):
        headers.ANSWER_HEADER.parse(name)
