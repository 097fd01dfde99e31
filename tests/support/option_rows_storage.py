"""The effects of options of the storage server: one row for each tried value."""

from __future__ import annotations

from support import option_observations_storage as see
from support.option_observations_storage import AUTHORITY, PAIR, PASSWORD
from support.option_ways import Row

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
MUTUAL = see.stored(tls=AUTHORITY, clients="yes")

STORAGE = (
    Row(
        name="storage",
        text="valkey://127.0.0.1:{port}/0",
        look=see.stored(),
        seen=["flagsvc:store"],
        unset=[],
    ),
    Row(
        name="storage",
        text=f"redis://default:{PASSWORD}@127.0.0.1:{{port}}",
        look=see.stored(password=PASSWORD),
        seen=["flagsvc:store"],
        unset=[],
    ),
    Row(
        name="storagePassword",
        text=PASSWORD,
        beside=SERVER,
        look=see.stored(password=PASSWORD),
        seen=["flagsvc:store"],
        unset=[],
    ),
    Row(
        name="storageCa",
        text="{folder}/ca.pem",
        files=FILES,
        beside=SECURE,
        look=see.stored(tls=AUTHORITY),
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
        look=see.patient,
        seen=False,
        unset=True,
    ),
    Row(
        name="storagePrefix",
        text="flags:eu",
        beside=SERVER,
        look=see.stored(),
        seen=["flags:eu:store"],
        unset=["flagsvc:store"],
    ),
)
