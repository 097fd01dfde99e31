"""Kinds of value that name something on the network: URLs, addresses, origins.

As in `kinds.py`, a parser knows no option and no source, and reads its own results unchanged.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable
from typing import TypeAlias
from urllib.parse import SplitResult, quote, unquote, urlsplit

from flagsvc.settings.kinds import BOOLEANS, PORT, Kind, RefusedError, parse_text, quoted, several, split

TrustProxy: TypeAlias = bool | tuple[str, ...]
"""Which senders' X-Forwarded-* headers count: all, none, or these addresses, CIDRs and names."""

TRUST_NAMES = {
    "loopback": ("127.0.0.0/8", "::1/128"),
    "linklocal": ("169.254.0.0/16", "fe80::/10"),
    "uniquelocal": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
}
"""The names of well-known networks that trustProxy takes (behaviour: Remote address)."""

LEFT_OUT = "!"
"""What stands in front of a network that webhooks may not reach."""

REACH_NAMES = TRUST_NAMES | {
    "metadata": (
        "169.254.169.254",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fd00:c1::a9fe:a9fe",
        "100.100.100.200",
        "168.63.129.16",
    ),
}
"""The names of networks that webhookNetworks takes. `metadata` are the addresses at which clouds give credentials to a machine."""

UNIX = "unix:"
"""What an address begins with that is a Unix socket's."""

EVERY_ADDRESS = "::"
"""The host that stands for all addresses, of IPv6 and of IPv4. No host stands for all addresses of the machine."""

LONGEST_SOCKET = 100
"""Bytes of the path of a Unix socket; systems have room for 103 and more."""

HOST_NAME = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?")
PATH = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[^\s/?#@:\[\]]+)(:([0-9]{1,5}|\*))?")


GITLAB = "/feature_flags/unleash/"
"""What only the URL of a GitLab project's feature flags has in its path."""


def is_gitlab(url: object) -> bool:
    """Return whether a URL is the one of a GitLab project's feature flags, which need no token."""
    return isinstance(url, str) and GITLAB in f"{urlsplit(url).path}/"


def hide_credentials(text: str) -> str:
    """Return a URL without its user name, password and query, where a signature may stand.

    Everything up to the last `@` is masked, because the parts of a URL are ambiguous if its password contains a slash.
    """
    text = re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*://)?.*@", r"\1***@", text, count=1, flags=re.DOTALL)
    return re.sub(r"\?.*", "?***", text, count=1, flags=re.DOTALL)


def safe_url(url: str | None) -> str | None:
    """Return a URL as it may be shown: credentials and query masked."""
    return url and hide_credentials(url)


def echo_url(text: str) -> str | None:
    """Return a refused URL with its secrets masked. Return None for a text that is no URL, because it may be a token."""
    return quoted(hide_credentials(text)) if re.match(r"[A-Za-z][A-Za-z0-9+.-]{1,9}://", text) else None


def url_parts(text: str) -> SplitResult:
    """Return the parts of a URL, its port checked. Raises RefusedError."""
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - reading it is the check
    except ValueError:
        raise RefusedError("its host or its port is not valid") from None
    return parts


def parse_url(value: object) -> str:
    """Return an absolute http or https URL, or a `file:` URL with an absolute path, without a slash at the end."""
    text = parse_text(value)
    if text.lower().startswith("file:"):
        return parse_file_url(text)
    parts = url_parts(text)
    if parts.scheme not in ("http", "https") or " " in text:
        raise RefusedError
    if not parts.hostname:
        raise RefusedError("it has no host")
    return text.rstrip("/")


def parse_base_url(value: object) -> str:
    """Return the URL of an API, to which paths are appended: one without query and fragment."""
    url = parse_url(value)
    if "?" in url or "#" in url:
        raise RefusedError("paths are appended to it, so it cannot end in a query or a fragment")
    return url


def parse_web_url(value: object) -> str:
    """Return an http or https URL without user, query and fragment, and without a slash at the end."""
    url = parse_base_url(value)
    if not url.startswith(("http://", "https://")) or "@" in url_parts(url).netloc:
        raise RefusedError
    return url


def parse_issuer(value: object) -> str:
    """Return the URL of an OpenID provider. Only https counts, and http on loopback, where no other machine listens."""
    url = parse_web_url(value)
    if not is_safe_origin(url):
        raise RefusedError("passwords and tokens pass there: http is for a provider on this machine (loopback) only")
    return url


def is_safe_origin(url: str) -> bool:
    """Return whether only the two ends can read what is sent to a URL: by TLS, or on this machine."""
    parts = url_parts(url)
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def is_loopback(host: str) -> bool:
    """Return whether a host is `localhost` or a loopback address."""
    from ipaddress import ip_address

    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def parse_file_url(value: object) -> str:
    """Return a `file:` URL with an absolute path; a relative one starts at the working directory."""
    text = parse_text(value)
    if not text.lower().startswith("file:"):
        raise RefusedError
    path = text[len("file:") :]
    if path.startswith("//"):
        host, slash, rest = path[2:].partition("/")
        if host not in ("", "localhost") or not slash:
            raise RefusedError("the path of a file: URL starts with a slash: file:///folder/name")
        path = slash + rest
    return file_url(unquote(path))


def url_in(value: object, folder: str) -> object:
    """Return a `file:` URL with a relative path as one whose path begins with `folder`; any other value as it is."""
    text = value.strip() if isinstance(value, str) else ""
    path = text[len("file:") :]
    relative = text.lower().startswith("file:") and path and not path.startswith("/")
    return f"file:{os.path.join(quote(folder), path)}" if relative else value


def file_url(path: str) -> str:
    """Return the `file:` URL of a path; a relative one starts at the working directory."""
    path = parse_text(path)
    if not path:
        raise RefusedError("it names no path")
    try:
        return "file://" + quote(os.path.abspath(path))
    except OSError:
        raise RefusedError("it is relative, and the working directory is gone") from None


def parse_outbound_proxy(value: object) -> str:
    """Return the http or https URL of an outbound proxy; `host:port` alone means http."""
    text = parse_text(value)
    url = text if "://" in text else f"http://{text}"
    parts = url_parts(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or " " in url:
        raise RefusedError
    return url.rstrip("/")


def parse_host(value: object) -> str:
    """Return a host name or an IP address to listen on, the address without brackets, or the Unix socket `unix:/path`.

    A plain path is that of a Unix socket. Every spelling of the IPv6 address of zeros is `::`, which stands for all addresses.
    """
    text = parse_text(value)
    if text.lower().startswith(UNIX) or text.startswith("/"):
        return parse_unix(text)
    text = text.removeprefix("[").removesuffix("]")
    if ":" in text:
        if not _is_address(socket.AF_INET6, text.partition("%")[0]):
            raise RefusedError
        if re.fullmatch("[0:.]+", text):
            return EVERY_ADDRESS
    elif re.fullmatch(r"[0-9.]+", text):
        if not _is_address(socket.AF_INET, text):
            raise RefusedError
    elif not HOST_NAME.fullmatch(text):
        raise RefusedError
    return text


def parse_unix(text: str) -> str:
    """Return `unix:` and the whole path of a Unix socket, of `unix:/path`, `unix:///path` or a plain path."""
    path = text if text.startswith("/") else text[len(UNIX) :]
    if path.startswith("//"):
        path = f"/{path.lstrip('/')}"
    if not path.startswith("/") or path.endswith("/"):
        raise RefusedError("a Unix socket is named by its whole path, such as unix:/run/flagsvc/proxy.sock")
    if len(path.encode()) > LONGEST_SOCKET:
        raise RefusedError(f"the path of a Unix socket has at most {LONGEST_SOCKET} bytes")
    return UNIX + path


def parse_address(value: object) -> str:
    """Return where to listen: `host:port`, `:port` for all addresses, an IPv6 address in brackets, or a Unix socket."""
    text = parse_text(value)
    if text.lower().startswith(UNIX) or text.startswith("/"):
        return parse_unix(text)
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not colon or (":" in bare and len(host) - len(bare) != 2):
        raise RefusedError("an IPv6 address stands in brackets" if text.count(":") > 1 else "")
    named, number = parse_host(host) if host else "", PORT.parse(port)
    return f"{bracketed(named)}:{number}"


def split_address(address: str) -> tuple[str | None, int]:
    """Return host, None for all, and port of a normalised address; a Unix socket is a host of port 0."""
    if socket_path(address) is not None:
        return address, 0
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]") or None, int(port)


def socket_path(host: str | None) -> str | None:
    """Return the path if a normalised host is a Unix socket, else None."""
    return host.removeprefix(UNIX) if host is not None and host.startswith(UNIX) else None


def is_every_address(host: str | None) -> bool:
    """Return whether a normalised host, or the lack of one, stands for all addresses of IPv6 and IPv4."""
    return not host or host == EVERY_ADDRESS


def bracketed(host: str) -> str:
    """Return a host as it stands in front of a port: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def url_at(host: str, port: int, path: str, *, tls: bool) -> str:
    """Return the address to open in a browser or to give to curl; on a Unix socket as nginx and others write it."""
    where = f"{bracketed(host)}:{port}" if socket_path(host) is None else f"{host}:"
    return f"{'https' if tls else 'http'}://{where}{path}"


def parse_mode(value: object) -> str:
    """Return the mode of a file: four octal digits, of which the first is 0."""
    text = parse_text(value)
    if not re.fullmatch(r"0?[0-7]{3}", text):
        raise RefusedError
    return text.zfill(4)


def _is_address(family: int, text: str) -> bool:
    try:
        socket.inet_pton(family, text)
    except (OSError, ValueError):
        return False
    return True


def parse_base_path(value: object) -> str:
    """Return a base path with a slash in front and none behind; the root is the empty text."""
    text = parse_text(value)
    if "://" in text:
        raise RefusedError("a whole URL is no path: give only what stands behind the host")
    if not PATH.fullmatch(text):
        raise RefusedError
    path = "/".join(part for part in text.split("/") if part)
    return f"/{path}" if path else ""


def echo_hidden(text: str) -> str | None:
    """Return a refused text; of a URL without what may be secret."""
    return quoted(hide_credentials(text))


def parse_trust(value: object) -> TrustProxy:
    """Return whose X-Forwarded-* headers count: True, False, or addresses, CIDRs and names of TRUST_NAMES."""
    if isinstance(value, bool):
        return value
    items = [parse_text(item).lower() for item in split(value)]
    if len(items) == 1 and items[0] in BOOLEANS and items[0] != "1":
        return BOOLEANS[items[0]]
    return tuple(dict.fromkeys(_network(item) for item in items))


def _network(item: str, names: Iterable[str] = TRUST_NAMES) -> str:
    """Return an address or CIDR without host bits, IPv4 mapped in IPv6 as IPv4, or one of the names."""
    from ipaddress import IPv6Address, ip_network

    if item in names:
        return item
    if item.isdigit():
        raise RefusedError("a number of proxies cannot be trusted, their addresses can; write `true` to trust all")
    try:
        network = ip_network(item.replace("%", "?"), strict=False)  # a zone has no meaning beyond this machine
    except ValueError:
        raise RefusedError(f"{quoted(item)} is neither an address nor a CIDR nor a name of networks") from None
    address, bits = network.network_address, network.prefixlen
    if isinstance(address, IPv6Address) and address.ipv4_mapped and bits >= 96:
        address, bits = address.ipv4_mapped, bits - 96
    return str(address) if bits == address.max_prefixlen else f"{address}/{bits}"


def parse_network(value: object) -> str:
    """Return an address, a CIDR or one of the names of TRUST_NAMES."""
    return _network(parse_text(value).lower())


def parse_reach(value: object) -> str:
    """Return an address, a CIDR or one of the names of REACH_NAMES, with LEFT_OUT in front if it had that."""
    text = parse_text(value).lower()
    mark = LEFT_OUT if text.startswith(LEFT_OUT) else ""
    return mark + _network(text.removeprefix(LEFT_OUT).strip(), REACH_NAMES)


def trusted_networks(trust: Iterable[str]) -> tuple[str, ...]:
    """Return the addresses and CIDRs of a normalised list, the names of TRUST_NAMES replaced by what they stand for."""
    return tuple(network for item in trust for network in TRUST_NAMES.get(item, (item,)))


Origin: TypeAlias = str | tuple[str, ...]
"""`*` or one origin (always sent), or a list of origins and patterns (sent back when the request's is in it)."""


def parse_origin(value: object) -> Origin:
    """Return the allowed origins: `*`, one, or a tuple of several or of patterns (behaviour: CORS).

    One origin given as text stays a text; one followed by a comma, or in a list, is a list of one.
    """
    origins = tuple(dict.fromkeys(_origin(item) for item in split(value)))
    if "*" in origins:
        return "*"
    alone = isinstance(value, str) and "," not in value and len(origins) == 1 and "*" not in origins[0]
    return origins[0] if alone else origins


def _origin(item: object) -> str:
    """Return one origin as a browser writes it: scheme, host and port in lower case, no path."""
    origin = parse_text(item).lower().removesuffix("/")
    if origin not in ("*", "null") and not ORIGIN.fullmatch(origin):
        raise RefusedError("an origin is a scheme, a host and, if it is not the usual one, a port")
    return origin


URL = Kind("an http://, https:// or file: URL", "URL", parse_url, safe_url, echo=echo_url, relative_to=url_in)
BASE_URL = URL._replace(parse=parse_base_url)
WEB_URL = Kind("an http:// or https:// URL without a user", "URL", parse_web_url, safe_url, echo=echo_url)
ISSUER = WEB_URL._replace(expects="an https:// URL", parse=parse_issuer)
OUTBOUND_PROXY = Kind("an http:// or https:// URL", "URL", parse_outbound_proxy, safe_url, echo=echo_url)
HOST = Kind("a host name, an IP address, or unix:/path", "HOST", parse_host)
ADDRESS = Kind("host:port, :port for all addresses, or unix:/path", "ADDRESS", parse_address)
FILE_MODE = Kind("an octal mode such as 0660", "MODE", parse_mode)
BASE_PATH = Kind("a path such as /base/path", "PATH", parse_base_path, echo=echo_hidden)
TRUST = Kind("true, false, or a list of addresses, CIDRs, loopback, linklocal, uniquelocal", "TRUST", parse_trust)
NETWORKS = several(parse_network, "addresses, CIDRs, loopback, linklocal, uniquelocal, with commas between", "NETWORKS")
REACH = several(
    parse_reach,
    "addresses, CIDRs, loopback, linklocal, uniquelocal, metadata, with commas between, and `!` in front of what is left out",
    "NETWORKS",
)
ORIGINS = Kind("`*`, or origins such as https://example.com or https://*.example.com", "ORIGINS", parse_origin)
