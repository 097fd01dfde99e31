"""What callers of a process meet, with one environment and with several: keys, origins, limits, counts, the operators' address."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.http.contract import Contract
from flagsvc.http.messages import Response
from flagsvc.proxy.generations.environment import join_origins
from unit.proxy.generation_scene import GenerationScene, Given, ask, begin, running, validate


def serving(given: Given, **more: Any) -> GenerationScene:
    """Return generations that have not started, with a configuration each."""
    scene = GenerationScene(given, **more)
    for feed in scene.made:
        feed.serve()
    return scene


def use(scene: GenerationScene, given: Given) -> None:
    """Use other options; what is new has a configuration."""
    known = len(scene.made)
    scene.use(given)
    for feed in scene.made[known:]:
        feed.serve()
    scene.use(given)


def origin_of(scene: GenerationScene, key: str = "", **headers: str) -> str | None:
    """Return the origin that an answer allows; without a key, the answer to a preflight."""
    answer = ask(scene.generations.entrance, key=key, method="GET" if key else "OPTIONS", **headers)
    found = dict(answer.headers()).get(b"access-control-allow-origin")
    return None if found is None else found.decode()


async def test_looking_up_tokens_from_now_on() -> None:
    """The option belongs to an environment, so it changes in a running process."""
    scene = await running({}, client_keys="key", flagsvc_api_token="t")
    scene.more["token_validation"] = "upstream"
    scene.use({})
    await scene.serve(1)
    assert scene.generations.current.router is not None and scene.open("key") == [["only"]]


async def test_keys_of_an_environment_that_waits_are_validated() -> None:
    """Each has the environment that it opens, now or soon."""
    scene = await running({"a": {"client_keys": "one,two"}, "b": {}})
    scene.use({"a": {"client_keys": "two,new", "flagsvc_api_token": "*:other.x"}, "b": {}})
    assert scene.open("one", "two", "new", "nobody") == [401, ["a"], 503, 401]
    found = [(each["token"], each["environment"]) for each in await validate(scene, ["one", "two", "new"])]
    assert found == [("two", "default"), ("new", "other")]


async def test_keys_are_validated_in_all_environments() -> None:
    """Each has the kind that it has in its environment, and the environment of that upstream's token."""
    scene = serving(
        {
            "a": {"flagsvc_api_token": "web:production.x", "exp_server_side_sdk_config_tokens": "token-a"},
            "b": {"environment": "staging", "client_keys": "key-b,app:development.y"},
        }
    )
    tokens = ["key-a", "token-a", "key-b", "app:development.y", "nobody", "Bearer key-b", ""]
    for key in ("", "key-a", "nobody"):
        assert [tuple(each.values()) for each in await validate(scene, tokens, key)] == [
            ("key-a", "frontend", ["*"], "production"),
            ("token-a", "client", ["*"], "production"),
            ("key-b", "frontend", ["*"], "staging"),
            ("app:development.y", "frontend", ["app"], "development"),
        ]


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


def test_origins_that_change() -> None:
    """Preflights follow. Readiness, limits and counts of the process go on."""
    scene = serving({"a": {"cors_origin": "https://a"}, "b": {"cors_origin": "https://b"}}, rate_limit_address=5)
    before = scene.generations.current.service
    ask(scene.generations.entrance, "/nowhere")
    scene.use({"a": {"cors_origin": "https://new"}, "b": {"cors_origin": "https://b"}})
    assert [origin_of(scene, origin=each) for each in ("https://a", "https://new")] == [None, "https://new"]
    assert origin_of(scene, "key-a", origin="https://b") == "https://new"
    after = scene.generations.current.service
    assert after is not before and after.readiness is before.readiness and after.rates is before.rates
    assert after.reached is before.reached and after.rest == before.rest and after.rest[b"GET"].statuses == {404: 1}
    scene.use({"a": {"cors_origin": "https://new", "client_keys": "k"}, "b": {"cors_origin": "https://b"}})
    assert scene.generations.current.service is after, "it is made again only if the origins differ"


def test_limits_are_those_of_the_process() -> None:
    """Requests of an address count together, also with different keys, and go on when keys change."""
    scene = serving({"a": {}, "b": {}}, rate_limit_address=3)
    assert scene.open("key-a", "key-b") == [["a"], ["b"]]
    scene.use({"a": {"client_keys": "new"}, "b": {}})
    assert scene.open("new", "nobody", "key-b") == [["a"], 429, 429]
    assert scene.generations.sources.reached["address_rate"] == 2


def test_limits_of_a_single_environment_go_on() -> None:
    """Other keys, and another upstream side, begin no new count."""
    scene = serving({}, client_keys="key", flagsvc_api_token="t", rate_limit_address=2)
    assert scene.open("key") == [["only"]]
    scene.more |= {"client_keys": "key,new", "refresh_interval": 1}
    use(scene, {})
    assert scene.names == {"": 1} and scene.open("new", "key") == [["only"], 429]
    assert scene.generations.sources.reached["address_rate"] == 1


def test_counts_of_a_replaced_environment_go_on() -> None:
    """Its requests count on from the counts of the environment before, also after it was away; another name begins at 0."""
    scene = serving({"a": {}, "b": {}})
    scene.open("key-a", "key-a", "key-a")
    counts = scene.environment("a").service.resources[b"/proxy"].endpoints[b"GET"].counts
    use(scene, {"a": {"name_prefix": "a"}, "b": {}})
    scene.open("key-a")
    assert counts.statuses == {200: 4}
    use(scene, {"b": {}})
    use(scene, {"a": {}, "b": {}})
    scene.open("key-a")
    assert counts.statuses == {200: 5}
    assert scene.environment("b").service.resources[b"/proxy"].endpoints[b"GET"].counts.statuses == {}


async def metrics(service: Contract, path: str = "/metrics") -> str:
    answer = begin(service, path)
    response = answer if isinstance(answer, Response) else await answer
    return response.body.decode()


async def test_the_operators_address() -> None:
    """It has the metrics of all environments, and the readiness of the process; it has no keys and no CORS."""
    scene = serving({"a": {}, "b": {}}, admin_address="127.0.0.1:9")
    around = scene.generations
    service = around.operators
    text = await metrics(service)
    assert [name for name in "ab" if f'flagsvc_usage_waiting{{environment="{name}"}} 0.0' in text] == ["a", "b"]
    assert ask(service, "/readyz").status == 200 and ask(service, "/proxy", "key-a").status == 404
    around.drain()
    assert ask(service, "/readyz").status == 503
    assert ask(around.entrance, "/proxy/internal-backstage/prometheus").status == 404


async def test_the_metrics_of_a_single_environment() -> None:
    """They have no label for it, and go on when it is replaced."""
    scene = await running({}, client_keys="key", flagsvc_api_token="t")
    scene.open("key", "no")
    text = await metrics(scene.generations.entrance, "/proxy/internal-backstage/prometheus")
    assert 'flagsvc_http_requests_total{method="GET",route="/proxy",status="200"} 1.0' in text
    assert "flagsvc_answer_cache_misses_total 1.0" in text and "environment=" not in text
    scene.more["refresh_interval"] = 1
    scene.use({})
    assert "flagsvc_environment_pending 1.0" in await metrics(scene.generations.entrance, "/proxy/internal-backstage/prometheus")
    await scene.serve(1)
    scene.open("key")
    text = await metrics(scene.generations.entrance, "/proxy/internal-backstage/prometheus")
    assert 'flagsvc_http_requests_total{method="GET",route="/proxy",status="200"} 2.0' in text
    assert "flagsvc_answer_cache_misses_total 2.0" in text and "flagsvc_environment_pending 0.0" in text
