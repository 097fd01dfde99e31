"""A session with an upstream on a loopback port, for the tests of what goes over the wire."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.upstream import Identity, Limits, Upstream, UpstreamSettings
from flagsvc.testing import FakeClock, RecordingLog
from support.loopback import Loopback, loopback

TOKEN = "*:development.very-hidden-token"
DOCUMENT = b'{"version":2,"features":[]}'
LIMITS = Limits(step_s=5.0, total_s=10.0, max_bytes=1_000_000)
IDENTITY = Identity("some-app", "some-instance", "some-connection")


def options(url: str, **changes: Any) -> UpstreamSettings:
    return UpstreamSettings(**{"url": url, "token": TOKEN, "identity": IDENTITY, "limits": LIMITS, **changes})


@asynccontextmanager
async def session(
    path: str = "/api", *, tls: ssl.SSLContext | None = None, **changes: Any
) -> AsyncIterator[tuple[Loopback, Upstream]]:
    async with loopback(tls) as server:
        upstream = Upstream(options(server.url + path, **changes), clock=FakeClock(), log=RecordingLog())
        try:
            yield server, upstream
        finally:
            await upstream.aclose()


async def fault(upstream: Upstream) -> UpstreamError:
    """Return the error that asking for the document gives; it never holds the token."""
    with pytest.raises(UpstreamError) as caught:
        await upstream.get_features(None)
    assert "hidden" not in str(caught.value) + repr(caught.value)
    return caught.value
