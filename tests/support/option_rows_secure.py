"""The effects of options of TLS, Unix sockets and the operators' address: one row for each tried value."""

from __future__ import annotations

from support import option_observations_secure as see
from support.option_observations_secure import AUTHORITY, PAIR, PASSWORD
from support.option_ways import Row

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
        look=see.scheme,
        seen=("https", True),
        unset=("http", True),
    ),
    Row(
        name="tlsKey",
        text="{folder}/key.pem",
        files=FILES,
        beside={**PORT, "tlsCert": "{folder}/cert.pem"},
        look=see.scheme,
        seen=("https", True),
        unset="refused",
    ),
    Row(
        name="tlsKeyPassword",
        text=PASSWORD,
        files=FILES,
        beside={**PORT, "tlsCert": "{folder}/cert.pem", "tlsKey": "{folder}/locked.pem"},
        look=see.scheme,
        seen=("https", True),
        unset="refused",
    ),
    Row(
        name="tlsMinVersion",
        text="TLSv1.3",
        files=FILES,
        beside=HTTPS,
        look=see.versions,
        seen=["1.3"],
        unset=["1.2", "1.3"],
    ),
    Row(
        name="tlsClientCa",
        text="{folder}/ca.pem",
        files=FILES,
        beside=HTTPS,
        look=see.callers,
        seen=[True, False],
        unset=[True, True],
    ),
    Row(
        name="tlsHandshakeTimeout",
        text="1",
        native=1,
        files=FILES,
        beside=HTTPS,
        look=see.slow_handshake,
        seen="closed",
        unset="open",
    ),
    Row(
        name="socketMode",
        text="600",
        beside={"host": "unix:{folder}/p.sock"},
        look=see.socket_file,
        seen=("0o600", 200, False),
        unset=("0o660", 200, False),
    ),
    Row(
        name="host",
        text="unix:{folder}/p.sock",
        beside=PORT,
        look=see.where,
        seen=(1, False),
        unset=(0, True),
    ),
    Row(
        name="adminAddress",
        text="127.0.0.1:{port}",
        beside={"port": "0"},
        look=see.admin_address_server,
        seen=([200, 404, 401], [200, 200, 404]),
        unset=[200, 200, 401],
    ),
    Row(
        name="adminPages",
        text="false",
        native=False,
        beside={"port": "0", "adminAddress": "127.0.0.1:{port}"},
        look=see.admin_pages,
        seen=[404, 404, 404],
        unset=[200, 200, 200],
    ),
    Row(
        name="adminPageKeys",
        text="key-of-pages, another-key",
        native=("key-of-pages", "another-key"),
        beside={"port": "0", "adminAddress": "0.0.0.0:{port}"},
        look=see.admin_pages,
        seen=[200, 401, 200],
        unset=[200, 403, 403],
    ),
    Row(
        name="adminAddress",
        text="unix:{folder}/admin.sock",
        beside={"port": "0"},
        look=see.admin_address_server,
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
        look=see.upstream("certificate"),
        seen=(200, False),
        unset=(503, True),
    ),
    Row(
        name="upstreamCert",
        text="{folder}/both.pem",
        files=FILES,
        beside=TRUSTED,
        tls=AUTHORITY.server(wants_certificate=True),
        look=see.upstream(),
        seen=(200, False),
        unset=(503, False),
    ),
    Row(
        name="upstreamKey",
        text="{folder}/key.pem",
        files=FILES,
        beside={**TRUSTED, "upstreamCert": "{folder}/cert.pem"},
        tls=AUTHORITY.server(wants_certificate=True),
        look=see.upstream(),
        seen=(200, False),
        unset=("refused", "upstreamCert"),
    ),
    Row(
        name="upstreamKeyPassword",
        text=PASSWORD,
        files=FILES,
        beside={**TRUSTED, "upstreamCert": "{folder}/cert.pem", "upstreamKey": "{folder}/locked.pem"},
        tls=AUTHORITY.server(wants_certificate=True),
        look=see.upstream(),
        seen=(200, False),
        unset=("refused", "upstreamKey"),
    ),
)
