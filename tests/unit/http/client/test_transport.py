"""The requests that a transport writes; `tests/integration/test_upstream_wire_connections.py` has its connections."""

from __future__ import annotations

import pytest

from flagsvc.http.client.answers import Limits
from flagsvc.http.client.transport import Transport
from flagsvc.http.client.trust import Trust

GIVEN = [("x-name", b"authorization"), ("authorization", b"Bearer abc")]


@pytest.mark.parametrize(("who", "sent"), [("", b"Bearer abc"), ("user:word@", b"Basic dXNlcjp3b3Jk")])
def test_the_authorization(who: str, sent: bytes) -> None:
    """User and password of the URL replace the authorization that is given, and no other header."""
    transport = Transport("http://flags.example", proxy=None, trust=Trust(), limits=Limits())
    request = transport._written("GET", f"http://{who}flags.example/", GIVEN, None)
    first, *headers = request.removesuffix(b"\r\n\r\n").split(b"\r\n")
    assert first == b"GET / HTTP/1.1"
    assert headers == [b"host: flags.example", b"x-name: authorization", b"authorization: " + sent]
