"""The session with the upstream over TLS: authorities of one's own, a certificate of one's own, and both changed while it runs."""

from __future__ import annotations

from pathlib import Path

from flagsvc.core.certificates import CertificateFiles
from flagsvc.http.client.trust import OWN
from flagsvc.proxy.upstream import Trust, Upstream
from flagsvc.testing import FakeClock, RecordingLog
from support.aio import asynchronous
from support.loopback import loopback, reply
from support.pki import Authority, written
from support.upstream_session import DOCUMENT, fault, options

OURS, THEIRS = Authority(), Authority()


def presented(folder: Path, authority: Authority) -> CertificateFiles:
    """Write a certificate to a file, in place of its content, and return the path."""
    return CertificateFiles(OWN, written(folder, "own.pem", authority.issue().both))


@asynchronous
async def test_an_authority_of_ones_own(tmp_path: Path) -> None:
    """Its servers are trusted with it, and not without."""
    async with loopback(OURS.server()) as server:
        server.script(reply(200, DOCUMENT))
        plain = Upstream(options(f"{server.url}/api"), clock=FakeClock(), log=RecordingLog())
        assert "certificate verify failed" in str(await fault(plain))
        trust = Trust(ca=written(tmp_path, "ca.pem", OURS.pem))
        trusting = Upstream(options(f"{server.url}/api", trust=trust), clock=FakeClock(), log=RecordingLog())
        assert (await trusting.get_features(None)).body == DOCUMENT
        await plain.aclose()
        await trusting.aclose()


@asynchronous
async def test_a_certificate_of_ones_own(tmp_path: Path) -> None:
    """A server that wants one gets it; without it, or with a stranger's, there is no answer."""
    ca = written(tmp_path, "ca.pem", OURS.pem)
    async with loopback(OURS.server(wants_certificate=True)) as server:
        server.script(reply(200, DOCUMENT))
        for own in (None, presented(tmp_path, THEIRS)):
            stranger = Upstream(
                options(f"{server.url}/api", trust=Trust(ca=ca, own=own)), clock=FakeClock(), log=RecordingLog()
            )
            assert (await fault(stranger)).kind == "network"
            await stranger.aclose()
        known = Trust(ca=ca, own=presented(tmp_path, OURS))
        upstream = Upstream(options(f"{server.url}/api", trust=known), clock=FakeClock(), log=RecordingLog())
        assert (await upstream.get_features(None)).body == DOCUMENT
        await upstream.aclose()


@asynchronous
async def test_files_that_change_are_read_anew(tmp_path: Path) -> None:
    """New files apply from the request after next. If they cannot be used, the old ones stay, with one log line."""
    log = RecordingLog()
    ca = written(tmp_path, "ca.pem", OURS.pem)
    trust = Trust(ca=ca, own=presented(tmp_path, OURS))
    async with loopback(OURS.server(wants_certificate=True)) as server:
        server.script(reply(200, DOCUMENT))
        upstream = Upstream(options(f"{server.url}/api", trust=trust), clock=FakeClock(), log=log)
        await upstream.get_features(None)
        written(tmp_path, "own.pem", "half a file")
        for _ in range(4):
            await upstream.get_features(None)
        assert server.connections == 1
        assert [line.event for line in log.lines if line.level == "error"] == [
            "the new certificates towards the upstream are refused"
        ]
        presented(tmp_path, OURS)
        for _ in range(3):
            await upstream.get_features(None)
        assert server.connections == 2
        written(tmp_path, "ca.pem", THEIRS.pem)
        await upstream.get_features(None)
        assert "certificate verify failed" in str(await fault(upstream))
        await upstream.aclose()
