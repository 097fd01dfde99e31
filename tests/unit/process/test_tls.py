"""TLS of the listening sockets: versions, client certificates, changed files, and files that cannot be used."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path
from typing import Any

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.process.process import loop_factory
from flagsvc.process.tls import Tls, make_tls
from flagsvc.settings.server import ServerOptions
from flagsvc.testing import RecordingLog
from support.aio import until
from support.pki import HOST, Authority, serial, written
from unit.process.test_tls_sockets import Counting, serving

OURS, THEIRS = Authority(), Authority()


def given(cert: str | None = None, **more: Any) -> ServerOptions:
    return ServerOptions(database="flags.db", tls_cert=cert, **more)


async def call(port: int, context: ssl.SSLContext) -> ssl.SSLObject | None:
    """Return the other side's certificate and version; None if it does not answer."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        reader, writer = await asyncio.open_connection(HOST, port, ssl=context)
        with contextlib.closing(writer):
            assert await reader.readexactly(5) == b"hello"
            found: ssl.SSLObject = writer.get_extra_info("ssl_object")
            return found
    return None


def only(version: ssl.TLSVersion) -> ssl.SSLContext:
    context = OURS.client()
    context.minimum_version = context.maximum_version = version
    return context


async def test_versions_and_protocol(tmp_path: Path) -> None:
    """TLS 1.2 and 1.3 are accepted, or 1.3 alone; nothing below. HTTP/1.1 is negotiated."""
    both = written(tmp_path, "both.pem", OURS.issue().both)
    for lowest, spoken in (("1.2", [True, True]), ("1.3", [False, True])):
        tls = Tls(given(both, tls_min_version=lowest), RecordingLog())
        async with serving(Counting(closes=False), context=tls.context) as (_, port):
            found = [await call(port, only(each)) for each in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)]
            assert [each is not None for each in found] == spoken
            caller = OURS.client()
            caller.set_alpn_protocols(["h2", "http/1.1"])
            peer = await call(port, caller)
            assert peer is not None and peer.selected_alpn_protocol() == "http/1.1"


async def changes(folder: Path) -> None:
    """Change certificate and authorities under a server."""
    log = RecordingLog()
    cert, ca = written(folder, "a.pem", OURS.issue().both), written(folder, "ca", OURS.pem)
    tls = Tls(given(cert, tls_client_ca=ca), log)
    async with serving(Counting(closes=False), context=tls.context) as (_, port):
        caller = OURS.client(shown=True)
        before = await call(port, caller)
        reader, writer = await asyncio.open_connection(HOST, port, ssl=caller)
        await reader.readexactly(5)
        written(folder, "a.pem", OURS.issue().both)
        assert tls.reload()
        after = await call(port, caller)
        assert after is not None and tls.expiry == ssl.cert_time_to_seconds(str((after.getpeercert() or {})["notAfter"]))
        assert before is not None and serial(before) != serial(after)
        assert not reader.at_eof()  # what was begun goes on
        writer.close()
        written(folder, "a.pem", "nothing")
        assert not tls.reload()
        still = await call(port, caller)
        assert still is not None and serial(still) == serial(after)
        written(folder, "a.pem", OURS.issue().both)
        written(folder, "ca", THEIRS.pem)
        assert tls.reload()
        assert await call(port, caller) is None  # nor by resuming a session that was good before
    assert [line.event for line in log.lines if line.level == "error"] == ["the new TLS files are refused"]


@pytest.mark.parametrize("make", [None, loop_factory()], ids=["asyncio", "uvloop"])
def test_files_are_read_anew(make: object, tmp_path: Path) -> None:
    """The next handshake has the new ones, in both event loops; a pair that cannot be used changes nothing."""
    with asyncio.Runner(loop_factory=make) as runner:  # type: ignore[arg-type]
        runner.run(asyncio.wait_for(changes(tmp_path), 30))


async def test_changed_files_are_noticed(tmp_path: Path) -> None:
    """Changed files are noticed by regular checks. A failed check is not the last one."""
    log = RecordingLog()
    async with Tls(given(written(tmp_path, "a.pem", OURS.issue().both)), log, 0.01):
        for text, events in (("x", 1), (OURS.issue().both, 2)):
            written(tmp_path, "a.pem", text)
            await until(lambda: len(log.lines) == events)  # noqa: B023
    assert [line.level for line in log.lines] == ["error", "info"]


def test_none_without_a_certificate(tmp_path: Path) -> None:
    """Without a certificate there is no TLS. A file that cannot be used stops the start."""
    assert make_tls(given(), RecordingLog()) is None
    path = written(tmp_path, "a.pem", OURS.issue().cert)
    with pytest.raises(ConfigurationError, match=r"tlsCert: .* holds no key in PEM form; give tlsKey"):
        make_tls(given(path), RecordingLog())
    good = given(written(tmp_path, "b.pem", OURS.issue().both), tls_client_ca=str(tmp_path / "gone"))
    with pytest.raises(ConfigurationError, match="tlsClientCa: cannot read"):
        make_tls(good, RecordingLog())
