"""The callers' side of a process: one service, or a router over the services of its environments."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Mapping
from itertools import count
from typing import Any

import pytest

from flagsvc.http.contract import Contract
from flagsvc.http.messages import Request, Response
from flagsvc.proxy.api.readiness import EnvironmentsReadiness
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.services import (
    AnyHolder,
    CallersSide,
    join_origins,
    list_keys,
    make_admin_address_service,
)
from flagsvc.proxy.setup import ProxySetup, make_setup, renew_setup
from flagsvc.settings.options import ProxyOptions
from support.aio import asynchronous
from support.served import Served

Given = Mapping[str, Mapping[str, object]]
"""Options by name of environment."""


class Side:
    """The callers' side with everything around it."""

    def __init__(self, given: Given, **more: Any) -> None:
        self.setup = make_setup(options(given, **more))
        self.served: dict[str, Served] = {}
        self.coming: list[Served] = []
        self.numbers = count()
        origins = [part.service_settings.cors_origin for part in self.setup.environments]
        self.callers = CallersSide(self.setup, lambda: self.served, origins, list_coming=lambda: self.coming)
        for part in self.setup.parts:
            self.add(part)
        self.callers.refresh()

    def add(self, setup: ProxySetup) -> Served:
        """Serve an environment, which may take the place of another one of its name."""
        made = self.served[setup.name] = Served(next(self.numbers), setup, self.callers)
        get_ready(made)
        return made

    def use(self, given: Given, *again: str) -> None:
        """Use other keys and origins; environments of the names `again` are made again."""
        self.setup = renew_setup(self.setup, options(given))
        for part in self.setup.environments:
            if part.name in again or part.name not in self.served:
                self.add(part)
            else:
                self.served[part.name].setup = part
        self.served = {part.name: self.served[part.name] for part in self.setup.environments}
        self.callers.refresh()


def get_ready(served: Served) -> None:
    """Serve a toggle with the name of the environment."""
    toggle = {"name": served.setup.name or "only", "enabled": True, "strategies": [{"name": "default"}]}
    served.serve({"version": 2, "features": [toggle]})


def options(given: Given, **more: Any) -> ProxyOptions:
    """Return options with these environments; each has a key with its name unless it is given another one."""
    environments = {name: {"client_keys": f"key-{name}", **each} for name, each in given.items()}
    return ProxyOptions(**{"flagsvc_url": "file:///f.json", "log_level": "fatal", "environments": environments, **more})


def ask(
    contract: Contract, path: str = "/proxy", key: str = "", method: str = "GET", body: object = None, **headers: str
) -> Response:
    """Return the answer to a request."""
    content = b"" if body is None else json.dumps(body).encode()
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    pairs += [(b"authorization", key.encode())] * bool(key)
    pairs += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))] * bool(content)
    admitted = contract.admit(Request(method.encode(), path.encode(), b"", pairs, peer="192.0.2.1"))
    answer = admitted if isinstance(admitted, Response) else contract.answer(admitted, content)
    return answer if isinstance(answer, Response) else asyncio.run(waited(answer))


async def waited(answer: Awaitable[Response]) -> Response:
    """Return an answer that takes time."""
    return await answer


def toggles(side: Side, key: str) -> list[str]:
    """Return the toggles that a key sees; empty if it opens nothing."""
    answer = ask(side.callers.contract, key=key)
    return [each["name"] for each in json.loads(answer.body)["toggles"]] if answer.status == 200 else []


def origin_of(side: Side, key: str = "", **headers: str) -> str | None:
    """Return the origin that an answer allows; without a key, the answer to a preflight."""
    answer = ask(side.callers.contract, key=key, method="GET" if key else "OPTIONS", **headers)
    found = dict(answer.headers()).get(b"access-control-allow-origin")
    return None if found is None else found.decode()


# ---- one environment


def test_a_single_environment_has_no_router() -> None:
    """Its service answers callers, and is that of the process."""
    side = Side({}, client_keys="key")
    [only] = side.served.values()
    assert side.callers.router is None and side.callers.contract is only.service
    assert side.callers.readiness is only.service.readiness and side.callers.sources is only.service.sources
    assert only.service.sources.environments is None
    assert [each["name"] for each in json.loads(ask(side.callers.contract, key="key").body)["toggles"]] == ["only"]


# ---- several


def test_each_key_sees_its_environment() -> None:
    """And the process is ready, and has no keys of its own."""
    side = Side({"a": {}, "b": {}})
    assert [toggles(side, f"key-{name}") for name in "abc"] == [["a"], ["b"], []]
    assert side.callers.router is not None and side.callers.contract is side.callers.router
    assert side.callers.router.process.settings.client_keys == side.callers.router.process.settings.server_tokens == ()
    assert ask(side.callers.contract, "/proxy/health").status == 200
    assert isinstance(side.callers.readiness, EnvironmentsReadiness) and side.callers.readiness.find_objection() == ""


def test_keys_of_an_environment_that_is_coming() -> None:
    """A key that the former one has opens that. One that only the other one has gets its answer: 503, until it is ready."""
    side = Side({"a": {"client_keys": "one,two"}, "b": {}})
    [part] = make_setup(options({"a": {"client_keys": "two,new", "flagsvc_api_token": "*:other.x"}})).environments
    side.coming = [Served(next(side.numbers), part, side.callers)]
    side.callers.refresh()
    contract = side.callers.contract
    assert [ask(contract, key=key).status for key in ("one", "two", "new", "nobody")] == [200, 200, 503, 401]
    assert toggles(side, "two") == ["a"] and ask(contract, "/proxy/health").status == 200
    told = ask(contract, "/edge/validate", method="POST", body={"tokens": ["two", "new"]})
    found = [(each["token"], each["environment"]) for each in json.loads(told.body)["tokens"]]
    assert found == [("two", "default"), ("new", "other")], "each with the environment that it opens, now or soon"
    get_ready(side.coming[0])
    side.served["a"], side.coming = side.coming[0], []
    side.callers.refresh()
    assert [ask(contract, key=key).status for key in ("one", "two", "new")] == [401, 200, 200]


def test_keys_that_change() -> None:
    """A key that ends opens nothing, and one that moves opens the other environment alone."""
    side = Side({"a": {"client_keys": "one,two"}, "b": {}})
    side.use({"a": {"client_keys": "one"}, "b": {"client_keys": "key-b,two"}}, "a", "b")
    assert [toggles(side, key) for key in ("one", "two", "key-b")] == [["a"], ["b"], ["b"]]
    side.use({"b": {"client_keys": "one"}}, "b")
    assert [toggles(side, key) for key in ("one", "two", "key-b")] == [["b"], [], []]
    side.use({"b": {"client_keys": "one"}, "c": {}})
    assert [toggles(side, key) for key in ("one", "key-c")] == [["b"], ["c"]]


def test_client_keys_and_tokens_are_listed() -> None:
    """Both open their environment."""
    side = Side({"a": {"exp_server_side_sdk_config_tokens": "token"}, "b": {}})
    assert list(list_keys(side.served.values())) == [
        ("key-a", side.served["a"].service),
        ("token", side.served["a"].service),
        ("key-b", side.served["b"].service),
    ]


# ---- origins


@pytest.mark.parametrize(
    ("origins", "joined"),
    [
        (["*", ("https://a",)], "*"),
        ([("https://b", "https://a"), ("https://a",)], ("https://a", "https://b")),
        ([("https://*.a",)], ("https://*.a",)),
        ([(), ()], ()),
        (["https://a", ("https://b",)], ("https://a", "https://b")),
    ],
)
def test_origins_of_a_preflight(origins: list[Any], joined: object) -> None:
    """They are those of all environments; any origin of one is any origin."""
    assert join_origins(origins) == joined


def test_a_preflight_and_the_answer() -> None:
    """The preflight allows what any environment does; the answer allows only what its own does."""
    side = Side({"a": {"cors_origin": "https://a"}, "b": {"cors_origin": "https://b,https://*.b"}})
    assert [origin_of(side, origin=each) for each in ("https://a", "https://b", "https://x.b", "https://c")] == [
        "https://a",
        "https://b",
        "https://x.b",
        None,
    ]
    assert [origin_of(side, "key-b", origin=each) for each in ("https://a", "https://b")] == [None, "https://b"]
    assert origin_of(side, "key-a", origin="https://b") == "https://a", "one origin is always sent"


def test_origins_that_change() -> None:
    """Preflights follow. Readiness, limits and counts of the process go on."""
    side = Side({"a": {"cors_origin": "https://a"}, "b": {"cors_origin": "https://b"}}, rate_limit_address=5)
    assert side.callers.router is not None
    before = side.callers.router.process
    before.readiness.is_draining = True
    ask(side.callers.contract, "/nowhere")
    side.use({"a": {"cors_origin": "https://new"}, "b": {"cors_origin": "https://b"}}, "a")
    assert [origin_of(side, origin=each) for each in ("https://a", "https://new")] == [None, "https://new"]
    after = side.callers.router.process
    assert after is not before and after.readiness is before.readiness and after.rates is before.rates
    assert after.reached is before.reached and after.rest == before.rest and after.rest[b"GET"].statuses == {404: 1}
    side.use({"a": {"cors_origin": "https://new"}, "b": {"cors_origin": "https://b"}})
    assert side.callers.router.process is after, "it is made again only if the origins differ"


# ---- what services share


def test_limits_are_those_of_the_process() -> None:
    """Requests of an address count together, also with different keys."""
    side = Side({"a": {}, "b": {}}, rate_limit_address=2)
    statuses = [ask(side.callers.contract, key=key).status for key in ("key-a", "key-b", "key-a", "nobody")]
    assert statuses == [200, 200, 429, 429]
    assert side.callers.sources.reached["address_rate"] == 2


def test_counts_of_a_replaced_environment_go_on() -> None:
    """Its requests are counted where those of the former one ended, also after it was away; another name begins at 0."""
    side = Side({"a": {}, "b": {}})
    for _ in range(3):
        ask(side.callers.contract, key="key-a")
    counts = side.served["a"].service.resources[b"/proxy"].endpoints[b"GET"].counts
    side.use({"a": {"name_prefix": "a"}, "b": {}}, "a")
    ask(side.callers.contract, key="key-a")
    assert counts.statuses == {200: 4}
    side.use({"b": {}})
    side.use({"a": {}, "b": {}}, "a")
    ask(side.callers.contract, key="key-a")
    assert counts.statuses == {200: 5}
    assert side.served["b"].service.resources[b"/proxy"].endpoints[b"GET"].counts.statuses == {}


# ---- the holder of the process


def shown(holder: Holder) -> list[str] | None:
    """Return the toggles of a configuration, or None without one."""
    return None if holder.current is None else list(holder.current.names)


def test_the_holder_of_the_process() -> None:
    """It has a configuration without a toggle while any environment has one."""
    side = Side({"a": {}, "b": {}})
    holders: list[Holder] = [Holder(), side.served["b"].holder]
    held = AnyHolder(side.setup, lambda: holders)
    assert held.is_ready and shown(held) == []
    held.current = side.served["b"].holder.current
    assert shown(held) == [], "it follows from the environments"
    holders.pop()
    assert shown(held) is None


# ---- keys of all environments


def test_keys_are_validated_in_all_environments() -> None:
    """Each has the kind that it has in its environment, and the environment of that upstream's token."""
    side = Side(
        {
            "a": {"flagsvc_api_token": "web:production.x", "exp_server_side_sdk_config_tokens": "token-a"},
            "b": {"environment": "staging", "client_keys": "key-b,app:development.y"},
        }
    )
    tokens = ["key-a", "token-a", "key-b", "app:development.y", "nobody", "Bearer key-b", ""]
    for key in ("", "key-a", "nobody"):
        answer = ask(side.callers.contract, "/edge/validate", key, "POST", {"tokens": tokens})
        assert [tuple(each.values()) for each in json.loads(answer.body)["tokens"]] == [
            ("key-a", "frontend", ["*"], "production"),
            ("token-a", "client", ["*"], "production"),
            ("key-b", "frontend", ["*"], "staging"),
            ("app:development.y", "frontend", ["app"], "development"),
        ]


# ---- the operators' address


@asynchronous
async def test_the_operators_address() -> None:
    """It has the metrics of all environments, and the readiness of the process; it has no keys and no CORS."""
    side = Side({"a": {}, "b": {}}, admin_address="127.0.0.1:9")
    service = make_admin_address_service(side.setup, side.callers.sources, side.callers.readiness)
    admitted = service.admit(Request(b"GET", b"/metrics", b"", []))
    assert not isinstance(admitted, Response)
    answer = service.answer(admitted, b"")
    assert isinstance(answer, Awaitable)
    text = (await answer).body.decode()
    assert [name for name in "ab" if f'flagsvc_usage_waiting{{environment="{name}"}} 0.0' in text] == ["a", "b"]
    assert ask(service, "/readyz").status == 200 and ask(service, "/proxy", "key-a").status == 404
    side.callers.readiness.is_draining = True
    assert ask(service, "/readyz").status == 503
    assert ask(side.callers.contract, "/proxy/internal-backstage/prometheus").status == 404
