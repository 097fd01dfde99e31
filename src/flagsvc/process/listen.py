"""The sockets the proxy listens on, opened before anything else is built, so that a port in use is told at once."""

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
from flagsvc.process.tls_sockets import TlsServer
from flagsvc.settings.network import socket_path, url_at

BACKLOG = 2048
SPREADS = sys.platform == "linux"
"""Whether the system spreads new connections over all sockets that listen on one port."""
NO_IPV6 = frozenset({errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.EADDRNOTAVAIL})
REASONS = {
    errno.EADDRINUSE: "another program is listening there",
    errno.EACCES: "this user may not (ports below 1024 are often reserved)",
    errno.EADDRNOTAVAIL: "this machine does not have that address",
}
UNIX_REASONS = {
    **REASONS,
    errno.EACCES: "this user may not use that path",
    errno.ENOTSOCK: "a file is there that is no socket",
}
MODE = "0660"
PROBE_S = 1.0
"""Seconds that a program at a Unix socket has to take a connection; one that is too busy for that is there as well."""
KEEPS_FILE: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
"""The file of a Unix socket goes with the process that made it, not with the first worker that stops."""


def listen(host: str | None, port: int, *, shared: bool = False, mode: str = MODE) -> list[socket.socket]:
    """Return listening sockets for `host` and `port` (behaviour: Further options).

    No host, or an empty one, stands for all addresses: IPv6 together with IPv4, IPv4 alone where IPv6 is off. A
    name is resolved and every address of it is listened on; `unix:/path` is a Unix socket, whose file has `mode` and goes when
    the socket is closed. With `shared` other sockets of this user may listen there as well, if they say so too, and the kernel
    spreads new connections over all of them. Raises ListenError.
    """
    path = socket_path(host)
    try:
        if path is not None:
            return [UnixListener(path, int(mode, 8))]
        return _everywhere(port, shared) if not host else _resolved(host, port, shared)
    except OSError as error:
        where = f"port {port}" if not host else f"`{host}`, port {port}" if path is None else f"`{host}`"
        reasons = REASONS if path is None else UNIX_REASONS
        reason = reasons.get(error.errno or 0, (error.strerror or str(error)).lower())
        raise ListenError(f"cannot listen on {where}: {reason}") from None


class UnixListener(socket.socket):
    """A Unix socket that listens. Its file is there from the start with the right mode, and goes when this is closed."""

    def __init__(self, path: str, mode: int) -> None:
        """Take a path, and put away what a program that is gone has left there. Raises OSError."""
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self._path = path
        self._made: tuple[int, int] | None = None
        try:
            clear(path)
            before = os.umask(0o777 & ~mode)
            try:
                self.bind(path)
            finally:
                os.umask(before)
            os.chmod(path, mode)  # not every system obeys the umask here
            self._made = identity(path)
            self.listen(BACKLOG)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close it, and remove its file if that is still the one that was made."""
        if self._made is not None and identity(self._path) == self._made:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        self._made = None
        super().close()


def identity(path: str) -> tuple[int, int] | None:
    """Return what tells a file from any other that had its name before."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def clear(path: str) -> None:
    """Remove the file of a socket that nobody listens on. Raises OSError where somebody does, or where it is no socket."""
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


async def take(
    sock: socket.socket,
    make: Callable[[], Any],
    tls: ssl.SSLContext | None = None,
    handshake_s: float | None = None,
) -> asyncio.Server:
    """Take the connections of a listening socket, over TLS where its settings are given; `make` gives the protocol of each.

    A handshake has `handshake_s` seconds, None for asyncio's minute; over TLS what `make` gives is a `Handshaking`.
    """
    loop = asyncio.get_running_loop()
    if tls is not None:
        return cast("asyncio.Server", TlsServer(sock, make, tls, handshake_s))
    given: dict[str, Any] = {"sock": sock, "backlog": BACKLOG}
    if sock.family == socket.AF_UNIX:
        return await loop.create_unix_server(make, **given, **KEEPS_FILE)
    return await loop.create_server(make, **given)


def listen_in_groups(host: str | None, port: int, count: int, *, mode: str = MODE) -> list[list[socket.socket]]:
    """Return one group of listening sockets for each of `count` processes; just one for all where the system does not spread
    connections over several (decision 0023), as with a Unix socket. Raises ListenError.
    """
    # It is refused where anybody else listens, which shared sockets of this user's are not.
    alone = listen(host, port, mode=mode)
    if not SPREADS or alone[0].family == socket.AF_UNIX:
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


def url(sockets: Sequence[socket.socket], host: str | None, path: str, *, tls: bool = False) -> str:
    """Return the address of a path on the sockets that `listen` opened for `host`."""
    port = sockets[0].getsockname()[1] if socket_path(host) is None else 0
    return url_at(host or "localhost", port, path, tls=tls)


def scope(sockets: Sequence[socket.socket], host: str | None, more: str = "") -> str:
    """Return in words which addresses are listened on, with `more` behind it; nothing where the address of `url` says it."""
    if host:
        return ""
    both = any(each.family == socket.AF_INET6 for each in sockets)
    return f" (all addresses, {'IPv6 and IPv4' if both else 'IPv4 only'}{more})"


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
