"""Chooses the outbound proxy of a request. It does not read the environment; settings pass the values in.

HTTP_PROXY, HTTPS_PROXY and NO_PROXY decide (specification: Options; behaviour: Further options).
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from flagsvc.core.errors import ConfigurationError

DEFAULT_PORTS = {"http": 80, "https": 443}
PROXY_SCHEMES = ("http", "https")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Outbound:
    """The outbound proxies by scheme of the request, and the hosts that are reached without them.

    `exempt` are the entries of NO_PROXY: `*`, `host` (with its subdomains), `.suffix` (subdomains only), `host:port`, an
    address or a CIDR. Addresses and CIDRs are compared with addresses only; names are not resolved. An entry with commas or
    blanks counts as several. A proxy URL may contain a password, so the repr leaves it out.
    """

    http: str | None = field(default=None, repr=False)
    https: str | None = field(default=None, repr=False)
    exempt: tuple[str, ...] = ()

    def proxy_for(self, url: str) -> str | None:
        """Return the URL of the proxy for a request to `url`; None for a direct connection.

        Raises ConfigurationError if the proxy is neither http nor https.
        """
        parts = urlsplit(url)
        proxy = self.https if parts.scheme == "https" else self.http
        host = (parts.hostname or "").rstrip(".")
        port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
        entries = re.split(r"[,\s]+", ",".join(self.exempt).lower())
        if not proxy or any(covers(entry, host, port) for entry in entries if entry):
            return None
        return checked(proxy if "://" in proxy else f"http://{proxy}", parts.scheme)


def checked(proxy: str, scheme: str) -> str:
    """Return the proxy URL. Raises ConfigurationError, without the URL, if it is invalid or not supported."""
    with contextlib.suppress(ValueError):
        if urlsplit(proxy).scheme in PROXY_SCHEMES:
            return proxy
    raise ConfigurationError([f"{scheme.upper()}_PROXY: the outbound proxy must be an http or https URL"])


def covers(entry: str, host: str, port: int) -> bool:
    """Return whether one NO_PROXY entry exempts `host` and `port`. Both are in lower case."""
    if entry == "*":
        return True
    name, wanted = split_port(entry)
    if wanted is not None and wanted != port:
        return False
    address = as_address(host)
    if address is not None:
        network = as_network(name)
        return network is not None and address in network
    name = name.removeprefix("*").rstrip(".")
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def split_port(entry: str) -> tuple[str, int | None]:
    """Return host and port of an entry. A bare IPv6 address has no port; one with a port is in brackets."""
    match = re.fullmatch(r"\[(?P<six>[^]]*)\](?::(?P<p6>\d+))?|(?P<host>[^:]*)(?::(?P<p4>\d+))?", entry)
    if match is None:
        return entry, None
    port = match["p6"] or match["p4"]
    return match["six"] or match["host"] or "", int(port) if port else None


def as_address(text: str) -> Address | None:
    """Return the address in `text`; None if it is a name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def as_network(text: str) -> Network | None:
    """Return the network of an address or CIDR; None for any other text."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
