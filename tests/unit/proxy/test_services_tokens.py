"""The callers' side of tokens that are looked up: which service each opens, and how it is taken back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest

from flagsvc.http.messages import HttpError
from flagsvc.proxy import scoped_services
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.service_finder import MAX_TRIES, ServiceFinder
from flagsvc.proxy.services import CallersSide
from flagsvc.proxy.setup import ProxySetup, make_setup
from flagsvc.proxy.token_directory import Admission
from flagsvc.proxy.tokens import TokenScope, UnavailableError
from support.aio import asynchronous
from support.apps_options import options
from support.evaluating import feature
from support.served import Served

ALL = Admission(0, False, TokenScope("production", None), True)
OF_A = Admission(0, False, TokenScope("production", frozenset("a")), False)
SERVER_OF_A = OF_A._replace(is_server=True)
DOCUMENT = {"features": [feature("of-a", project="a"), feature("of-b", project="b")]}


class FakeAdmit:
    """Says what tokens open. `meanwhile` is called before each answer."""

    def __init__(self) -> None:
        self.opened: dict[str, Admission] = {}
        self.fault: Exception | None = None
        self.meanwhile: Callable[[], object] = lambda: None
        self.asked: list[str] = []
        self.deadlines: list[float] = []

    def is_refused(self, token: str) -> bool:
        """Return whether a token is known to open nothing."""
        return token == "refused"

    async def look_up_all(self, tokens: Sequence[str], network: bytes, deadline: float) -> dict[str, Admission]:
        """Return what tokens open."""
        self.asked += tokens
        self.deadlines.append(deadline)
        found = {token: self.opened[token] for token in tokens if token in self.opened}
        self.meanwhile()
        if self.fault is not None:
            raise self.fault
        return found


class Scene:
    """A process with these environments, or with a single one without a name."""

    def __init__(self, *names: str) -> None:
        tables: dict[str, Any] = {name: {"client_keys": f"key-{name}", "flagsvc_api_token": name} for name in names}
        given = {"client_keys": None, "flagsvc_api_token": None, "environments": tables} if names else {}
        setup = make_setup(options(**given))
        self.served: dict[str, Served] = {}
        self.admit = FakeAdmit()
        origins = ["*"] if names else []
        self.callers = CallersSide(setup, lambda: self.served, origins, admit=self.admit)
        self.numbers = count()
        for part in setup.parts:
            self.serve(part)
        self.callers.refresh()
        self.finder = ServiceFinder(self.callers, self.admit)

    def serve(self, setup: ProxySetup) -> Served:
        """Serve an environment, which may take the place of another one of its name."""
        made = self.served[setup.name] = Served(next(self.numbers), setup, self.callers)
        made.serve(DOCUMENT)
        return made

    async def find(self, token: str) -> Service | None:
        """Return the service that a token opens."""
        return await self.finder.find(token, b"")

    def opens(self, token: str) -> Service | None:
        """Return the service that gets the requests with a token, if it accepts them."""
        assert self.callers.router is not None
        found = self.callers.router.table.find(token.encode())
        return found if found is not None and found.keys.either.contains(token.encode()) else None


@asynchronous
async def test_the_service_of_the_environment() -> None:
    """A token that opens everything gets the service that listed keys get, and is admitted to it."""
    scene = Scene()
    scene.admit.opened["token"] = ALL
    assert scene.opens("token") is None
    assert await scene.find("token") is scene.served[""].service is scene.opens("token")
    assert scene.served[""].service.keys.client.contains(b"token")
    assert not scene.served[""].service.keys.server.contains(b"token")


@asynchronous
async def test_a_service_for_some_projects() -> None:
    """It has their flags and no listed keys. Tokens of the same projects share one, and its usage is that of the environment."""
    scene = Scene()
    scene.admit.opened |= {"one": OF_A, "two": OF_A, "server": SERVER_OF_A}
    service = await scene.find("one")
    assert service is not None and service is not scene.served[""].service
    assert await scene.find("two") is await scene.find("server") is service
    assert service.holder.current is not None and list(service.holder.current.names) == ["of-a"]
    assert service.sources.usage is scene.served[""].counters
    assert service.rates is scene.served[""].service.rates and service.reached is scene.served[""].service.reached
    assert [service.keys.server.contains(key) for key in (b"one", b"server", b"key")] == [False, True, False]
    other = Admission(0, False, TokenScope("production", frozenset("b")), False)
    scene.admit.opened["three"] = other
    assert await scene.find("three") not in (service, scene.served[""].service, None)


@asynchronous
async def test_tokens_are_placed_again() -> None:
    """An environment that has its first configuration may be theirs now, also if that comes in the middle of an answer."""
    scene = Scene("a", "b")
    scene.admit.opened["token"] = ALL
    assert await scene.find("token") is scene.served["a"].service
    scene.callers.reroute_tokens()
    assert scene.opens("token") is None

    def get_ready() -> None:
        if len(scene.admit.asked) == 2:
            scene.admit.opened["token"] = ALL._replace(environment=1)
            scene.callers.reroute_tokens()

    scene.admit.meanwhile = get_ready
    assert await scene.find("token") is scene.served["b"].service is scene.opens("token")
    assert len(scene.admit.asked) == 3


@asynchronous
async def test_more_services_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokens of one that ends open it again when they are used. Other tokens stay, and nothing is forgotten upstream."""
    monkeypatch.setattr(scoped_services, "MAX_SCOPED", 1)
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


@asynchronous
async def test_environments() -> None:
    """A token opens the service of its environment. One whose environment is not there cannot be looked up now."""
    scene = Scene("x", "y")
    scene.admit.opened |= {"x": ALL, "y": OF_A._replace(environment=1), "z": ALL._replace(environment=2)}
    assert await scene.find("x") is scene.served["x"].service
    of_y = await scene.find("y")
    assert of_y is not None and of_y.sources.usage is scene.served["y"].counters
    scene.admit.asked.clear()
    with pytest.raises(HttpError) as caught:
        await scene.find("z")
    assert caught.value.status == 503 and scene.opens("z") is None and scene.admit.asked == ["z"] * MAX_TRIES
    assert scene.opens("key-x") is scene.served["x"].service


@asynchronous
async def test_what_opens_nothing() -> None:
    """No service, or a 503 if that cannot be said now."""
    scene = Scene()
    assert await scene.find("unknown") is None
    assert scene.finder.is_refused("refused") and not scene.finder.is_refused("unknown")
    scene.admit.fault = UnavailableError(4.2)
    with pytest.raises(HttpError) as caught:
        await scene.find("unknown")
    assert (caught.value.status, caught.value.retry) == (503, 5)


@asynchronous
async def test_a_token_that_is_taken_back() -> None:
    """It is refused, whichever service it opened. Other tokens and listed keys stay."""
    scene = Scene()
    scene.admit.opened |= {"whole": ALL, "part": OF_A, "stays": OF_A}
    for token in ("whole", "part", "stays"):
        await scene.find(token)
    for token in ("whole", "part", "nobody", "key"):
        scene.callers.revoke(token)
    assert [scene.opens(token) for token in ("whole", "part")] == [None, None]
    assert scene.opens("stays") is not None and scene.opens("key") is scene.served[""].service


@pytest.mark.parametrize("names", [(), ("x",)])
@asynchronous
async def test_a_reload_forgets_tokens(names: tuple[str, ...]) -> None:
    """No service accepts one until it is looked up again: also not that of the only environment, which gets unknown keys, too."""
    scene = Scene(*names)
    scene.admit.opened |= {"whole": ALL, "part": OF_A, "server": ALL._replace(is_server=True)}
    services = [await scene.find(token) for token in scene.admit.opened]
    scene.callers.refresh()
    for token, service in zip(scene.admit.opened, services, strict=True):
        assert service is not None and scene.opens(token) is None
        keys = service.keys
        assert not any(each.contains(token.encode()) for each in (keys.either, keys.client, keys.server))
        assert await scene.find(token) is service is scene.opens(token)
    listed = f"key-{names[0]}" if names else "key"
    assert scene.opens(listed) is not None, "listed keys stay"


@asynchronous
async def test_a_token_that_is_taken_back_while_it_is_looked_up() -> None:
    """The answer about it may be older than the revocation: it is asked about again, and not admitted."""
    scene = Scene()
    scene.admit.opened["token"] = ALL

    def revoke_once() -> None:
        if scene.admit.opened.pop("token", None):
            scene.callers.revoke("token")

    scene.admit.meanwhile = revoke_once
    assert await scene.find("token") is None
    assert scene.admit.asked == ["token"] * 2 and scene.opens("token") is None


@asynchronous
async def test_tokens_are_taken_back_all_the_time() -> None:
    """The caller is told to try again after some tries, and nothing is admitted."""
    scene = Scene()
    scene.admit.opened["token"] = ALL
    scene.admit.meanwhile = lambda: scene.callers.revoke("another")
    with pytest.raises(HttpError) as caught:
        await scene.find("token")
    assert caught.value.status == 503 and scene.opens("token") is None
    assert len(scene.admit.asked) == MAX_TRIES
    scene.admit.meanwhile = lambda: None
    assert await scene.find("token") is scene.served[""].service


@asynchronous
async def test_an_environment_that_is_replaced() -> None:
    """Services for some projects of the former one are forgotten with it; the next request makes one over the new one."""
    scene = Scene()
    scene.admit.opened["token"] = OF_A
    former = await scene.find("token")
    replacement = scene.serve(scene.served[""].setup)
    scene.callers.refresh()
    assert scene.opens("token") is None
    scene.admit.opened["token"] = OF_A._replace(environment=replacement.number)
    made = await scene.find("token")
    assert made is not None and made is not former and made.sources.usage is scene.served[""].counters


@asynchronous
async def test_an_environment_that_is_replaced_during_the_look_up() -> None:
    """The answer is not about the one that has its name now: the token opens that one only if the next answer says so."""
    scene = Scene("x", "y")
    scene.admit.opened["token"] = ALL

    def replace_once() -> None:
        scene.admit.meanwhile = lambda: scene.admit.opened.update(token=ALL._replace(environment=made.number))
        made = scene.serve(scene.served["x"].setup)
        scene.callers.refresh()

    scene.admit.meanwhile = replace_once
    assert await scene.find("token") is scene.served["x"].service is scene.opens("token")
    assert len(scene.admit.asked) == 3, "the second answer was made before it was known"
    scene.admit.opened["other"] = ALL
    with pytest.raises(HttpError):
        await scene.find("other")
    assert scene.opens("other") is None


@asynchronous
async def test_what_tokens_open_in_the_words_of_the_real_server() -> None:
    """Type, projects and environment are those that the upstream told, in the order of the question."""
    scene = Scene()
    scene.admit.opened |= {
        "*:x.1": ALL,
        "[]:x.2": Admission(0, True, TokenScope("x", frozenset("ba")), False),
        "legacy": Admission(0, False, TokenScope("x", frozenset("a")), True),
    }
    assert await scene.finder.describe(["legacy", "unknown", "[]:x.2", "*:x.1"], b"") == [
        {"token": "legacy", "type": "frontend", "projects": ["a"], "environment": "x"},
        {"token": "[]:x.2", "type": "client", "projects": ["a", "b"], "environment": "x"},
        {"token": "*:x.1", "type": "frontend", "projects": ["*"], "environment": "production"},
    ]
    assert all(scene.opens(token) is None for token in scene.admit.opened), "a question admits no token"
