"""The upstream session over real sockets: TLS, outbound proxies, and downloads from elsewhere."""

from __future__ import annotations

import gzip
import ssl
from typing import Any

import pytest
import trustme

from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.upstream import Outbound, Trust, Upstream, download
from flagsvc.testing import FakeClock, RecordingLog
from support.aio import asynchronous
from support.loopback import loopback, reply, then_reset, tunnel
from support.upstream_session import DOCUMENT, fault, options, session

# ---- TLS and outbound proxies


def authority() -> tuple[trustme.CA, ssl.SSLContext]:
    """Return an untrusted authority and the settings of a server with its certificate."""
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    return ca, context


@asynchronous
async def test_a_certificate_nobody_vouches_for_is_refused() -> None:
    """Unless rejectUnauthorized is off (specification: Options)."""
    _, tls = authority()
    async with session(tls=tls) as (_, upstream):
        error = await fault(upstream)
        assert error.kind == "network" and "certificate" in str(error)
    async with session(tls=tls, trust=Trust(False)) as (server, upstream):
        server.script(reply(200, DOCUMENT))
        assert (await upstream.get_features(None)).body == DOCUMENT


@asynchronous
async def test_an_authority_of_the_system_is_trusted() -> None:
    """SSL_CERT_FILE names authorities for every program on OpenSSL, this one included."""
    ca, tls = authority()
    with ca.cert_pem.tempfile() as path, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", path)
        async with session(tls=tls) as (server, upstream):
            server.script(reply(200, DOCUMENT))
            assert (await upstream.get_features(None)).body == DOCUMENT


@asynchronous
async def test_http_goes_through_the_outbound_proxy() -> None:
    """The proxy gets the whole address and the request as it is; the upstream is not asked directly."""
    async with loopback() as proxy, loopback() as server:
        outbound = Outbound(http=f"http://user:pw@127.0.0.1:{proxy.port}")
        upstream = Upstream(options(f"{server.url}/api", outbound=outbound), clock=FakeClock(), log=RecordingLog())
        proxy.script(reply(200, DOCUMENT))
        assert (await upstream.get_features(None)).body == DOCUMENT
        await upstream.aclose()
    (request,) = proxy.requests
    assert request.target == f"{server.url}/api/client/features" and not server.requests
    assert request.headers["proxy-authorization"].startswith("Basic ")


@asynchronous
async def test_https_goes_through_a_tunnel_that_never_sees_the_token() -> None:
    """The proxy gets a CONNECT, the upstream the request."""
    _, tls = authority()
    async with loopback() as proxy, loopback(tls) as server:
        outbound = Outbound(https=f"http://127.0.0.1:{proxy.port}")
        chosen = options(f"{server.url}/api", outbound=outbound, trust=Trust(False))
        upstream = Upstream(chosen, clock=FakeClock(), log=RecordingLog())
        proxy.script(tunnel)
        server.script(reply(200, DOCUMENT))
        assert (await upstream.get_features(None)).body == DOCUMENT
        await upstream.aclose()
    (request,) = proxy.requests
    assert (request.method, request.target) == ("CONNECT", f"127.0.0.1:{server.port}")
    assert "authorization" not in request.headers


@asynchronous
async def test_an_outbound_proxy_may_itself_be_spoken_to_over_tls() -> None:
    """`HTTP_PROXY=https://…`."""
    _, tls = authority()
    async with loopback(tls) as proxy:
        chosen = options("http://flags.invalid/api", outbound=Outbound(http=proxy.url), trust=Trust(False))
        upstream = Upstream(chosen, clock=FakeClock(), log=RecordingLog())
        proxy.script(reply(200, DOCUMENT))
        assert (await upstream.get_features(None)).body == DOCUMENT
        await upstream.aclose()


@asynchronous
async def test_no_proxy_and_the_environment() -> None:
    """An exempt upstream is reached directly, and proxy variables of the process count for nothing here."""
    async with loopback() as proxy, loopback() as server:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HTTP_PROXY", proxy.url)
            patch.setenv("http_proxy", proxy.url)
            for outbound in (Outbound(http=proxy.url, exempt=("127.0.0.0/8",)), Outbound()):
                upstream = Upstream(options(server.url, outbound=outbound), clock=FakeClock(), log=RecordingLog())
                server.script(reply(200, DOCUMENT))
                await upstream.get_features(None)
                await upstream.aclose()
    assert len(server.requests) == 2 and not proxy.requests


# ---- a document from elsewhere


@asynchronous
async def test_a_download_sends_its_own_authorization_and_nothing_about_us() -> None:
    """Bootstrapping may go to a stranger: no token, no instance id."""
    async with loopback() as server:
        server.script(reply(302, location="/there"), reply(200, gzip.compress(DOCUMENT), content_encoding="gzip"))
        body = await get(f"{server.url}/flags.json?x=1", "Bearer abc")
    assert body == DOCUMENT
    assert [seen.target for seen in server.requests] == ["/flags.json?x=1", "/there"]
    assert server.requests[0].headers["authorization"] == "Bearer abc"
    assert not any(name.startswith("unleash") for name in server.requests[0].headers)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(reply(404), "not-found"), (reply(200, b"<p>", content_type="text/html"), "document"), (then_reset(), "network")],
)
@asynchronous
async def test_a_download_fails_with_a_kind(answer: Any, kind: str) -> None:
    """A failed download has the same kinds of errors as the session."""
    async with loopback() as server:
        server.script(answer)
        with pytest.raises(UpstreamError) as caught:
            await get(server.url, None)
    assert caught.value.kind == kind
    assert "authorization" not in server.requests[0].headers


async def get(url: str, authorization: str | None) -> bytes:
    """Download directly."""
    return await download(url, authorization=authorization, trust=Trust(), outbound=Outbound(), clock=SystemClock())
