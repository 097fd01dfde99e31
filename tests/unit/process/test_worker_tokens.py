"""Tokens in a worker: what the parent says about one opens the environment that it means, and no other one of its name."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import Mock

from flagsvc.http.messages import Response
from flagsvc.proxy.tokens import Admission, TokenScope
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.channel import Channel, connect_channel
from flagsvc.testing import turns
from support.aio import until
from unit.process.test_worker import Beginning, outcome, told
from unit.proxy.generation_scene import begin

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
