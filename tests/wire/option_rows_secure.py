"""The effects of options of TLS, Unix sockets and the operators' address: one row for each tried value."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import stat
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection

from option_looks import can_connect, first_attempt, listening
from option_ways import AUTHORITY, PASSWORD, Row, refused

from flagsvc import ProxyOptions
from flagsvc.cli.health import ProbeTarget, probe_status
from flagsvc.core.errors import FlagsvcError
from support.aio import fate, until
from support.pki import HOST
from support.processes import answers, ask
from support.scene import Scene

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
    """See the protocol, or that the proxy does not start."""
    try:
        async with listening(options) as line:
            for name, context in (("https", AUTHORITY.client()), ("http", None)):
                if await asyncio.to_thread(asked, options.port, context) == 200:
                    return name, f"{name}://" in line
    except FlagsvcError:
        return "refused"
    return None


async def versions(scene: Scene, options: ProxyOptions) -> object:
    """See which versions of TLS are spoken."""
    async with listening(options):
        spoken = []
        for name, version in VERSIONS.items():
            context = AUTHORITY.client()
            context.minimum_version = context.maximum_version = version
            if await asyncio.to_thread(asked, options.port, context) == 200:
                spoken.append(name)
        return spoken


async def callers(scene: Scene, options: ProxyOptions) -> object:
    """See whether callers with and without a certificate are answered."""
    async with listening(options):
        contexts = (AUTHORITY.client(shown=True), AUTHORITY.client())
        return [await asyncio.to_thread(asked, options.port, each) == 200 for each in contexts]


async def slow_handshake(scene: Scene, options: ProxyOptions) -> object:
    """See whether a silent caller is cut off within GIVEN_UP_S."""
    async with listening(options):
        reader, writer = await asyncio.open_connection(HOST, options.port)
        try:
            return await fate(reader)
        finally:
            writer.close()


async def socket_file(scene: Scene, options: ProxyOptions) -> object:
    """See the mode of the Unix socket, whether it answers, and whether its file is gone in the end."""
    path = (options.host or "").removeprefix("unix:")
    async with listening(options):
        mode = stat.S_IMODE(os.stat(path).st_mode)
        status = await asyncio.to_thread(probe_status, ProbeTarget(f"unix:{path}", 0, LIVE), 10)
    return oct(mode), status, await asyncio.to_thread(os.path.exists, path)


async def where(scene: Scene, options: ProxyOptions) -> object:
    """See whether callers come in by a port or by a file."""
    async with listening(options):
        found = list(scene.folder.glob("*.sock"))
        return len(found), can_connect(HOST, options.port)


async def admin_address_server(scene: Scene, options: ProxyOptions) -> object:
    """See the answers to callers, and at the operators' address: about life, metrics and flags."""

    async def asked_at(host: str, port: int) -> list[int]:
        paths = ("/proxy/live", "/proxy/internal-backstage/prometheus", "/proxy")
        return [await asyncio.to_thread(probe_status, ProbeTarget(host, port, path), 10) for path in paths]

    async with listening(options) as line:
        port = port_in(line)
        await until(lambda: answers(f"http://{HOST}:{port}/proxy/health"), 20)
        here, admin = await asked_at(HOST, port), options.admin_address
        if admin is None:
            return here
        return here, await asked_at(*((admin, 0) if admin.startswith("unix:") else (HOST, port_in(admin))))


def port_in(text: str) -> int:
    """Return the port in an address."""
    return int(text.rpartition(":")[2].partition("/")[0])


async def admin_pages(scene: Scene, options: ProxyOptions) -> object:
    """See the answers of the pages at the operators' address: the status, and the flags without a key and with one."""
    async with listening(options) as line:
        url = f"http://{HOST}:{port_in(options.admin_address or '')}/ui"
        await until(lambda: answers(f"http://{HOST}:{port_in(line)}/proxy/health"), 20)
        tried = (("/status", False), ("/flags.json", False), ("/flags.json", True))
        sent = partial(ask, headers={"authorization": "key-of-pages"})
        return [(await asyncio.to_thread(sent if key else ask, f"{url}{path}")).status for path, key in tried]


PORT = {"port": "{port}"}
CERT, LOCKED = "{folder}/cert.pem", "{folder}/locked.pem"
HTTPS = {**PORT, "tlsCert": "{folder}/both.pem"}
TRUSTED = {"upstreamCa": "{folder}/ca.pem"}

SECURE = ("https", True)


def operated(text: str) -> Row:
    """Return a row of adminAddress: what callers and operators get about life, metrics and flags."""
    seen = ([200, 404, 401], [200, 200, 404])
    return Row("adminAddress", text, admin_address_server, seen, [200, 200, 401], beside={"port": "0"})


LISTENING = (
    Row("tlsCert", "{folder}/both.pem", scheme, SECURE, ("http", True), beside=PORT),
    Row("tlsKey", "{folder}/key.pem", scheme, SECURE, "refused", beside={**PORT, "tlsCert": CERT}),
    Row("tlsKeyPassword", PASSWORD, scheme, SECURE, "refused", beside={**PORT, "tlsCert": CERT, "tlsKey": LOCKED}),
    Row("tlsMinVersion", "TLSv1.3", versions, ["1.3"], ["1.2", "1.3"], beside=HTTPS),
    Row("tlsClientCa", "{folder}/ca.pem", callers, [True, False], [True, True], beside=HTTPS),
    Row("tlsHandshakeTimeout", "1", slow_handshake, "closed", "open", beside=HTTPS),
    Row("socketMode", "600", socket_file, ("0o600", 200, False), ("0o660", 200, False), beside={"host": "unix:{folder}/p.sock"}),
    Row("host", "unix:{folder}/p.sock", where, (1, False), (0, True), beside=PORT),
    operated("127.0.0.1:{port}"),
    Row(
        "adminPages",
        "false",
        admin_pages,
        [404, 404, 404],
        [200, 200, 200],
        beside={"port": "0", "adminAddress": "127.0.0.1:{port}"},
    ),
    Row(
        "adminPageKeys",
        "key-of-pages, another-key",
        admin_pages,
        [200, 401, 200],
        [200, 403, 403],
        native=("key-of-pages", "another-key"),
        beside={"port": "0", "adminAddress": "0.0.0.0:{port}"},
    ),
    operated("unix:{folder}/admin.sock"),
)


def shown(name: str, text: str, unset: object, **beside: str) -> Row:
    """Return a row of an option of the certificate that an upstream server asks for."""
    wanting = AUTHORITY.server(wants_certificate=True)
    return Row(name, text, first_attempt(), (200, False), unset, beside={**TRUSTED, **beside}, tls=wanting)


UPSTREAM = (
    Row("upstreamCa", "{folder}/ca.pem", first_attempt("certificate"), (200, False), (503, True), tls=AUTHORITY.server()),
    shown("upstreamCert", "{folder}/both.pem", (503, False)),
    shown("upstreamKey", "{folder}/key.pem", refused("upstreamCert"), upstreamCert=CERT),
    shown("upstreamKeyPassword", PASSWORD, refused("upstreamKey"), upstreamCert=CERT, upstreamKey=LOCKED),
)
