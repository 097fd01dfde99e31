"""Unix sockets: who may connect, leftover files, and removal at the end."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from pathlib import Path
from unittest.mock import Mock

import pytest

from flagsvc.core.errors import ListenError
from flagsvc.process import listen as module
from flagsvc.process.listen import describe_scope, listen, listen_in_groups, listen_url, remove_stale_socket, serve_socket
from flagsvc.process.process import loop_factory
from flagsvc.settings.table import BY_NAME
from unit.process.test_listen import reach
from unit.process.test_tls_sockets import Counting


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
