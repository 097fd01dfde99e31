"""A provider that is slow, fails, or changes its keys: who waits, what is kept, and what the log says."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from flagsvc.http.client.answers import Answer
from flagsvc.pages.sign_in_tries import NETWORK_TRIES
from flagsvc.server.sign_in import exchange
from flagsvc.server.sign_in import provider as provider_module
from flagsvc.server.sign_in.exchange import ProviderError
from flagsvc.server.sign_in.provider import KEPT_S, PAUSE_S, read_metadata
from support.page_scene import Visitor, pass_time
from support.provider_scene import Scene


@pytest.mark.parametrize(
    ("body", "said"), [(b'{"error":"invalid_client"}', " (invalid_client)"), (b'{"error":"A b"}', ""), (b"[]", "")]
)
def test_the_log_has_the_code_of_an_error(monkeypatch: pytest.MonkeyPatch, body: bytes, said: str) -> None:
    """That of the token endpoint says what is wrong with the client; only a simple one is repeated."""

    async def send(*_: object) -> Answer:
        return Answer(401, {}, body)

    monkeypatch.setattr(exchange, "_send", send)
    with pytest.raises(ProviderError) as refusal:
        exchange.fetch("https://id.example/token", {})
    assert str(refusal.value) == f"the provider answered with the status 401{said}"


@pytest.fixture
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait shortly for a place."""
    monkeypatch.setattr(provider_module, "WAIT_S", 0.01)


@pytest.mark.usefixtures("no_wait")
def test_too_many_at_the_same_time(scene: Scene) -> None:
    """Who comes back then may reload the page: the try is kept and not counted. The way to the provider is open."""
    visitor, provider = Visitor(scene.client, None), scene.client.server.ways.provider
    assert provider is not None and scene.sign_in().status == 303
    query = scene.provider.sign_in(scene.leave(visitor))
    with provider.place(), provider.place():
        for _ in range(NETWORK_TRIES + 1):
            answer = visitor.see(f"/sign-in/callback?{query}")
            assert (answer.status, answer.headers["retry-after"]) == (503, "3") and "Reload this page" in answer.text
            assert "set-cookie" not in answer.headers
        scene.leave(Visitor(scene.client, None))
    assert scene.come_back(visitor, query).status == 303


def test_who_waits_gets_the_next_place(scene: Scene) -> None:
    """A place that is free within the time is taken."""
    provider = scene.client.server.ways.provider
    assert provider is not None
    visitor = Visitor(scene.client, None)
    query = scene.provider.sign_in(scene.leave(visitor))
    with provider.place(), ThreadPoolExecutor(1) as pool:
        with provider.place():
            coming = pool.submit(scene.come_back, visitor, query)
        assert coming.result().status == 303


def test_discovery_has_a_pause_after_a_failure(scene: Scene) -> None:
    """A provider that fails is not asked by each visitor."""
    scene.provider.broken = "/.well-known/openid-configuration"
    assert {Visitor(scene.client, None).see("/sign-in/provider").status for _ in range(3)} == {502}
    assert scene.provider.asked[scene.provider.broken] == 1
    scene.provider.broken = ""
    pass_time(scene.clock, PAUSE_S)
    assert scene.sign_in().status == 303


def test_a_withdrawn_key_ends_after_an_hour(scene: Scene) -> None:
    """Old keys are asked for again, though the token names one of them."""
    assert scene.sign_in().status == 303
    old = scene.provider.key
    scene.provider.rotate("first")
    assert scene.sign_in().status == 403
    pass_time(scene.clock, KEPT_S)
    assert scene.sign_in().status == 303
    scene.provider.key = old
    assert scene.sign_in().status == 403


@pytest.mark.parametrize("place", ["http://127.0.0.1/token", "https://["])
def test_an_issuer_with_tls_names_places_with_tls(place: str) -> None:
    """Also loopback is none for its secrets; a malformed address is an error of the provider."""
    names = ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")
    document = dict.fromkeys(names, "https://id.example")
    assert read_metadata(document, "https://id.example").token == "https://id.example"
    with pytest.raises(ProviderError):
        read_metadata(document | {"token_endpoint": place}, "https://id.example")
