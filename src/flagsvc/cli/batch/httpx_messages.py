"""Settings for httpx, and our messages for its errors. Import this module only when httpx is needed: it imports httpx."""

from __future__ import annotations

import re

import httpx

from flagsvc.core.errors import UpstreamError
from flagsvc.http.client.trust import tls_context

WORDS: tuple[tuple[type[Exception], str], ...] = (
    (httpx.ConnectTimeout, "no connection within the time limit"),
    (httpx.TimeoutException, "no answer within the time limit"),
    (httpx.LocalProtocolError, "the request cannot be written as HTTP"),
    (httpx.RemoteProtocolError, "the connection ended without a whole answer"),
    (httpx.ReadError, "the connection broke while reading"),
    (httpx.WriteError, "the connection broke while writing"),
)
"""What is said about a failure whose own text is empty or repeats what was sent; the first row that fits counts."""

NUMBERS = re.compile(r"\[(errno|ssl)[^]]*\] | \(_ssl\.c:[0-9]+\)")
"""What only whoever writes programs reads."""
NO_TLS = "wrong version number"
"""What OpenSSL says about an answer that is no TLS at all."""


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
    """Return what to say about a failure of httpx, in lower case, without repeating anything that was sent."""
    words = next((words for kind, words in WORDS if isinstance(error, kind)), "") or str(error) or type(error).__name__
    return NUMBERS.sub("", words.lower()).replace(NO_TLS, f"{NO_TLS}; it may speak plain HTTP there")
