"""The environments of a worker, as the parent tells them: with their keys, configurations and tokens.

The start of a worker's process: the same options, no visible secret, and nothing that only this process can use.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import Mock

import pytest

from flagsvc import ConfigurationError
from flagsvc.core.errors import ExtensionError
from flagsvc.engine.compile import compile_document
from flagsvc.http.messages import Response
from flagsvc.process.worker import ToldGenerations
from flagsvc.process.worker_start import BLOCKED_SIGNALS, PARENT_ONLY, block_signals, portable_options, read_portable, start_worker
from flagsvc.proxy.configuration import ConfigurationDocument
from flagsvc.proxy.generations.setup import make_setup
from flagsvc.proxy.tokens import Admission, TokenScope
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import Channel, connect_channel
from flagsvc.proxy.workers.link import ParentLink
from flagsvc.proxy.workers.messages import EnvironmentOptions, Welcome
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.table import BY_NAME
from flagsvc.testing import MemoryStore, RecordingLog, turns
from support.aio import until
from support.apps_options import options as usual
from support.evaluating import feature
from support.option_samples import SAMPLES
from support.settings_samples import needed
from unit.proxy.generation_scene import ask, begin


def told(number: int, name: str, *, ready: bool = False, **given: Any) -> EnvironmentOptions:
    """Return what the parent tells of an environment."""
    made = ProxyOptions(**{"flagsvc_url": "file:///f.json", "client_keys": f"key-{name}", "log_level": "fatal", **given})
    return EnvironmentOptions(number, name, portable_options(made), ready)


class Beginning:
    """The environments of a worker that has got its first message."""

    def __init__(self, *first: EnvironmentOptions, former: Sequence[EnvironmentOptions] = ()) -> None:
        self.log = RecordingLog()
        setup = make_setup(ProxyOptions(**first[0].options), is_worker=True)
        self.link: ParentLink = ParentLink(worker=0, log=self.log, clock=setup.clock)
        self.told = ToldGenerations(setup, self.link, Welcome(0, list(first), list(former)))
        self.generations = self.told.generations

    def use(self, *environments: EnvironmentOptions) -> None:
        """Serve these environments."""
        self.told.use(environments)

    def serve(self, number: int, *toggles: str) -> None:
        feed = next(each for each in self.generations.feeds if each.number == number)
        compiled = compile_document({"features": [feature(name) for name in toggles]}, feed.setup.compile_options)
        feed.holder.replace(compiled.snapshot, ConfigurationDocument(b"{}", '"t"'), 0)
        feed.holder.note_check(1.0)

    def ask(self, key: str) -> tuple[int, list[str]]:
        """Return the status for a key, and the toggles that it sees."""
        return outcome(ask(self.generations.entrance, key=key))


def outcome(answer: Response) -> tuple[int, list[str]]:
    """Return the status of an answer, and its toggles."""
    found = json.loads(answer.body)["toggles"] if answer.status == 200 else []
    return answer.status, [each["name"] for each in found]


def numbers(worker: Beginning) -> list[int]:
    """Return the numbers of the feeds that there are."""
    return sorted(each.number for each in worker.generations.feeds)


def test_a_single_environment() -> None:
    """It has no name, and no router; new keys replace its keys."""
    worker = Beginning(told(0, ""))
    assert worker.generations.current.router is None
    worker.serve(0, "one")
    assert worker.ask("key-") == (200, ["one"])
    worker.use(told(0, "", client_keys="new"))
    assert [worker.ask(key) for key in ("key-", "new")] == [(401, []), (200, ["one"])]


def test_environments_that_come_and_go() -> None:
    """What is not told any more is forgotten, with its keys."""
    worker = Beginning(told(0, "a"), told(1, "b"))
    worker.use(told(1, "b"), told(2, "c"))
    worker.serve(1, "of-b")
    worker.serve(2, "of-c")
    assert [worker.ask(key) for key in ("key-a", "key-b", "key-c")] == [(401, []), (200, ["of-b"]), (200, ["of-c"])]
    assert numbers(worker) == [1, 2]


async def late() -> Beginning:
    """Return a running worker that is told other options of an environment, and has no configuration with them yet."""
    worker = Beginning(told(0, "a", client_keys="both,ended"), told(1, "b"))
    worker.told.start()
    worker.serve(0, "former")
    worker.serve(1, "of-b")
    await turns()
    worker.use(told(2, "a", client_keys="both,new", name_prefix="x."), told(1, "b"))
    return worker


async def test_an_environment_that_takes_the_place_of_another() -> None:
    """It answers when its configuration has come, and not before. Until then only keys of both open the environment before."""
    worker = await late()
    assert [worker.ask(key) for key in ("both", "new", "ended")] == [(200, ["former"]), (503, []), (401, [])]
    await turns()
    assert worker.ask("both") == (200, ["former"]) and numbers(worker) == [0, 1, 2]
    worker.serve(2, "x.present")
    await turns()
    assert [worker.ask(key) for key in ("both", "new", "ended")] == [*[(200, ["x.present"])] * 2, (401, [])]
    assert worker.ask("key-b") == (200, ["of-b"]) and numbers(worker) == [1, 2]
    assert worker.generations.current.environments["a"].setup.compile_options.name_prefix == "x."
    assert worker.log.lines == [], "the parent logs that"


async def test_a_worker_that_starts_while_an_environment_waits() -> None:
    """It serves what the parent serves meanwhile: the environment before, with the keys that open it now."""
    wanted = told(2, "a", client_keys="both,new", name_prefix="x.")
    worker = Beginning(wanted, told(1, "b"), former=[told(0, "a", client_keys="both", ready=True)])
    worker.told.start()
    waiting = asyncio.ensure_future(worker.told.wait_configured())
    await turns()
    assert not waiting.done()
    worker.serve(0, "former")
    await waiting
    assert [worker.ask(key) for key in ("both", "new")] == [(200, ["former"]), (503, [])]
    worker.serve(2, "x.present")
    await turns()
    assert [worker.ask(key) for key in ("both", "new")] == [(200, ["x.present"])] * 2 and numbers(worker) == [1, 2]


def test_a_new_environment_does_not_change_the_readiness() -> None:
    """Also if no probe has asked for it before: each environment was tried once by then."""
    worker = Beginning(told(0, "a"), told(1, "b"))
    worker.serve(0, "one")
    assert worker.generations.readiness.find_objection() == "cold"
    worker.serve(1, "two")
    worker.use(told(0, "a"), told(1, "b"), told(2, "c"))
    assert worker.generations.readiness.find_objection() == ""


def test_code_that_cannot_be_used_any_more() -> None:
    """The link ends the worker then."""
    worker = Beginning(told(0, "a"))
    with pytest.raises(ExtensionError, match="does not exist"):
        worker.use(told(0, "a"), told(1, "b", custom_strategies="none.py"))


async def test_a_start_waits_for_configurations_that_follow() -> None:
    """It waits for all configurations of the parent, and for no other."""
    first = [told(0, "a", ready=True), told(1, "b"), told(2, "c", ready=True)]
    worker = Beginning(*first)
    worker.told.start()
    waiting = asyncio.ensure_future(worker.told.wait_configured())
    await turns()
    worker.serve(0, "of-a")
    await turns()
    assert not waiting.done()
    worker.serve(2, "of-c")
    await waiting


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("gone", [0, 1])
async def test_an_environment_that_goes_during_the_start(gone: int, early: bool) -> None:
    """The start does not wait for its configuration, which never comes. It waits for the others."""
    first = [told(0, "a", ready=True), told(1, "b", ready=True)]
    worker = Beginning(*first)
    worker.told.start()
    waiting = asyncio.ensure_future(worker.told.wait_configured())
    if not early:
        await turns()
    worker.use(first[1 - gone])
    await turns()
    assert not waiting.done()
    worker.serve(1 - gone, "left")
    await waiting


TOKEN = "*:development.caller"
LOOKS_UP: dict[str, Any] = {"token_validation": "upstream", "flagsvc_url": "https://one.example/api"}
DEVELOPMENT: dict[str, Any] = {**LOOKS_UP, "flagsvc_api_token": "*:development.s"}
PRODUCTION: dict[str, Any] = {**LOOKS_UP, "flagsvc_api_token": "*:production.s"}


class Worker(Beginning):
    """A worker with a parent that says what it is told to."""

    def __init__(self, *first: messages.EnvironmentOptions) -> None:
        super().__init__(*first)
        self.questions: list[messages.TokenQuestion] = []
        self.parent: Channel[messages.WorkerMessage] = Channel(messages.decode_worker_message, self.take)

    def take(self, message: messages.WorkerMessage, body: bytes) -> None:
        if isinstance(message, messages.TokenQuestion):
            self.questions.append(message)

    async def question(self, number: int = 1) -> messages.TokenQuestion:
        """Return a question of the worker, the first or a later one."""
        await until(lambda: len(self.questions) >= number)
        return self.questions[number - 1]

    async def request(self) -> tuple[int, list[str]]:
        """Return the status for the token, and the flags that it sees."""
        answer = begin(self.generations.entrance, key=TOKEN)
        return outcome(answer if isinstance(answer, Response) else await answer)


@asynccontextmanager
async def worker(*first: messages.EnvironmentOptions) -> AsyncIterator[Worker]:
    """Run a worker with these environments until the block ends."""
    made = Worker(*first)
    here, there = socket.socketpair()
    await connect_channel(here, made.parent)
    await connect_channel(there, made.link.channel)
    made.told.start()
    made.link.start(made.generations.sources, Mock())
    try:
        yield made
    finally:
        await made.link.stop()
        made.parent.close()


def opened(question: messages.TokenQuestion, environment: int) -> messages.TokenAnswer:
    """Return the answer that the token opens the whole of an environment."""
    scope = TokenScope("development", None)
    return messages.TokenAnswer(question.number, [Admission(environment, False, scope, True)])


async def test_an_environment_that_takes_the_place_of_another_meanwhile() -> None:
    """The answer about the former one of a name opens nothing of the present one, now or later: the parent is asked again."""
    other = told(1, "other")
    async with worker(told(0, "x", **DEVELOPMENT), other) as made:
        made.serve(0, "dev-flag")
        await turns()
        asking = asyncio.ensure_future(made.request())
        made.parent.send(opened(await made.question(), 0))
        made.use(told(2, "x", **PRODUCTION), other)
        made.serve(2, "prod-flag")
        made.parent.send(messages.TokenAnswer((await made.question(2)).number, [None]))
        assert await asking == (401, []), "the parent says now that the token opens nothing"
        assert await made.request() == (401, []) and len(made.questions) == 2


async def test_a_token_that_a_waiting_environment_may_open() -> None:
    """Only that one looks up tokens. The parent is asked, and says that callers wait."""
    other = told(1, "other")
    async with worker(told(0, "x", flagsvc_api_token="t"), other) as made:
        made.serve(0, "dev-flag")
        await turns()
        assert await made.request() == (401, []) and made.questions == []
        made.use(told(2, "x", **DEVELOPMENT), other)
        asking = asyncio.ensure_future(made.request())
        made.parent.send(messages.TokenAnswer((await made.question()).number, retry_s=1.0))
        assert await asking == (503, [])


async def test_a_refusal_is_forgotten_at_a_reload() -> None:
    """There may be other environments now."""
    other = told(1, "other")
    async with worker(told(0, "x", **DEVELOPMENT), other) as made:
        made.serve(0, "dev-flag")
        await turns()
        asking = asyncio.ensure_future(made.request())
        made.parent.send(messages.TokenAnswer((await made.question()).number, [None]))
        assert await asking == await made.request() == (401, []) and len(made.questions) == 1
        made.use(told(0, "x", **DEVELOPMENT), other)
        asking = asyncio.ensure_future(made.request())
        made.parent.send(opened(await made.question(2), 0))
        assert await asking == (200, ["dev-flag"])


def carried(options: ProxyOptions) -> ProxyOptions:
    """Return the options as they come out at the other end."""
    return read_portable(json.loads(json.dumps(portable_options(options))))


CARRIED = [name for name in SAMPLES if BY_NAME[name].field not in PARENT_ONLY and not BY_NAME[name].deprecated]


@pytest.mark.parametrize("name", CARRIED)
def test_options_get_there(name: str) -> None:
    """For any value of an option, the worker has the same value. All other options have their defaults."""
    options = usual(**{BY_NAME[each].field: SAMPLES[each][0] for each in (name, *needed(name))})
    assert carried(options) == options


def test_what_only_the_parent_needs() -> None:
    """A storage provider made in code stays here, the storage with its passwords does, and a worker has no workers."""
    storage = {"storage_provider": MemoryStore(), "storage": "redis://:sample-secret@h", "storage_password": "sample-secret"}
    given = portable_options(usual(**storage, workers=2))
    assert "sample-secret" not in repr(given) and "workers" not in given
    assert not [name for name in given if name.startswith("storage")]


@pytest.mark.parametrize(
    ("field", "value"),
    [("logger", RecordingLog()), ("custom_strategies", [object()]), ("exp_custom_enrichers", [lambda context: context])],
)
def test_objects_cannot_be_carried(field: str, value: object) -> None:
    """An object made in code is refused by the name of its option."""
    with pytest.raises(ConfigurationError) as raised:
        portable_options(usual(**{field: value, "workers": 3}))
    [problem] = raised.value.problems
    assert problem == f"{field}: it is an object made in code, which cannot be given to 3 workers"


def test_signals_wait() -> None:
    """A signal that comes while a worker is started is not lost, and has its effect afterwards."""
    got: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))
    try:
        with block_signals(BLOCKED_SIGNALS):
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)  # other threads, if any, do not hold it back
            assert got == []
        assert got == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_worker_whose_parent_is_gone() -> None:
    """A process without a parent ends by itself. Its only argument is a number."""
    here, there = socket.socketpair()
    with there, here:
        child = start_worker([], there)
    assert isinstance(child.args, list)
    assert child.args[1:] == ["-P", "-m", "flagsvc.process.worker", child.args[-1]] and child.args[-1].isdigit()
    assert child.wait(20) == 0
