"""Listening sockets: all addresses, one address, and the messages of failures.

Unix sockets: who may connect, leftover files, and removal at the end.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from unittest.mock import Mock

import pytest

from flagsvc.core.errors import ListenError
from flagsvc.process import listen as module
from flagsvc.process.listen import describe_scope, listen, listen_in_groups, listen_url, remove_stale_socket, serve_socket
from flagsvc.process.process import loop_factory
from flagsvc.settings.table import BY_NAME
from support.needs import missing
from unit.process.test_tls import Counting


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on, on every address."""
    with socket.create_server(("", 0)) as server:
        yield server.getsockname()[1]


def reach(family: socket.AddressFamily, address: tuple[str, int] | str) -> None:
    with closing(socket.socket(family)) as client:
        client.settimeout(5)
        client.connect(address)


@pytest.mark.parametrize("host", [None, "", "::"])
def test_all_addresses(host: str | None) -> None:
    """Without a host and with `::`, one socket accepts IPv4 and IPv6 callers, and the line says so."""
    if not socket.has_dualstack_ipv6():
        missing("this machine has no IPv6")
    [server] = listen(host, 0)
    with server:
        port = server.getsockname()[1]
        reach(socket.AF_INET, ("127.0.0.1", port))
        reach(socket.AF_INET6, ("::1", port))
        assert listen_url([server], host, "/base/proxy") == f"http://localhost:{port}/base/proxy"
        assert describe_scope([server], host) == " (all addresses, IPv6 and IPv4)"


def without_ipv6(monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    """Let every socket of IPv6 fail."""
    make = socket.create_server

    def refuse(address: tuple[str, int], *, family: int, **given: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(error, "no")
        return make(address, family=family, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "create_server", refuse)


@pytest.mark.parametrize("error", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_ipv4_alone(monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    """If IPv6 is off, in the kernel or by a setting, the socket is IPv4 only."""
    without_ipv6(monkeypatch, error)
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: True)
    [server] = listen("", 0)
    with server:
        assert server.family == socket.AF_INET
        assert describe_scope([server], "") == " (all addresses, IPv4 only)"
        reach(socket.AF_INET, ("127.0.0.1", server.getsockname()[1]))


@pytest.mark.parametrize("error", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_every_address_where_ipv6_is_off(monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    """`::` asks for IPv6, so it does not become IPv4 alone unseen: the error says how to listen there."""
    without_ipv6(monkeypatch, error)
    with pytest.raises(ListenError) as caught:
        listen("::", 3000)
    assert str(caught.value) == (
        "cannot listen on `::`, port 3000: this machine has no IPv6; without a host, flagsvc listens on what there is, and on IPv4"
        " alone with 0.0.0.0"
    )


def test_ipv6_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a system whose sockets have one family each, `::` is IPv6 alone, and the line says so."""
    if not socket.has_ipv6:
        missing("this machine has no IPv6")
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    [server] = listen("::", 0)
    with server:
        assert describe_scope([server], "::") == " (all addresses, IPv6 only)"
        reach(socket.AF_INET6, ("::1", server.getsockname()[1]))


def test_no_ipv6_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """If Python has no IPv6, it is not tried."""
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    [server] = listen(None, 0)
    with server:
        assert server.family == socket.AF_INET


def test_an_ipv6_address_is_put_in_brackets() -> None:
    """The address of the line can be given to curl."""
    if not socket.has_ipv6:
        missing("this machine has no IPv6")
    [server] = listen("::1", 0)
    with server:
        assert listen_url([server], "::1", "") == f"http://[::1]:{server.getsockname()[1]}"


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Resolve every name to these addresses."""
    rows = [(socket.AF_INET6 if ":" in each else socket.AF_INET, 0, 0, "", (each, 0)) for each in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **given: rows)


def test_every_address_of_a_name_with_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with two addresses is listened on at both, also when the port is drawn."""
    resolve_to(monkeypatch, "127.0.0.1", "127.0.0.2")
    first, second = listen("some-name", 0)
    with first, second:
        assert first.getsockname()[1] == second.getsockname()[1]


def test_an_address_of_a_family_that_is_off_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """`localhost` also works if ::1 is in the hosts file and IPv6 is off."""
    without_ipv6(monkeypatch, errno.EADDRNOTAVAIL)
    resolve_to(monkeypatch, "::1", "127.0.0.1")
    [server] = listen("localhost", 0)
    with server:
        assert server.getsockname()[0] == "127.0.0.1"


def test_all_or_nothing(monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    """When one address of a name is taken, none stays open."""
    opened: list[socket.socket] = []
    make = socket.create_server

    def first_works(address: tuple[str, int], **given: int) -> socket.socket:
        if opened:
            raise OSError(errno.EADDRINUSE, "taken")
        opened.append(make((address[0], 0), **given))  # type: ignore[arg-type]
        return opened[0]

    monkeypatch.setattr(socket, "create_server", first_works)
    resolve_to(monkeypatch, "127.0.0.1", "127.0.0.2")
    with pytest.raises(ListenError):
        listen("some-name", taken)
    assert opened[0].fileno() == -1


def test_why_it_cannot_listen(monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    """The port in use, or the host that is another machine's or unknown, and the reason are named, in one line."""
    unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    for host, port, told in (
        (None, taken, f"port {taken}: another program is listening there"),
        ("192.0.2.1", 3000, "`192.0.2.1`, port 3000: this machine does not have that address"),
        ("nowhere", 1, "`nowhere`, port 1: name or service not known"),
    ):
        if host == "nowhere":
            monkeypatch.setattr(socket, "getaddrinfo", Mock(side_effect=unknown))
        with pytest.raises(ListenError) as caught:
            listen(host, port)
        assert str(caught.value) == f"cannot listen on {told}"


@pytest.mark.parametrize("host", [None, "::", "127.0.0.1", "localhost"])
def test_groups_share_one_port(host: str | None) -> None:
    """Each process gets sockets of its own for every address, all on one port, and callers reach them."""
    if not module.HAS_PORT_BALANCING:
        missing("this system does not spread connections over sockets")
    groups = listen_in_groups(host, 0, 3)
    with ExitStack() as opened:
        for each in chain.from_iterable(groups):
            opened.enter_context(each)
        assert len(groups) == 3 and len({len(group) for group in groups}) == 1
        [port] = {each.getsockname()[1] for each in chain.from_iterable(groups)}
        assert port != 0
        reach(socket.AF_INET, ("127.0.0.1", port))
        with pytest.raises(ListenError, match="another program is listening there"):
            listen_in_groups(host, port, 2)
        with pytest.raises(ListenError, match="another program is listening there"):
            listen(host, port)


def test_one_group_where_nothing_is_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """On other systems all processes share the same sockets."""
    monkeypatch.setattr(module, "HAS_PORT_BALANCING", False)
    [[only]] = listen_in_groups("127.0.0.1", 0, 3)
    only.close()


def test_no_group_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a group fails, the groups before it are closed."""
    if not module.HAS_PORT_BALANCING:
        missing("this system does not spread connections over sockets")
    make, opened = module.listen, list[socket.socket]()

    def some(host: str | None, port: int, *, shared: bool = False, mode: str = "") -> list[socket.socket]:
        if len(opened) == 2:
            raise ListenError("no")
        made = make(host, port, shared=shared)
        opened.extend(made if shared else [])
        return made

    monkeypatch.setattr(module, "listen", some)
    with pytest.raises(ListenError):
        listen_in_groups("127.0.0.1", 0, 3)
    assert [each.fileno() for each in opened] == [-1, -1]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a path for a socket."""
    return str(tmp_path / "p.sock")


@pytest.mark.parametrize("mode", ["0600", "0660", "0666"])
def test_the_file_has_its_mode_and_goes_with_the_socket(path: str, mode: str) -> None:
    """From the start, only its owner can connect. The file is removed at the end."""
    before = os.umask(0o022)
    try:
        [server] = listen(f"unix:{path}", 3000, mode=mode)
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
    with server:
        assert stat.S_IMODE(os.stat(path).st_mode) == int(mode, 8)
        reach(socket.AF_UNIX, path)
        assert listen_url([server], f"unix:{path}", "/proxy") == f"http://unix:{path}:/proxy"
        assert listen_url([server], f"unix:{path}", "/proxy", tls=True) == f"https://unix:{path}:/proxy"
        assert describe_scope([server], f"unix:{path}") == ""
    assert not os.path.exists(path)


def test_what_a_killed_program_left_is_put_away(path: str) -> None:
    """A socket file without a listener does not prevent the next start."""
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(path)
        killed.listen()
    assert os.path.exists(path)
    [server] = listen(f"unix:{path}", 0)
    with server:
        reach(socket.AF_UNIX, path)


def test_the_socket_of_another_server_stays(path: str) -> None:
    """The error names the path and the reason. The other server continues, also one with a full queue."""
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(path)
        other.listen(0)
        waiting = []
        for _ in range(3):
            waiting.append(socket.socket(socket.AF_UNIX))
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(path)
            with pytest.raises(ListenError) as caught:
                listen(f"unix:{path}", 0)
            assert str(caught.value) == f"cannot listen on `unix:{path}`: another program is listening there"
        for each in waiting:
            each.close()
    assert os.path.exists(path)


def test_a_file_that_is_no_socket_is_left_alone(path: str) -> None:
    """It may be somebody's data."""
    Path(path).write_text("data")
    with pytest.raises(ListenError, match="a file is there that is no socket"):
        listen(f"unix:{path}", 0)
    assert Path(path).read_text() == "data"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """The error has the system's message."""
    with pytest.raises(ListenError, match="no such file or directory"):
        listen(f"unix:{tmp_path}/gone/p.sock", 0)


def test_a_successors_file_is_not_removed(path: str) -> None:
    """Who took the path over keeps it."""
    [first] = listen(f"unix:{path}", 0)
    os.unlink(path)
    [second] = listen(f"unix:{path}", 0)
    first.close()
    reach(socket.AF_UNIX, path)
    second.close()
    assert not os.path.exists(path)


def test_nothing_is_left_where_it_fails(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure, neither a file nor an open socket remains."""
    monkeypatch.setattr(os, "chmod", Mock(side_effect=PermissionError(1, "no")))
    with pytest.raises(ListenError):
        listen(f"unix:{path}", 0)
    monkeypatch.undo()
    remove_stale_socket(path)
    assert not os.path.exists(path)


def test_processes_share_one_socket(path: str) -> None:
    """A path is one socket; the kernel gives each connection to one of those who wait for it."""
    groups = listen_in_groups(f"unix:{path}", 0, 3, mode="0600")
    assert len(groups) == 1 and len(groups[0]) == 1
    groups[0][0].close()
    assert BY_NAME["socketMode"].default == module.DEFAULT_MODE


def there(path: str) -> bool:
    return os.path.exists(path)


@pytest.mark.parametrize("make", [None, loop_factory()], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("inherited", [False, True])
def test_connections_are_taken(path: str, make: object, inherited: bool) -> None:
    """Connections are accepted in both event loops. A worker, which inherits the socket, leaves the file in place."""

    async def run() -> bytes:
        [sock] = listen(f"unix:{path}", 0)
        given = socket.socket(fileno=os.dup(sock.fileno())) if inherited else sock
        server = await serve_socket(given, Counting())
        reader, writer = await asyncio.open_unix_connection(path)
        said = await reader.read()
        writer.close()
        server.close()
        given.close()
        await asyncio.sleep(0)
        assert there(path) == inherited
        sock.close()
        return said

    with asyncio.Runner(loop_factory=make) as runner:  # type: ignore[arg-type]
        assert runner.run(asyncio.wait_for(run(), 20)) == b"hello"
    assert not os.path.exists(path)
