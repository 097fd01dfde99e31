"""HTTP itself, over httpx: one request in, one bounded answer out, every failure an UpstreamError.

This is the only module that imports httpx, which takes a tenth of a second: `session` imports it with the first request.
No message in here repeats a header: the token must not reach a log.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Sequence

import certifi
import httpx

from flagsvc.errors import UpstreamError
from flagsvc.upstream.answers import Answer, Body, Limits

DRAIN_BYTES = 65_536
DRAIN_S = 1.0

WORDS: tuple[tuple[type[Exception], str], ...] = (
    (httpx.ConnectTimeout, "no connection within the time limit"),
    (httpx.TimeoutException, "no answer within the time limit"),
    (httpx.LocalProtocolError, "the request cannot be written as HTTP"),
    (httpx.RemoteProtocolError, "the connection ended without a whole answer"),
    (httpx.ReadError, "the connection broke while reading"),
    (httpx.WriteError, "the connection broke while writing"),
)
"""What is said about a failure whose own text is empty or repeats what was sent; the first row that fits counts."""


class Transport:
    """A few kept-alive connections to one origin, direct or through one outbound proxy. Reads nothing from the environment."""

    def __init__(self, shown: str, *, proxy: str | None, reject_unauthorized: bool, limits: Limits) -> None:
        """Take the address to name in messages, the outbound proxy's URL, whether certificates are checked, and the limits."""
        context = tls_context(reject_unauthorized) if shown.startswith("https:") else None
        self._shown = shown
        self._limits = limits
        self._warm = False
        self._client = httpx.AsyncClient(
            verify=context or False,
            proxy=outbound(proxy, reject_unauthorized) if proxy else None,
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(limits.step_s),
            limits=httpx.Limits(max_connections=4, max_keepalive_connections=2, keepalive_expiry=60.0),
        )
        self._client.headers.clear()

    async def send(
        self, method: str, url: str, headers: Sequence[tuple[str, bytes]], content: bytes | None = None
    ) -> Answer:
        """Send one request and return its answer; only a GET that succeeds has its body kept. Redirects are not followed.

        Raises UpstreamError of kind `network`, or `document` when the body is cut off, wrongly packed or too large.
        """
        pairs = [(name.encode("ascii"), value) for name, value in headers]
        try:
            request = self._client.build_request(method, url, headers=pairs, content=content)
            async with asyncio.timeout(self._limits.total_s):
                answer = await self._exchange(request)
        except TimeoutError:
            message = f"no whole answer from `{self._shown}` within {self._limits.total_s:g} s"
            raise UpstreamError("network", message) from None
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:  # the last two: a host that is none
            raise UpstreamError("network", f"`{self._shown}`: {in_words(error)}") from None
        self._warm = True
        return answer

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _exchange(self, request: httpx.Request) -> Answer:
        response = await self._open(request)
        try:
            body = b""
            if request.method == "GET" and response.status_code == 200:
                body = await self._read(response)
            else:
                await drain(response)
        finally:
            await response.aclose()
        return Answer(response.status_code, {name.lower(): value for name, value in response.headers.items()}, body)

    async def _open(self, request: httpx.Request) -> httpx.Response:
        """Send the request. A server may close a kept connection just when it is used again: a GET is then sent once more."""
        try:
            return await self._client.send(request, stream=True)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            if not self._warm or request.method != "GET":
                raise
            self._warm = False
            return await self._client.send(request, stream=True)

    async def _read(self, response: httpx.Response) -> bytes:
        coding = response.headers.get("content-encoding", "").strip().lower()
        body = Body(coding, self._limits.max_bytes, self._shown)
        try:
            async for chunk in response.aiter_raw():
                body.feed(chunk)
        except httpx.RemoteProtocolError:
            raise UpstreamError("document", f"the answer of `{self._shown}` ended early") from None
        return body.finish()


async def drain(response: httpx.Response) -> None:
    """Read and forget a body that nobody needs, so that the connection can be kept; give up on a long or slow one."""
    size = 0
    with contextlib.suppress(httpx.HTTPError, TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            async for chunk in response.aiter_raw():
                size += len(chunk)
                if size > DRAIN_BYTES:
                    return


def outbound(url: str, reject_unauthorized: bool) -> httpx.Proxy:
    """Return the outbound proxy as httpx wants it; TLS settings are allowed only where the proxy itself is spoken to over TLS.

    Raises UpstreamError of kind `network`, which does not repeat the URL, for a host that no name server can be asked for.
    """
    context = tls_context(reject_unauthorized) if url.startswith("https:") else None
    try:
        return httpx.Proxy(url, ssl_context=context)
    except (httpx.InvalidURL, UnicodeError):
        raise UpstreamError("network", "the URL of the outbound proxy names no host that can be asked for") from None


def in_words(error: Exception) -> str:
    """Return what to say about a failure of httpx, without repeating anything that was sent."""
    return next((words for kind, words in WORDS if isinstance(error, kind)), "") or str(error) or type(error).__name__


def tls_context(reject_unauthorized: bool) -> ssl.SSLContext:
    """Return the TLS settings (specification: Configuration, httpOptions.rejectUnauthorized).

    Trusted are the system's authorities, which OpenSSL looks for where SSL_CERT_FILE and SSL_CERT_DIR say, and certifi's.
    """
    context = ssl.create_default_context()
    if reject_unauthorized:
        context.load_verify_locations(certifi.where())
        return context
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
