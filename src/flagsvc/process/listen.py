"""The sockets that the process listens on. They are opened first, so that a port in use is reported immediately."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import stat
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, cast

from flagsvc.core.errors import ListenError
from flagsvc.process.tls import TlsServer
from flagsvc.settings.network import EVERY_ADDRESS, is_every_address, socket_path, url_at

BACKLOG = 2048
HAS_PORT_BALANCING = sys.platform == "linux"
"""Whether the system distributes new connections over all sockets that listen on one port."""
NO_IPV6 = frozenset({errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.EADDRNOTAVAIL})
REASONS = {
    errno.EADDRINUSE: "another program is listening there",
    errno.EACCES: "this user may not (ports below 1024 are often reserved)",
    errno.EADDRNOTAVAIL: "this machine does not have that address",
}
IPV4_INSTEAD = "this machine has no IPv6; without a host, flagsvc listens on what there is, and on IPv4 alone with 0.0.0.0"
UNIX_REASONS = {
    **REASONS,
    errno.EACCES: "this user may not use that path",
    errno.ENOTSOCK: "a file is there that is no socket",
}
DEFAULT_MODE = "0660"
PROBE_S = 1.0
"""Seconds that a program at a Unix socket has to take a connection. If it takes longer, it counts as listening but busy."""
KEEP_SOCKET_FILE: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
"""Keeps asyncio from removing the file of a Unix socket when the first worker stops. The process that made it removes it."""


def listen(host: str | None, port: int, *, shared: bool = False, mode: str = DEFAULT_MODE) -> list[socket.socket]:
    """Return listening sockets for `host` and `port` (behaviour: Further options).

    No host, or an empty one, means all addresses: IPv6 together with IPv4, or only IPv4 if IPv6 is off. `::` means both, and fails
    if IPv6 is off. A name is resolved, and there is a socket for each of its addresses. `unix:/path` is a Unix socket, whose file
    has `mode` and is removed when the socket is closed. With `shared`, other sockets of this user may share the port, and the
    kernel distributes new connections over all of them. Raises ListenError.
    """
    path = socket_path(host)
    try:
        if path is not None:
            return [UnixListener(path, int(mode, 8))]
        open_sockets = _listen_on_all if is_every_address(host) else _listen_on_host
        return open_sockets(host or "", port, shared)
    except OSError as error:
        where = f"port {port}" if not host else f"`{host}`, port {port}" if path is None else f"`{host}`"
        reasons = REASONS if path is None else UNIX_REASONS
        reason = reasons.get(error.errno or 0, (error.strerror or str(error)).lower())
        reason = IPV4_INSTEAD if host == EVERY_ADDRESS and error.errno in NO_IPV6 else reason
        raise ListenError(f"cannot listen on {where}: {reason}") from None


class UnixListener(socket.socket):
    """A Unix socket that listens. Its file has the right mode from the start, and is removed when the socket is closed."""

    def __init__(self, path: str, mode: int) -> None:
        """Listen on a path, after removing a socket file that another program has left there. Raises OSError."""
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self._path = path
        self._made: tuple[int, int] | None = None
        try:
            remove_stale_socket(path)
            before = os.umask(0o777 & ~mode)
            try:
                self.bind(path)
            finally:
                os.umask(before)
            os.chmod(path, mode)  # not every system obeys the umask here
            self._made = file_identity(path)
            self.listen(BACKLOG)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the socket, and remove its file unless another program has replaced it."""
        if self._made is not None and file_identity(self._path) == self._made:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        self._made = None
        super().close()


def file_identity(path: str) -> tuple[int, int] | None:
    """Return device and inode of a file, None if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def remove_stale_socket(path: str) -> None:
    """Remove the file of a socket that no program listens on. Raises OSError if a program does, or if it is not a socket."""
    try:
        kind = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise OSError(errno.ENOTSOCK, "")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_S)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except (TimeoutError, BlockingIOError):  # it is busy
            pass
    raise OSError(errno.EADDRINUSE, "")


async def serve_socket(
    sock: socket.socket,
    make: Callable[[], Any],
    tls: ssl.SSLContext | None = None,
    handshake_s: float | None = None,
) -> asyncio.Server:
    """Take the connections of a listening socket, over TLS if `tls` is given. `make` returns the protocol of a connection.

    A handshake may take `handshake_s` seconds, or asyncio's minute if that is None. Over TLS `make` returns a `Connection`.
    """
    loop = asyncio.get_running_loop()
    if tls is not None:
        return cast("asyncio.Server", TlsServer(sock, make, tls, handshake_s))
    given: dict[str, Any] = {"sock": sock, "backlog": BACKLOG}
    if sock.family == socket.AF_UNIX:
        return await loop.create_unix_server(make, **given, **KEEP_SOCKET_FILE)
    return await loop.create_server(make, **given)


def listen_in_groups(host: str | None, port: int, count: int, *, mode: str = DEFAULT_MODE) -> list[list[socket.socket]]:
    """Return one group of listening sockets for each of `count` processes. Raises ListenError.

    There is only one group for all if the system does not distribute connections over several sockets, and for a Unix socket
    (decision 0018).
    """
    # Unlike shared sockets, this one fails if another process of this user listens on the port.
    alone = listen(host, port, mode=mode)
    if not HAS_PORT_BALANCING or alone[0].family == socket.AF_UNIX:
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


def listen_url(sockets: Sequence[socket.socket], host: str | None, path: str, *, tls: bool = False) -> str:
    """Return the address of a path on the sockets that `listen` opened for `host`."""
    port = sockets[0].getsockname()[1] if socket_path(host) is None else 0
    return url_at("localhost" if is_every_address(host) else host or "", port, path, tls=tls)


def describe_scope(sockets: Sequence[socket.socket], host: str | None, more: str = "") -> str:
    """Return in words which addresses are listened on, with `more` behind it; nothing if the address of `url` says it."""
    if not is_every_address(host):
        return ""
    return f" (all addresses, {_families(sockets[0])}{more})"


def _families(sock: socket.socket) -> str:
    """Return in words from where a socket for all addresses takes connections."""
    if sock.family != socket.AF_INET6:
        return "IPv4 only"
    return "IPv6 only" if sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) else "IPv6 and IPv4"


def _listen_on_all(host: str, port: int, shared: bool) -> list[socket.socket]:
    """Return one socket for all addresses of the machine. Without a `host`, IPv4 alone is enough."""
    both = socket.has_dualstack_ipv6()
    if host or both:
        try:
            family = socket.AF_INET6
            made = socket.create_server((host, port), family=family, dualstack_ipv6=both, backlog=BACKLOG, reuse_port=shared)
            return [made]
        except OSError as error:
            if host or error.errno not in NO_IPV6:
                raise
    return [socket.create_server(("", port), family=socket.AF_INET, backlog=BACKLOG, reuse_port=shared)]


def _listen_on_host(host: str, port: int, shared: bool) -> list[socket.socket]:
    """Return one socket for each address of `host`. Addresses of a family that is switched off are left out."""
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
