"""The generations of a process whose upstream sides do what a test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from flagsvc.engine.compile import compile_document
from flagsvc.http.contract import Contract
from flagsvc.http.messages import Request, Response
from flagsvc.proxy.configuration import ConfigurationDocument, Holder
from flagsvc.proxy.configuration.lifecycle import Event
from flagsvc.proxy.generations.environment import Environment, make_counters
from flagsvc.proxy.generations.feeds import Feed
from flagsvc.proxy.generations.generation import Generations
from flagsvc.proxy.generations.setup import ProxySetup, make_setup, next_setup
from flagsvc.settings.options import ProxyOptions
from flagsvc.testing import RecordingLog, turns
from support.evaluating import feature

Given = Mapping[str, Mapping[str, object]]
"""Options by name of environment."""


class FakeFeed(Feed):
    """An upstream side. `calls` are the calls of its methods; a stop waits for `gate`, and fails with `error`."""

    def __init__(self, setup: ProxySetup, number: int) -> None:
        holder = Holder()
        super().__init__(setup, number, holder, make_counters(setup, holder))
        self.calls: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    def start(self) -> None:
        self.calls.append("start")

    async def stop(self) -> None:
        """Note it, wait, and fail if the test says so."""
        self.calls.append("stop")
        await self.gate.wait()
        self.calls.append("stopped")
        if self.error is not None:
            raise self.error

    def use_options(self, options: ProxyOptions) -> None:
        if options.flagsvc_api_token != self.token:
            self.calls.append("token")
        self.token = options.flagsvc_api_token

    def serve(self, *toggles: str) -> None:
        """Have a configuration with these toggles, by default with a toggle of the environment's name."""
        self.serve_document({"version": 2, "features": [feature(each) for each in toggles or (self.name or "only",)]})

    def serve_document(self, document: Mapping[str, object], *, is_confirmed: bool = True) -> None:
        """Use a client-features document as the configuration, from the upstream or from elsewhere."""
        compiled = compile_document(document, self.setup.compile_options)
        self.holder.replace(compiled.snapshot, ConfigurationDocument(json.dumps(document).encode(), '"t"'), 0)
        if is_confirmed:
            self.holder.note_check(self.setup.clock.monotonic())

    def fail(self) -> None:
        self.holder.record_check(Event.FAILED, 1)


class GenerationScene:
    """Generations with everything around them. `made` has every feed so far, `changes` counts the calls of `on_change`.

    Feeds of environments in `failing` cannot be made, for this reason.
    """

    def __init__(self, given: Given, *, admit: Any = None, **more: Any) -> None:
        self.log = RecordingLog()
        self.more = more
        self.made: list[FakeFeed] = []
        self.failing: dict[str, Exception] = {}
        self.changes = 0
        setup = make_setup(self.options(given))
        self.generations = Generations(setup, self.make, admit=admit, on_change=self.note)

    def options(self, given: Given) -> ProxyOptions:
        """Return options with these environments, each with a key and a token of its own unless it is given others."""
        environments = {
            name: {"client_keys": f"key-{name}", "flagsvc_api_token": f"token-{name}", **each} for name, each in given.items()
        }
        usual = {"flagsvc_url": "http://127.0.0.1:1/api", "logger": self.log, "storage": "none"}
        return ProxyOptions(**{**usual, "environments": environments, **self.more})

    def make(self, setup: ProxySetup) -> FakeFeed:
        """Make a feed, or fail."""
        if setup.name in self.failing:
            raise self.failing[setup.name]
        self.made.append(FakeFeed(setup, len(self.made)))
        return self.made[-1]

    def note(self) -> None:
        self.changes += 1

    async def serve(self, number: int, *toggles: str) -> None:
        """Have a feed get a configuration, and let that take its effect."""
        self.made[number].serve(*toggles)
        await turns()

    def use(self, given: Given) -> None:
        self.generations.use(next_setup(self.generations.setup, self.options(given)))

    @property
    def names(self) -> dict[str, int]:
        """The environments that answer, each with the number of its feed."""
        return {each.name: each.feed.number for each in self.generations}

    @property
    def waiting(self) -> dict[str, int]:
        """The environments that wait for their places, each with the number of its feed."""
        return {name: each.feed.number for name, each in self.generations.current.waiting.items()}

    def environment(self, name: str = "") -> Environment:
        return self.generations.current.environments[name]

    def toggles(self, key: str) -> list[str] | int:
        """Return the toggles that a key sees, or the status if that is not 200."""
        answer = ask(self.generations.entrance, key=key)
        if answer.status != 200:
            return answer.status
        return [each["name"] for each in json.loads(answer.body)["toggles"]]

    def open(self, *keys: str) -> list[list[str] | int]:
        """Return what each key sees."""
        return [self.toggles(key) for key in keys]


async def running(given: Given, **more: Any) -> GenerationScene:
    """Return generations that have started. Each environment has a configuration."""
    scene = GenerationScene(given, **more)
    scene.generations.start()
    for each in scene.made:
        each.serve()
    await turns()
    return scene


def ask(
    contract: Contract, path: str = "/proxy", key: str = "", method: str = "GET", body: object = None, **headers: str
) -> Response:
    """Return the answer to a request that takes no time."""
    answer = begin(contract, path, key, method, body, **headers)
    assert isinstance(answer, Response)
    return answer


def begin(
    contract: Contract, path: str = "/proxy", key: str = "", method: str = "GET", body: object = None, **headers: str
) -> Response | Awaitable[Response]:
    """Return the answer to a request, or an awaitable of it."""
    content = b"" if body is None else json.dumps(body).encode()
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    pairs += [(b"authorization", key.encode())] * bool(key)
    pairs += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))] * bool(content)
    admitted = contract.admit(Request(method.encode(), path.encode(), b"", pairs, peer="192.0.2.1"))
    return admitted if isinstance(admitted, Response) else admitted.handler.answer(admitted, content)


async def validate(scene: GenerationScene, tokens: Sequence[str], key: str = "") -> list[dict[str, Any]]:
    """Return what the process tells about tokens."""
    answer = begin(scene.generations.entrance, "/edge/validate", key, "POST", {"tokens": list(tokens)})
    response = answer if isinstance(answer, Response) else await answer
    found: list[dict[str, Any]] = json.loads(response.body)["tokens"]
    return found


def left_over() -> list[str]:
    """Return what the tasks of this loop run that are not of the test itself."""
    names = [task.get_coro().__qualname__ for task in asyncio.all_tasks()]  # type: ignore[union-attr]
    return [name for name in names if name != "wait_for" and not name.startswith("test_")]
