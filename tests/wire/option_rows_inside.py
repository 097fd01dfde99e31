"""The effects of options of evaluation, storage, logs and experiments: one row for each tried value."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Mapping

import option_looks as see
from option_looks import Notes, ask, names, statuses
from option_ways import AUTHORITY, PASSWORD, Observe, Row, refused

from flagsvc import Context, ContextView, ProxyOptions, Strategy
from flagsvc.settings.storage import server_at
from flagsvc.testing import MemoryStore
from support.aio import until
from support.environments import only
from support.pki import Authority
from support.redises import redis_server
from support.scene import Scene, document, toggle

SHORT_S = 1.9
"""Well above the time-out of the rows, well below the default."""


def port_of(options: ProxyOptions) -> int | None:
    """Return the port of the storage server in the options; None for another storage."""
    server = server_at(options.storage)
    return None if server is None else server.port


def stored(*, password: str | None = None, tls: Authority | None = None, clients: str = "no") -> Observe:
    """See the beginnings of the names that a proxy stores on the server, or the refused option."""

    async def look(scene: Scene, options: ProxyOptions) -> object:
        with redis_server(port=port_of(options), password=password, tls=tls, clients=clients) as server:
            async with scene.proxy(options):
                pass
            return [name.rpartition(":")[0] for name in server.names()]

    return look


async def patient(scene: Scene, options: ProxyOptions) -> object:
    """See whether a server that takes connections and says nothing is waited for."""
    with socket.create_server(("127.0.0.1", port_of(options) or 0)):
        began = asyncio.get_running_loop().time()
        async with scene.proxy(options) as proxy:
            await until(only(proxy.app).storage_errors)
            return asyncio.get_running_loop().time() - began > SHORT_S


SERVER = {"storage": "redis://127.0.0.1:{port}/0"}
SECURE = {"storage": "rediss://127.0.0.1:{port}/0"}
TRUSTED = {**SECURE, "storageCa": "{folder}/ca.pem"}
MUTUAL = stored(tls=AUTHORITY, clients="yes")

CERT = "{folder}/cert.pem"


def mutual(name: str, text: str, lacking: str, **beside: str) -> Row:
    """Return a row of an option of the certificate that a storage server asks for; without it another option is refused."""
    return Row(name, text, MUTUAL, ["flagsvc:store"], refused(lacking), beside={**TRUSTED, **beside})


REDIS = (
    Row("storage", "valkey://127.0.0.1:{port}/0", stored(), ["flagsvc:store"], []),
    Row("storage", f"redis://default:{PASSWORD}@127.0.0.1:{{port}}", stored(password=PASSWORD), ["flagsvc:store"], []),
    Row("storagePassword", PASSWORD, stored(password=PASSWORD), ["flagsvc:store"], [], beside=SERVER),
    Row("storageCa", "{folder}/ca.pem", stored(tls=AUTHORITY), ["flagsvc:store"], [], beside=SECURE),
    Row("storageCert", "{folder}/both.pem", MUTUAL, ["flagsvc:store"], [], beside=TRUSTED),
    mutual("storageKey", "{folder}/key.pem", "storageCert", storageCert=CERT),
    mutual("storageKeyPassword", PASSWORD, "storageKey", storageCert=CERT, storageKey="{folder}/locked.pem"),
    Row("storageTimeout", "100", patient, False, True, beside=SERVER),
    Row("storagePrefix", "flags:eu", stored(), ["flags:eu:store"], ["flagsvc:store"], beside=SERVER),
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
VARIED = toggle("varied", variants=[{"name": "blue", "weight": 1000}])


class Named(Strategy):
    """A custom strategy made in code: on for one user."""

    def __init__(self, name: str) -> None:
        self.name = name

    def is_enabled(self, parameters: Mapping[str, str], context: ContextView) -> bool:
        return context.user_id == parameters["who"]


def half(name: str, group: str) -> dict[str, object]:
    """Return a toggle that is on for half of the users."""
    parameters = {"rollout": "50", "stickiness": "userId", "groupId": group}
    return toggle(name) | {"strategies": [{"name": "flexibleRollout", "parameters": parameters}]}


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
        "environment",
        "ours",
        names("/proxy?environment=theirs"),
        ["ours"],
        ["theirs"],
        features=tuple(toggle(name, ("environment", name)) for name in ("ours", "theirs", "default")),
    ),
    Row(
        "variantFeatureState",
        "on",
        see.read(lambda answer: sorted(answer.json()["toggles"][0]["variant"]), ask("/proxy")),
        [["enabled", "featureEnabled", "feature_enabled", "name"]],
        [["enabled", "name"]],
        features=(VARIED,),
    ),
    Row("answerCacheBytes", "0", see.sample("flagsvc_answer_cache_hits_total", *["/proxy"] * 5), 0.0, 3.0),
    Row(
        "classCacheBytes",
        "0",
        see.sample("flagsvc_class_cache_hits_total", *(f"/proxy?userId={user}" for user in range(5))),
        0.0,
        4.0,
        features=(half("mine", "g"),),
    ),
    Row("hashEncoding", "utf8", names("/proxy?userId=u1"), [], ["hashed"], features=(half("hashed", "Ωgrp"),)),
    Row(
        "customStrategies",
        "{folder}/boss.py, {folder}/chef.py",
        names("/proxy?userId=7"),
        ["on", "boss-7", "chef-7"],
        ["on"],
        native=["{folder}/boss.py", "{folder}/chef.py"],
        files={"boss.py": STRATEGY_FILE.format(name="boss"), "chef.py": STRATEGY_FILE.format(name="chef")},
        features=(toggle("on"), custom("boss", "7"), custom("chef", "7"), custom("boss", "8")),
    ),
    Row(
        "customStrategies",
        lambda scene: [Named("boss"), Named("chef")],
        names("/proxy?userId=7"),
        ["on", "boss-7"],
        ["on"],
        features=(toggle("on"), custom("boss", "7"), custom("chef", "8")),
    ),
)

STORAGE = (
    Row("storage", "file://{folder}/kept", see.survival, (200, ["kept"]), (200, ["xdg/flagsvc"])),
    Row("storage", "none", see.survival, (503, []), (200, ["xdg/flagsvc"])),
    Row("storageProvider", lambda scene: MemoryStore(), see.survival, (200, []), (503, [])),
)

LOGGING = (
    Row("logger", lambda scene: Notes(), see.where_it_is_logged, ({"info", "warning"}, False), (set(), True)),
    Row("useJsonLogger", "true", see.shape, {"time", "level"}, set()),
    Row("logLevel", "error", see.levels, {"error"}, {"warn", "error"}),
    Row("logLevel", "DEBUG", see.levels, {"debug", "info", "warn", "error"}, {"warn", "error"}),
    Row(
        "accessLog",
        "t",
        see.access,
        [
            ["info", "request", "method=GET", "route=/proxy", "status=200"],
            ["info", "request", "method=POST", "route=unmatched", "status=404"],
        ],
        [],
    ),
)


def bootstrapped(name: str, text: str | Callable[[Scene], object], asked: list[tuple[str, str | None]], **files: str) -> Row:
    """Return a row of an option of the bootstrap document, and what its server is asked for."""
    return Row(name, text, see.bootstrap, (200, asked), (503, []), files={f"{each}.json": files[each] for each in files})


BEARER = {"Authorization": "Bearer x"}
EXPERIMENTAL = (
    bootstrapped(
        "expBootstrap", lambda scene: {"url": f"{scene.other.url}/a.json", "urlHeaders": BEARER}, [("/a.json", "Bearer x")]
    ),
    bootstrapped("expBootstrap", lambda scene: f"{scene.other.url}/a.json", [("/a.json", None)]),
    bootstrapped("expBootstrap.url", "{other}/some/flags.json?x=1", [("/some/flags.json?x=1", None)]),
    bootstrapped("expBootstrap.url", "file://{folder}/flags.json", [], flags=json.dumps(document(toggle("from-a-file")))),
    Row(
        "expBootstrap.urlHeaders.Authorization",
        "Bearer some-token",
        see.bootstrap,
        (200, [("/flags.json", "Bearer some-token")]),
        (200, [("/flags.json", None)]),
        beside={"expBootstrap.url": "{other}/flags.json"},
    ),
    Row(
        "expServerSideSdkConfig.tokens",
        "one,two",
        statuses(*(ask("/proxy/client/features", {"authorization": key}) for key in ("one", "two", "client-key"))),
        [200, 200, 401],
        [401, 401, 401],
        native=["one", "two"],
    ),
    Row(
        "expCustomEnrichers",
        "{folder}/first.py,{folder}/second.py",
        names(),
        ["on", "enriched"],
        ["on"],
        native=["{folder}/first.py", "{folder}/second.py"],
        files={"first.py": ENRICHER.format(name="first"), "second.py": ENRICHER.format(name="second")},
        features=(toggle("on"), toggle("enriched", ("first", "added"), ("second", "added"))),
    ),
    Row(
        "expCustomEnrichers",
        lambda scene: [adding("first")],
        names(),
        ["on", "enriched"],
        ["on"],
        features=(toggle("on"), toggle("enriched", ("first", "added"))),
    ),
)
