"""The effects of options of evaluation, storage, logs and experiments: one row for each tried value."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping

from flagsvc import ConfigurationError, Context, ContextView, ProxyOptions, Strategy
from flagsvc.settings.storage import server_at
from flagsvc.testing import MemoryStore
from support import option_observations as see
from support.aio import until
from support.environments import only
from support.option_observations import Notes, ask, names, statuses
from support.option_ways import Observe, Row, named_in
from support.pki import Authority
from support.redises import redis_server
from support.scene import Scene, document, toggle

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

REDIS = (
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


STRATEGY_FILE = """
class EnabledForUser:
    name = "{name}"

    def is_enabled(self, parameters, context):
        return context.user_id == parameters["who"]

strategies = [EnabledForUser()]
"""
ENRICHER = """
async def add(context):
    return context.replace(properties={{**context.properties, "{name}": "added"}})

enrichers = [add]
"""
HASHED = {
    "name": "hashed",
    "enabled": True,
    "strategies": [
        {"name": "flexibleRollout", "parameters": {"rollout": "50", "stickiness": "userId", "groupId": "Ωgrp"}}
    ],
}
VARIED = toggle("varied", variants=[{"name": "blue", "weight": 1000}])


class Named(Strategy):
    """A custom strategy made in code: on for one user."""

    def __init__(self, name: str) -> None:
        self.name = name

    def is_enabled(self, parameters: Mapping[str, str], context: ContextView) -> bool:
        """Return whether it is the one."""
        return context.user_id == parameters["who"]


HALF = {"name": "flexibleRollout", "parameters": {"rollout": "50", "stickiness": "userId", "groupId": "g"}}


def adding(name: str) -> object:
    """Return an enricher made in code: it adds a property."""

    def add(context: Context) -> Context:
        return context.replace(properties={**context.properties, name: "added"})

    return add


def custom(strategy: str, who: str) -> dict[str, object]:
    """Return a toggle that is on by a custom strategy for one user."""
    used = {"name": strategy, "parameters": {"who": who}}
    return {"name": f"{strategy}-{who}", "enabled": True, "strategies": [used]}


EVALUATION = (
    Row(
        name="environment",
        text="ours",
        features=tuple(toggle(name, ("environment", name)) for name in ("ours", "theirs", "default")),
        look=names("/proxy?environment=theirs"),
        seen=["ours"],
        unset=["theirs"],
    ),
    Row(
        name="variantFeatureState",
        text="on",
        native=True,
        features=(VARIED,),
        look=see.variant_fields,
        seen=["enabled", "featureEnabled", "feature_enabled", "name"],
        unset=["enabled", "name"],
    ),
    Row(
        name="answerCacheBytes",
        text="0",
        native=0,
        look=see.kept,
        seen="flagsvc_answer_cache_hits_total 0.0",
        unset="flagsvc_answer_cache_hits_total 3.0",
    ),
    Row(
        name="classCacheBytes",
        text="0",
        native=0,
        features=(toggle("mine", ("userId", "1")) | {"strategies": [HALF]},),
        look=see.classes,
        seen="flagsvc_class_cache_hits_total 0.0",
        unset="flagsvc_class_cache_hits_total 4.0",
    ),
    Row(
        name="hashEncoding",
        text="utf8",
        features=(HASHED,),
        look=names("/proxy?userId=u1"),
        seen=[],
        unset=["hashed"],
    ),
    Row(
        name="customStrategies",
        text="{folder}/boss.py, {folder}/chef.py",
        native=["{folder}/boss.py", "{folder}/chef.py"],
        files={"boss.py": STRATEGY_FILE.format(name="boss"), "chef.py": STRATEGY_FILE.format(name="chef")},
        features=(toggle("on"), custom("boss", "7"), custom("chef", "7"), custom("boss", "8")),
        look=names("/proxy?userId=7"),
        seen=["on", "boss-7", "chef-7"],
        unset=["on"],
    ),
    Row(
        name="customStrategies",
        code=lambda scene: [Named("boss"), Named("chef")],
        features=(toggle("on"), custom("boss", "7"), custom("chef", "8")),
        look=names("/proxy?userId=7"),
        seen=["on", "boss-7"],
        unset=["on"],
    ),
)

STORAGE = (
    Row(
        name="storage",
        text="file://{folder}/kept",
        look=see.survival,
        seen=(200, ["kept"]),
        unset=(200, ["xdg/flagsvc"]),
    ),
    Row(
        name="storage",
        text="none",
        look=see.survival,
        seen=(503, []),
        unset=(200, ["xdg/flagsvc"]),
    ),
    Row(
        name="storageProvider",
        code=lambda scene: MemoryStore(),
        look=see.survival,
        seen=(200, []),
        unset=(503, []),
    ),
)

LOGGING = (
    Row(
        name="logger",
        code=lambda scene: Notes(),
        look=see.where_it_is_logged,
        seen=({"info", "warning"}, False),
        unset=(set(), True),
    ),
    Row(
        name="logger",
        code=lambda scene: Notes(),
        beside={"useJsonLogger": "true", "logLevel": "fatal"},
        look=see.where_it_is_logged,
        seen=({"info", "warning"}, False),
        unset=(set(), False),
    ),
    Row(
        name="useJsonLogger",
        text="true",
        native=True,
        look=see.shape,
        seen={"time", "level"},
        unset=set(),
    ),
    Row(
        name="logLevel",
        text="error",
        look=see.levels,
        seen={"error"},
        unset={"warn", "error"},
    ),
    Row(
        name="logLevel",
        text="info",
        look=see.levels,
        seen={"info", "warn", "error"},
        unset={"warn", "error"},
    ),
    Row(
        name="logLevel",
        text="DEBUG",
        look=see.levels,
        seen={"debug", "info", "warn", "error"},
        unset={"warn", "error"},
    ),
    Row(
        name="logLevel",
        text="fatal",
        look=see.levels,
        seen=set(),
        unset={"warn", "error"},
    ),
    Row(
        name="accessLog",
        text="t",
        native=True,
        look=see.access,
        seen=[
            ["info", "request", "method=GET", "route=/proxy", "status=200"],
            ["info", "request", "method=POST", "route=unmatched", "status=404"],
        ],
        unset=[],
    ),
)

EXPERIMENTAL = (
    Row(
        name="expBootstrap",
        code=lambda scene: {"url": f"{scene.other.url}/a.json", "urlHeaders": {"Authorization": "Bearer x"}},
        look=see.bootstrap,
        seen=(200, [("/a.json", "Bearer x")]),
        unset=(503, []),
    ),
    Row(
        name="expBootstrap",
        code=lambda scene: f"{scene.other.url}/a.json",
        look=see.bootstrap,
        seen=(200, [("/a.json", None)]),
        unset=(503, []),
    ),
    Row(
        name="expBootstrap.url",
        text="{other}/some/flags.json?x=1",
        look=see.bootstrap,
        seen=(200, [("/some/flags.json?x=1", None)]),
        unset=(503, []),
    ),
    Row(
        name="expBootstrap.url",
        text="file://{folder}/flags.json",
        files={"flags.json": json.dumps(document(toggle("from-a-file")))},
        look=see.bootstrap,
        seen=(200, []),
        unset=(503, []),
    ),
    Row(
        name="expBootstrap.urlHeaders.Authorization",
        text="Bearer some-token",
        beside={"expBootstrap.url": "{other}/flags.json"},
        look=see.bootstrap,
        seen=(200, [("/flags.json", "Bearer some-token")]),
        unset=(200, [("/flags.json", None)]),
    ),
    Row(
        name="expServerSideSdkConfig.tokens",
        text="one,two",
        native=["one", "two"],
        look=statuses(*(ask("/proxy/client/features", {"authorization": key}) for key in ("one", "two", "client-key"))),
        seen=[200, 200, 401],
        unset=[401, 401, 401],
    ),
    Row(
        name="expCustomEnrichers",
        text="{folder}/first.py,{folder}/second.py",
        native=["{folder}/first.py", "{folder}/second.py"],
        files={"first.py": ENRICHER.format(name="first"), "second.py": ENRICHER.format(name="second")},
        features=(toggle("on"), toggle("enriched", ("first", "added"), ("second", "added"))),
        look=names(),
        seen=["on", "enriched"],
        unset=["on"],
    ),
    Row(
        name="expCustomEnrichers",
        code=lambda scene: [adding("first")],
        features=(toggle("on"), toggle("enriched", ("first", "added"))),
        look=names(),
        seen=["on", "enriched"],
        unset=["on"],
    ),
)
