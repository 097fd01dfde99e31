"""The effects of options of TLS, Unix sockets and the operators' address: one row for each tried value."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import ssl
import stat
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection

from flagsvc import ConfigurationError, ProxyOptions
from flagsvc.cli.health import ProbeTarget, probe_status
from support.aio import fate, until
from support.option_observations import can_connect, listening
from support.option_ways import Observe, Row
from support.pki import HOST, Authority
from support.processes import answers, ask
from support.scene import Scene

AUTHORITY = Authority()
PAIR = AUTHORITY.issue()
PASSWORD = "open-sesame"
LIVE = "/proxy/live"
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def asked(port: int, context: ssl.SSLContext | None) -> int | None:
    """Return the status of an answer, or None; over TLS with a context."""
    made = HTTPConnection if context is None else partial(HTTPSConnection, context=context)
    line = made(HOST, port, timeout=10)
    with contextlib.closing(line), contextlib.suppress(OSError, HTTPException):
        line.request("GET", LIVE)
        return line.getresponse().status
    return None


async def scheme(scene: Scene, options: ProxyOptions) -> object:
    """Observe the protocol, or that the proxy does not start."""
    async with listening(options) as line:
        if "cannot" in line:
            return "refused"
        for name, context in (("https", AUTHORITY.client()), ("http", None)):
            if await asyncio.to_thread(asked, options.port, context) == 200:
                return name, f"{name}://" in line
    return None


async def versions(scene: Scene, options: ProxyOptions) -> object:
    """See which versions of TLS are spoken."""
    async with listening(options) as line:
        assert "listening" in line
        spoken = []
        for name, version in VERSIONS.items():
            context = AUTHORITY.client()
            context.minimum_version = context.maximum_version = version
            if await asyncio.to_thread(asked, options.port, context) == 200:
                spoken.append(name)
        return spoken


async def callers(scene: Scene, options: ProxyOptions) -> object:
    """See whether callers with and without a certificate are answered."""
    async with listening(options) as line:
        assert "listening" in line
        contexts = (AUTHORITY.client(shown=True), AUTHORITY.client())
        return [await asyncio.to_thread(asked, options.port, each) == 200 for each in contexts]


async def slow_handshake(scene: Scene, options: ProxyOptions) -> object:
    """See whether a silent caller is cut off within GIVEN_UP_S."""
    async with listening(options) as line:
        assert "listening" in line
        reader, writer = await asyncio.open_connection(HOST, options.port)
        try:
            return await fate(reader)
        finally:
            writer.close()


def there(path: str) -> bool:
    """Return whether a file is there."""
    return os.path.exists(path)


async def socket_file(scene: Scene, options: ProxyOptions) -> object:
    """See the mode of the Unix socket, whether it answers, and whether its file is gone in the end."""
    path = (options.host or "").removeprefix("unix:")
    async with listening(options) as line:
        assert "listening" in line
        mode = stat.S_IMODE(os.stat(path).st_mode)
        status = await asyncio.to_thread(probe_status, ProbeTarget(f"unix:{path}", 0, LIVE), 10)
    return oct(mode), status, there(path)


async def where(scene: Scene, options: ProxyOptions) -> object:
    """See whether callers come in by a port or by a file."""
    async with listening(options):
        found = list(scene.folder.glob("*.sock"))
        return len(found), can_connect(HOST, options.port)


async def admin_address_server(scene: Scene, options: ProxyOptions) -> object:
    """Observe the answers at the operators' address, and at the callers'."""
    places = {"health": "/proxy/live", "metrics": "/proxy/internal-backstage/prometheus", "flags": "/proxy"}
    async with listening(options) as line:
        found = re.search(r":(\d+)/", line)
        assert found is not None
        url = f"http://{HOST}:{found[1]}"
        await until(lambda: answers(f"{url}/proxy/health"), 20)
        here = [
            await asyncio.to_thread(probe_status, ProbeTarget(HOST, int(found[1]), path), 10)
            for path in places.values()
        ]
        admin = options.admin_address
        if admin is None:
            return here
        host, port = (admin, 0) if admin.startswith("unix:") else (HOST, int(admin.rpartition(":")[2]))
        there = [await asyncio.to_thread(probe_status, ProbeTarget(host, port, path), 10) for path in places.values()]
    return here, there


async def admin_pages(scene: Scene, options: ProxyOptions) -> object:
    """Observe the answers of the pages at the operators' address: the status, and the flags without a key and with one."""
    async with listening(options) as line:
        found = line.rpartition(":")[2].partition("/")[0]
        admin = options.admin_address or ""
        url = f"http://{HOST}:{admin.rpartition(':')[2]}/ui"
        await until(lambda: answers(f"http://{HOST}:{found}/proxy/health"), 20)
        tried = (("/status", False), ("/flags.json", False), ("/flags.json", True))
        sent = partial(ask, headers={"authorization": "key-of-pages"})
        return [(await asyncio.to_thread(sent if key else ask, f"{url}{path}")).status for path, key in tried]


def upstream(reason: str = "") -> Observe:
    """See whether the first attempt to reach the upstream works; and if not, whether the log has the reason."""

    async def look(scene: Scene, options: ProxyOptions) -> object:
        try:
            async with scene.proxy(options, ready=False) as proxy:
                await scene.waits(2)
                status = (await proxy.ask("GET", "/proxy")).status_code
        except ConfigurationError as error:
            return "refused", str(error).partition(":")[0]
        return status, bool(reason) and any(reason in line for line in scene.log)

    return look


FILES = {
    "both.pem": PAIR.both,
    "cert.pem": PAIR.cert,
    "key.pem": PAIR.key,
    "locked.pem": PAIR.locked(PASSWORD),
    "ca.pem": AUTHORITY.pem,
}
PORT = {"port": "{port}"}
HTTPS = {**PORT, "tlsCert": "{folder}/both.pem"}
TRUSTED = {"upstreamCa": "{folder}/ca.pem"}

LISTENING = (
    Row(
        name="tlsCert",
        text="{folder}/both.pem",
        files=FILES,
        beside=PORT,
        look=scheme,
        seen=("https", True),
        unset=("http", True),
    ),
    Row(
        name="tlsKey",
        text="{folder}/key.pem",
        files=FILES,
        beside={**PORT, "tlsCert": "{folder}/cert.pem"},
        look=scheme,
        seen=("https", True),
        unset="refused",
    ),
    Row(
        name="tlsKeyPassword",
        text=PASSWORD,
        files=FILES,
        beside={**PORT, "tlsCert": "{folder}/cert.pem", "tlsKey": "{folder}/locked.pem"},
        look=scheme,
        seen=("https", True),
        unset="refused",
    ),
    Row(
        name="tlsMinVersion",
        text="TLSv1.3",
        files=FILES,
        beside=HTTPS,
        look=versions,
        seen=["1.3"],
        unset=["1.2", "1.3"],
    ),
    Row(
        name="tlsClientCa",
        text="{folder}/ca.pem",
        files=FILES,
        beside=HTTPS,
        look=callers,
        seen=[True, False],
        unset=[True, True],
    ),
    Row(
        name="tlsHandshakeTimeout",
        text="1",
        native=1,
        files=FILES,
        beside=HTTPS,
        look=slow_handshake,
        seen="closed",
        unset="open",
    ),
    Row(
        name="socketMode",
        text="600",
        beside={"host": "unix:{folder}/p.sock"},
        look=socket_file,
        seen=("0o600", 200, False),
        unset=("0o660", 200, False),
    ),
    Row(
        name="host",
        text="unix:{folder}/p.sock",
        beside=PORT,
        look=where,
        seen=(1, False),
        unset=(0, True),
    ),
    Row(
        name="adminAddress",
        text="127.0.0.1:{port}",
        beside={"port": "0"},
        look=admin_address_server,
        seen=([200, 404, 401], [200, 200, 404]),
        unset=[200, 200, 401],
    ),
    Row(
        name="adminPages",
        text="false",
        native=False,
        beside={"port": "0", "adminAddress": "127.0.0.1:{port}"},
        look=admin_pages,
        seen=[404, 404, 404],
        unset=[200, 200, 200],
    ),
    Row(
        name="adminPageKeys",
        text="key-of-pages, another-key",
        native=("key-of-pages", "another-key"),
        beside={"port": "0", "adminAddress": "0.0.0.0:{port}"},
        look=admin_pages,
        seen=[200, 401, 200],
        unset=[200, 403, 403],
    ),
    Row(
        name="adminAddress",
        text="unix:{folder}/admin.sock",
        beside={"port": "0"},
        look=admin_address_server,
        seen=([200, 404, 401], [200, 200, 404]),
        unset=[200, 200, 401],
    ),
)

UPSTREAM = (
    Row(
        name="upstreamCa",
        text="{folder}/ca.pem",
        files=FILES,
        tls=AUTHORITY.server(),
        look=upstream("certificate"),
        seen=(200, False),
        unset=(503, True),
    ),
    Row(
        name="upstreamCert",
        text="{folder}/both.pem",
        files=FILES,
        beside=TRUSTED,
        tls=AUTHORITY.server(wants_certificate=True),
        look=upstream(),
        seen=(200, False),
        unset=(503, False),
    ),
    Row(
        name="upstreamKey",
        text="{folder}/key.pem",
        files=FILES,
        beside={**TRUSTED, "upstreamCert": "{folder}/cert.pem"},
        tls=AUTHORITY.server(wants_certificate=True),
        look=upstream(),
        seen=(200, False),
        unset=("refused", "upstreamCert"),
    ),
    Row(
        name="upstreamKeyPassword",
        text=PASSWORD,
        files=FILES,
        beside={**TRUSTED, "upstreamCert": "{folder}/cert.pem", "upstreamKey": "{folder}/locked.pem"},
        tls=AUTHORITY.server(wants_certificate=True),
        look=upstream(),
        seen=(200, False),
        unset=("refused", "upstreamKey"),
    ),
)
