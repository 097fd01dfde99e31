"""The effects of options of the storage server: one row for each tried value."""

from __future__ import annotations

import asyncio
import socket

from flagsvc import ConfigurationError, ProxyOptions
from flagsvc.settings.storage import server_at
from support.aio import until
from support.environments import only
from support.option_ways import Observe, Row, named_in
from support.pki import Authority
from support.redises import redis_server
from support.scene import Scene

AUTHORITY = Authority()
PAIR = AUTHORITY.issue()
PASSWORD = "open-sesame"
SHORT_S = 1.9
"""Well above the time-out of the rows, well below the default."""


def port_of(options: ProxyOptions) -> int | None:
    """Return the port of the storage server in the options; None for another storage."""
    server = server_at(options.storage)
    return None if server is None else server.port


def stored(*, password: str | None = None, tls: Authority | None = None, clients: str = "no") -> Observe:
    """Observe the beginnings of the names that a proxy stores on the server, or the refused option."""

    async def look(scene: Scene, options: ProxyOptions) -> object:
        with redis_server(port=port_of(options), password=password, tls=tls, clients=clients) as server:
            try:
                async with scene.proxy(options):
                    pass
            except ConfigurationError as error:
                return named_in(error)
            return [name.rpartition(":")[0] for name in server.names()]

    return look


async def patient(scene: Scene, options: ProxyOptions) -> object:
    """See whether a server that takes connections and says nothing is waited for."""
    with socket.create_server(("127.0.0.1", port_of(options) or 0)):
        began = asyncio.get_running_loop().time()
        async with scene.proxy(options) as proxy:
            await until(only(proxy.app).storage_errors)
            return asyncio.get_running_loop().time() - began > SHORT_S


FILES = {
    "both.pem": PAIR.both,
    "cert.pem": PAIR.cert,
    "key.pem": PAIR.key,
    "locked.pem": PAIR.locked(PASSWORD),
    "ca.pem": AUTHORITY.pem,
}
SERVER = {"storage": "redis://127.0.0.1:{port}/0"}
SECURE = {"storage": "rediss://127.0.0.1:{port}/0"}
TRUSTED = {**SECURE, "storageCa": "{folder}/ca.pem"}
MUTUAL = stored(tls=AUTHORITY, clients="yes")

STORAGE = (
    Row(
        name="storage",
        text="valkey://127.0.0.1:{port}/0",
        look=stored(),
        seen=["flagsvc:store"],
        unset=[],
    ),
    Row(
        name="storage",
        text=f"redis://default:{PASSWORD}@127.0.0.1:{{port}}",
        look=stored(password=PASSWORD),
        seen=["flagsvc:store"],
        unset=[],
    ),
    Row(
        name="storagePassword",
        text=PASSWORD,
        beside=SERVER,
        look=stored(password=PASSWORD),
        seen=["flagsvc:store"],
        unset=[],
    ),
    Row(
        name="storageCa",
        text="{folder}/ca.pem",
        files=FILES,
        beside=SECURE,
        look=stored(tls=AUTHORITY),
        seen=["flagsvc:store"],
        unset=[],
    ),
    Row(
        name="storageCert",
        text="{folder}/both.pem",
        files=FILES,
        beside=TRUSTED,
        look=MUTUAL,
        seen=["flagsvc:store"],
        unset=[],
    ),
    Row(
        name="storageKey",
        text="{folder}/key.pem",
        files=FILES,
        beside={**TRUSTED, "storageCert": "{folder}/cert.pem"},
        look=MUTUAL,
        seen=["flagsvc:store"],
        unset=("refused", "storageCert"),
    ),
    Row(
        name="storageKeyPassword",
        text=PASSWORD,
        files=FILES,
        beside={**TRUSTED, "storageCert": "{folder}/cert.pem", "storageKey": "{folder}/locked.pem"},
        look=MUTUAL,
        seen=["flagsvc:store"],
        unset=("refused", "storageKey"),
    ),
    Row(
        name="storageTimeout",
        text="100",
        native=100,
        beside=SERVER,
        look=patient,
        seen=False,
        unset=True,
    ),
    Row(
        name="storagePrefix",
        text="flags:eu",
        beside=SERVER,
        look=stored(),
        seen=["flags:eu:store"],
        unset=["flagsvc:store"],
    ),
)
