"""Tokens that are looked up: which service each opens, how it is taken back, and what a next generation does to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from unittest.mock import AsyncMock

import pytest

from flagsvc.http.messages import HttpError
from flagsvc.proxy.api import scopes
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.generations.admission import MAX_TRIES
from flagsvc.proxy.tokens import Admission, TokenScope, UnavailableError
from flagsvc.testing import turns
from support.evaluating import feature
from unit.proxy.generation_scene import FakeFeed, GenerationScene

ALL = Admission(0, False, TokenScope("production", None), True)
OF_A = Admission(0, False, TokenScope("production", frozenset("a")), False)
DOCUMENT = {"features": [feature("of-a", project="a"), feature("of-b", project="b")]}


class FakeAdmit:
    """Says what tokens open. `meanwhile` is called before each answer."""

    def __init__(self) -> None:
        self.opened: dict[str, Admission] = {}
        self.fault: Exception | None = None
        self.meanwhile: Callable[[], Awaitable[None]] = AsyncMock()
        self.asked: list[str] = []

    def is_refused(self, token: str) -> bool:
        """Return whether a token is known to open nothing."""
        return token == "refused"

    async def look_up_all(self, tokens: Sequence[str], network: bytes, deadline: float) -> dict[str, Admission]:
        self.asked += tokens
        found = {token: self.opened[token] for token in tokens if token in self.opened}
        await self.meanwhile()
        if self.fault is not None:
            raise self.fault
        return found


class Scene(GenerationScene):
    """A process with these environments, or with a single one without a name."""

    def __init__(self, *names: str) -> None:
        self.admit = FakeAdmit()
        single = {} if names else {"client_keys": "key", "flagsvc_api_token": "t"}
        given: dict[str, Any] = {name: {} for name in names}
        super().__init__(given, admit=self.admit, token_validation="upstream", **single)
        for feed in self.made:
            feed.serve_document(DOCUMENT)

    async def find(self, token: str) -> Service | None:
        return await self.generations.find(token, b"")

    def opens(self, token: str) -> Service | None:
        """Return the service that gets the requests with a token, if it accepts them."""
        router = self.generations.current.router
        assert router is not None
        found = router.table.find(token.encode())
        return found if found is not None and found.keys.either.contains(token.encode()) else None

    def replace(self, name: str) -> FakeFeed:
        """Have an environment with another upstream side take the place of the one of this name."""
        given: dict[str, Any] = {each.name: {} for each in self.generations if each.name}
        if name:
            given[name] = {"refresh_interval": 1}
        else:
            self.more["refresh_interval"] = 1
        self.use(given)
        self.made[-1].serve_document(DOCUMENT)
        self.use(given)
        return self.made[-1]


async def test_a_service_for_some_projects() -> None:
    """It has their flags and no listed keys. Tokens of the same projects share a service, which counts for the environment."""
    scene = Scene()
    scene.admit.opened |= {"one": OF_A, "two": OF_A, "server": OF_A._replace(is_server=True)}
    service = await scene.find("one")
    assert service is not None and service is not scene.environment().service
    assert await scene.find("two") is await scene.find("server") is service
    assert service.holder.current is not None and list(service.holder.current.names) == ["of-a"]
    assert service.sources.usage is scene.made[-1].counters
    assert service.rates is scene.environment().service.rates and service.reached is scene.environment().service.reached
    assert [service.keys.server.contains(key) for key in (b"one", b"server", b"key")] == [False, True, False]
    other = Admission(0, False, TokenScope("production", frozenset("b")), False)
    scene.admit.opened["three"] = other
    assert await scene.find("three") not in (service, scene.environment().service, None)


async def test_tokens_are_placed_again() -> None:
    """An environment that has its first configuration may be theirs now, also if that comes in the middle of an answer."""
    scene = Scene("a")
    scene.generations.start()
    await turns()
    scene.admit.opened["token"] = ALL
    assert await scene.find("token") is scene.environment("a").service is scene.opens("token")
    scene.use({"a": {}, "b": {}})
    assert await scene.find("token") is scene.environment("a").service

    async def get_ready() -> None:
        scene.admit.meanwhile = AsyncMock()
        scene.made[1].serve_document(DOCUMENT)
        await turns()
        scene.admit.opened["token"] = ALL._replace(environment=1)

    scene.use({"a": {}, "b": {}})
    assert scene.opens("token") is None
    scene.admit.meanwhile = get_ready
    assert await scene.find("token") is scene.environment("b").service is scene.opens("token")


async def test_more_services_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokens of a service that ends open it again when they are used. Other tokens stay, and nothing is forgotten upstream."""
    monkeypatch.setattr(scopes, "MAX_SCOPED", 1)
    scene = Scene()
    of_b = OF_A._replace(scope=TokenScope("production", frozenset("b")))
    scene.admit.opened |= {"whole": ALL, "one": OF_A, "two": OF_A, "of-b": of_b}
    first = await scene.find("one")
    assert await scene.find("two") is first and await scene.find("whole") is scene.opens("whole")
    other = await scene.find("of-b")
    assert [scene.opens(token) for token in ("one", "two")] == [None, None]
    assert scene.opens("of-b") is other and scene.opens("whole") is not None and scene.opens("key") is not None
    again = await scene.find("one")
    assert again is scene.opens("one") is not first and scene.opens("of-b") is None


async def test_environments() -> None:
    """A token opens the service of its environment. A token of a missing environment cannot be looked up now."""
    scene = Scene("x", "y")
    scene.admit.opened |= {"x": ALL, "y": OF_A._replace(environment=1), "z": ALL._replace(environment=2)}
    assert await scene.find("x") is scene.environment("x").service
    of_y = await scene.find("y")
    assert of_y is not None and of_y.sources.usage is scene.made[1].counters
    scene.admit.asked.clear()
    with pytest.raises(HttpError) as caught:
        await scene.find("z")
    assert caught.value.status == 503 and scene.opens("z") is None and scene.admit.asked == ["z"] * MAX_TRIES
    assert scene.opens("key-x") is scene.environment("x").service


async def test_what_opens_nothing() -> None:
    """No service, or a 503 if that cannot be said now."""
    scene = Scene()
    assert await scene.find("unknown") is None
    assert scene.generations.is_refused("refused") and not scene.generations.is_refused("unknown")
    scene.admit.fault = UnavailableError(4.2)
    with pytest.raises(HttpError) as caught:
        await scene.find("unknown")
    assert (caught.value.status, caught.value.retry) == (503, 5)


@pytest.mark.parametrize("names", [(), ("x",)])
async def test_a_generation_forgets_tokens(names: tuple[str, ...]) -> None:
    """No service accepts one until it is looked up again: also not that of the only environment, which gets unknown keys, too."""
    scene = Scene(*names)
    scene.admit.opened |= {"whole": ALL, "part": OF_A, "server": ALL._replace(is_server=True)}
    services = [await scene.find(token) for token in scene.admit.opened]
    scene.use({name: {} for name in names})
    for token, service in zip(scene.admit.opened, services, strict=True):
        assert service is not None and scene.opens(token) is None
        keys = service.keys
        assert not any(each.contains(token.encode()) for each in (keys.either, keys.client, keys.server))
        assert await scene.find(token) is service is scene.opens(token)
    listed = f"key-{names[0]}" if names else "key"
    assert scene.opens(listed) is not None, "listed keys stay"


async def test_services_for_some_projects_outlive_other_keys() -> None:
    """They have no listed keys, so cached answers stay. With other settings they are made again."""
    scene = Scene("x")
    scene.admit.opened["token"] = OF_A
    service = await scene.find("token")
    scene.use({"x": {"client_keys": "new"}})
    assert scene.opens("token") is None and await scene.find("token") is service
    scene.use({"x": {"client_keys": "new", "cors_origin": "https://a"}})
    assert await scene.find("token") is not service


async def test_a_token_that_is_taken_back_while_it_is_looked_up() -> None:
    """The answer about it may be older than the revocation: it is asked about again, and not admitted."""
    scene = Scene()
    scene.admit.opened["token"] = ALL

    async def revoke_once() -> None:
        if scene.admit.opened.pop("token", None):
            scene.generations.revoke("token")

    scene.admit.meanwhile = revoke_once
    assert await scene.find("token") is None
    assert scene.admit.asked == ["token"] * 2 and scene.opens("token") is None


async def test_tokens_are_taken_back_all_the_time() -> None:
    """The caller is told to try again after some tries, and nothing is admitted."""
    scene = Scene()
    scene.admit.opened["token"] = ALL

    async def revoke_another() -> None:
        scene.generations.revoke("another")

    scene.admit.meanwhile = revoke_another
    with pytest.raises(HttpError) as caught:
        await scene.find("token")
    assert caught.value.status == 503 and scene.opens("token") is None
    assert len(scene.admit.asked) == MAX_TRIES
    scene.admit.meanwhile = AsyncMock()
    assert await scene.find("token") is scene.environment().service


async def test_an_environment_that_is_replaced() -> None:
    """Services for some projects of the former one are forgotten with it; the next request makes one over the new one."""
    scene = Scene()
    scene.admit.opened["token"] = OF_A
    former = await scene.find("token")
    replacement = scene.replace("")
    assert scene.opens("token") is None
    scene.admit.opened["token"] = OF_A._replace(environment=replacement.number)
    made = await scene.find("token")
    assert made is not None and made is not former and made.sources.usage is scene.made[-1].counters


async def test_an_environment_that_is_replaced_during_the_look_up() -> None:
    """The answer is not about the present environment of the name: the token opens that one only if the next answer says so."""
    scene = Scene("x", "y")
    scene.admit.opened["token"] = ALL

    async def replace_once() -> None:
        async def answer_anew() -> None:
            scene.admit.opened["token"] = ALL._replace(environment=made.number)

        scene.admit.meanwhile = answer_anew
        made = scene.replace("x")

    scene.admit.meanwhile = replace_once
    assert await scene.find("token") is scene.environment("x").service is scene.opens("token")
    assert len(scene.admit.asked) == 3, "the second answer was made before it was known"
    scene.admit.opened["other"] = ALL
    with pytest.raises(HttpError):
        await scene.find("other")
    assert scene.opens("other") is None
