"""The sockets the proxy listens on, opened before anything else is built, so that a port in use is told at once."""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Sequence
from itertools import chain

from flagsvc.errors import ListenError

BACKLOG = 2048
SPREADS = sys.platform == "linux"
"""Whether the system spreads new connections over all sockets that listen on one port."""
NO_IPV6 = frozenset({errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.EADDRNOTAVAIL})
REASONS = {
    errno.EADDRINUSE: "another program is listening there",
    errno.EACCES: "this user may not (ports below 1024 are often reserved)",
    errno.EADDRNOTAVAIL: "this machine does not have that address",
}


def listen(host: str | None, port: int, *, shared: bool = False) -> list[socket.socket]:
    """Return listening sockets for `host` and `port` (behaviour: Drop-in, FLAGSVC_HOST).

    No host, or an empty one, stands for all addresses: IPv6 together with IPv4, IPv4 alone where IPv6 is off. A
    name is resolved and every address of it is listened on. With `shared` other sockets of this user may listen there as well, if
    they say so too, and the kernel spreads new connections over all of them. Raises ListenError.
    """
    try:
        return _everywhere(port, shared) if not host else _resolved(host, port, shared)
    except OSError as error:
        where = f"`{host}`, port {port}" if host else f"port {port}"
        reason = REASONS.get(error.errno or 0, (error.strerror or str(error)).lower())
        raise ListenError(f"cannot listen on {where}: {reason}") from None


def listen_in_groups(host: str | None, port: int, count: int) -> list[list[socket.socket]]:
    """Return one group of listening sockets for each of `count` processes; just one for all where the system does not spread
    connections over several (docs/decisions/0023-workers.md). Raises ListenError.
    """
    alone = listen(host, port)  # it is refused where anybody else listens, which shared sockets of this user's are not
    if not SPREADS:
        return [alone]
    number = alone[0].getsockname()[1]
    for each in alone:
        each.close()
    groups: list[list[socket.socket]] = []
    try:
        for _ in range(count):
            groups.append(listen(host, number, shared=True))
    except ListenError:
        for each in chain.from_iterable(groups):
            each.close()
        raise
    return groups


def url(sockets: Sequence[socket.socket], host: str | None, path: str) -> str:
    """Return the address to open in a browser or to give to curl."""
    port = sockets[0].getsockname()[1]
    name = host or "localhost"
    return f"http://{f'[{name}]' if ':' in name else name}:{port}{path}"


def scope(sockets: Sequence[socket.socket], host: str | None) -> str:
    """Return in words which addresses are listened on, nothing where the address of `url` says it."""
    if host:
        return ""
    both = any(each.family == socket.AF_INET6 for each in sockets)
    return f" (all addresses, {'IPv6 and IPv4' if both else 'IPv4 only'})"


def _everywhere(port: int, shared: bool) -> list[socket.socket]:
    """Return one socket for all addresses of the machine."""
    if socket.has_dualstack_ipv6():
        try:
            family = socket.AF_INET6
            made = socket.create_server(
                ("", port), family=family, dualstack_ipv6=True, backlog=BACKLOG, reuse_port=shared
            )
            return [made]
        except OSError as error:
            if error.errno not in NO_IPV6:
                raise
    return [socket.create_server(("", port), family=socket.AF_INET, backlog=BACKLOG, reuse_port=shared)]


def _resolved(host: str, port: int, shared: bool) -> list[socket.socket]:
    """Return one socket for each address that `host` stands for; those of a family that is switched off are left out."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    opened: list[socket.socket] = []
    failed: OSError | None = None
    for family, address in dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found):
        chosen = opened[0].getsockname()[1] if opened else port
        try:
            opened.append(socket.create_server((address, chosen), family=family, backlog=BACKLOG, reuse_port=shared))
        except OSError as error:
            failed = error
            if error.errno not in NO_IPV6:
                break
    if failed is not None and (not opened or failed.errno not in NO_IPV6):
        for each in opened:
            each.close()
        raise failed
    return opened
