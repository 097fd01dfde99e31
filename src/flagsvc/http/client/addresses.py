"""URLs of the upstream: which are valid, how messages name them, and where a redirect may lead. No I/O."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, quote, urljoin, urlsplit, urlunsplit

from flagsvc.core.errors import ConfigurationError, UpstreamError
from flagsvc.http.client.answers import Answer
from flagsvc.http.client.outbound import DEFAULT_PORTS

STAYS = "%/:@!$&'()*+,;=?[]"
"""Characters of a path or query that stay as they are. Others, except letters, digits and `-._~`, are percent-encoded."""
HOST = re.compile(r"([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?")
REDIRECTS = (301, 302, 303, 307, 308)
MOST_REDIRECTS = 5


def web_parts(url: str) -> SplitResult | None:
    """Return the parts of an http or https URL; None for any other text."""
    try:
        parts = urlsplit(url)
        return parts if parts.scheme in DEFAULT_PORTS and parts.hostname and parts.port != 0 else None
    except ValueError:
        return None


def base_of(url: str) -> str:
    """Return a base address without user, query, fragment and slashes at the end.

    Raises ConfigurationError unless it is an http or https URL.
    """
    parts = web_parts(url)
    if parts is None:
        raise ConfigurationError([f"flagsvcUrl: `{shown(url)}` is not an http or https URL"])
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def shown(url: str) -> str:
    """Return a URL for messages: scheme, host, port and path, without user, password and query.

    If the parts cannot be separated, for example because of a slash in the password, everything up to the last `@` is removed.
    """
    if web_parts(url) is None:
        scheme, separator, rest = url.rpartition("://")
        url = f"{scheme}{separator}{rest.rpartition('@')[2]}"
    bare = url.partition("?")[0].partition("#")[0]
    scheme, separator, rest = bare.rpartition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"


def origin(parts: SplitResult) -> tuple[str, str, int]:
    """Return scheme, host and port."""
    return parts.scheme, parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]


def redirected(url: str, answer: Answer) -> str:
    """Return the target of a redirect within the same origin. Raises UpstreamError of kind `unexpected` for another origin."""
    try:
        target = urljoin(url, answer.headers.get("location", ""))
    except ValueError:
        target = ""
    parts, before = web_parts(target), web_parts(url)
    if parts is not None and before is not None and origin(parts) == origin(before):
        return target
    message = f"`{shown(url)}` redirects to another origin, where the token is not sent; configure the final address"
    raise UpstreamError("unexpected", message, status=answer.status)


def host_of(parts: SplitResult) -> str:
    """Return the host of a URL in the form of name servers and certificates. Raises UnicodeError for an invalid host."""
    host = parts.hostname or ""
    if "[" in parts.netloc:
        return v6(host)
    if not host.isascii():
        import idna

        return idna.encode(host).decode("ascii")
    if HOST.fullmatch(host) is None:
        raise UnicodeError("no host")
    return host


def v6(host: str) -> str:
    """Return an address that was in brackets. Raises UnicodeError if it is not an IPv6 address."""
    try:
        return str(ipaddress.IPv6Address(host))
    except ValueError:
        raise UnicodeError("no address") from None


def host_header(parts: SplitResult) -> str:
    """Return the Host header for a URL, without the default port of its scheme. Raises UnicodeError."""
    host, port = host_of(parts), parts.port
    name = f"[{host.partition('%')[0]}]" if ":" in host else host
    return name if port in (None, DEFAULT_PORTS[parts.scheme]) else f"{name}:{port}"


def target_of(parts: SplitResult) -> str:
    """Return path and query of a URL in the form of a request line."""
    path = quote(parts.path, safe=STAYS) or "/"
    return f"{path}?{quote(parts.query, safe=STAYS)}" if parts.query else path
