"""Settings for httpx, and our messages for its errors. Import this module only when httpx is needed: it imports httpx."""

from __future__ import annotations

import re

import httpx

from flagsvc.core.errors import UpstreamError
from flagsvc.http.client.trust import tls_context

MESSAGES: tuple[tuple[type[Exception], str], ...] = (
    (httpx.ConnectTimeout, "no connection within the time limit"),
    (httpx.TimeoutException, "no answer within the time limit"),
    (httpx.LocalProtocolError, "the request cannot be written as HTTP"),
    (httpx.RemoteProtocolError, "the connection ended without a whole answer"),
    (httpx.ReadError, "the connection broke while reading"),
    (httpx.WriteError, "the connection broke while writing"),
)
"""Messages for errors whose own text is empty or repeats what was sent; the first matching row applies."""

TECHNICAL_CODES = re.compile(r"\[(errno|ssl)[^][]*\] | \(_ssl\.c:[0-9]+\)")
"""Codes in messages that only help programmers."""
NOT_TLS = "wrong version number"
"""OpenSSL's message about an answer that is not TLS."""


def make_proxy(url: str, reject_unauthorized: bool) -> httpx.Proxy:
    """Return the outbound proxy for httpx, which accepts TLS settings only for an https proxy.

    Raises UpstreamError of kind `network`, which does not repeat the URL, for an invalid host.
    """
    context = tls_context(reject_unauthorized) if url.startswith("https:") else None
    try:
        return httpx.Proxy(url, ssl_context=context)
    except (httpx.InvalidURL, UnicodeError):
        raise UpstreamError("network", "the URL of the outbound proxy names no host that can be asked for") from None


def describe_error(error: Exception) -> str:
    """Return the message about an httpx error, in lower case, without anything that was sent."""
    words = (
        next((words for kind, words in MESSAGES if isinstance(error, kind)), "") or str(error) or type(error).__name__
    )
    return TECHNICAL_CODES.sub("", words.lower()).replace(NOT_TLS, f"{NOT_TLS}; it may speak plain HTTP there")
