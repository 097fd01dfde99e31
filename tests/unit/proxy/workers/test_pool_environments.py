"""The parent's side with several environments: what workers are told, sent and counted for.

The pool and tokens: the parent answers each worker's questions, and takes tokens back from all workers.
"""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.proxy.tokens import Admission, TokenScope, UnavailableError
from flagsvc.proxy.usage.unsent import UsageWindow
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.pool import LEAST_RETRY_S
from unit.proxy.workers.worker_pool_scene import PoolScene, pool_scene, served

NAMES = ("a", "b")


def counts(environment: int, yes: int, **samples: float) -> messages.Counts:
    """Return counts of one environment, with samples."""
    found: list[tuple[list[str], float]] = [([name], value) for name, value in samples.items()]
    return messages.Counts(environment, [UsageWindow(1.0, 2.0, {"a": (yes, 0, {})})], [(("shop", "one"), {"x": yes})], found)


def yes_of(scene: PoolScene, environment: int) -> int:
    """Return how often a toggle was on by the counters of an environment."""
    bucket = scene.every_counters[environment].drain()
    return 0 if bucket is None else bucket.toggles["a"].yes


async def test_a_worker_is_told_all_environments() -> None:
    """The first message has each with its number, its name and its options, and tells which of them have a configuration."""
    async with pool_scene(1, names=NAMES) as scene:
        assert scene.made[0].received[0] == messages.Welcome(0, [served(0, "a"), served(1, "b")], [], [[0]], {"port": 3000}, False)
        scene.has_started = True
        key = object()
        await scene.distributions[1].prepare(key, b"of b")
        scene.distributions[1].switch(key)
        await scene.distributions[1].prepare(object(), b"not switched to")
        scene.made[0].end(1)
        await scene.until(lambda: len(scene.made) == 2 and scene.made[1].received_of(messages.Switch))
        welcome, prepare, switch = scene.made[1].received
        assert isinstance(welcome, messages.Welcome) and welcome.has_started
        assert [(each.name, each.has_configuration) for each in welcome.environments] == [("a", False), ("b", True)]
        assert (prepare, switch) == (messages.Prepare(1, 1), messages.Switch(1, 1))
        assert scene.made[1].bodies == [b"of b"]


async def test_documents_of_two_environments() -> None:
    """Each environment has documents of its own with their own numbers. No environment waits for another."""
    async with pool_scene(2, names=NAMES) as scene:
        first, second = object(), object()
        for worker in scene.made:
            worker.ignores.add(messages.Prepare)
        waiting = asyncio.ensure_future(scene.distributions[0].prepare(first, b"of a"))
        await scene.until(lambda: all(worker.received_of(messages.Prepare) for worker in scene.made))
        for worker in scene.made:
            worker.ignores.clear()
        await scene.distributions[1].prepare(second, b"of b")
        assert not waiting.done(), "what a worker has prepared for one environment is nothing to the other"
        for worker in scene.made:
            worker.channel.send(messages.Prepared(1, "revision", 0))
        await waiting
        scene.distributions[0].switch(second)
        scene.distributions[0].switch(first)
        await scene.distributions[0].wait_settled()
        for worker in scene.made:
            assert worker.received_of(messages.Prepare) == [messages.Prepare(1, 0), messages.Prepare(1, 1)]
            assert worker.received_of(messages.Switch) == [messages.Switch(1, 0)]
        assert [each.has_configuration for each in scene.distributions] == [True, False]


async def test_freshness_and_failures_of_two_environments() -> None:
    """Each message has its environment and goes to every worker; a new worker is told them again before it serves."""
    async with pool_scene(2, names=NAMES) as scene:
        scene.distributions[0].confirm(2.5)
        scene.distributions[1].report_failure()
        told = [messages.Checked(2.5, 0), messages.Failed(1)]
        await scene.until(lambda: all(worker.received[1:] == told for worker in scene.made))
        scene.made[0].end(1)
        await scene.until(lambda: len(scene.made) == 3 and scene.made[2].received[1:3] == told)
        assert scene.worker_pool.loop_restarts == 0


async def test_counts_of_two_environments() -> None:
    """Usage and registrations go to the counters of the environment; metrics are those of the process."""
    async with pool_scene(2, names=NAMES) as scene:
        for worker in scene.made:
            worker.channel.send(counts(0, 1, flagsvc_http_requests=1))
            worker.channel.send(counts(1, 10))
        await scene.worker_pool.gather_counts()
        assert [yes_of(scene, number) for number in (0, 1)] == [2, 20]
        assert [list(each.take_registrations().values()) for each in scene.every_counters] == [[{"x": 1}], [{"x": 10}]]
        assert scene.worker_pool.metric_sums.total({}) == {("flagsvc_http_requests",): 2}


async def test_counts_of_an_environment_that_is_gone() -> None:
    """Its usage belongs to no environment. The metrics beside it count."""
    async with pool_scene(1, names=NAMES) as scene:
        scene.worker_pool.forget_feed(1)
        scene.made[0].channel.send(counts(1, 10, flagsvc_http_requests=1))
        await scene.worker_pool.gather_counts()
        assert [yes_of(scene, number) for number in (0, 1)] == [0, 0]
        assert scene.worker_pool.metric_sums.total({}) == {("flagsvc_http_requests",): 1}
        assert scene.worker_pool.workers == 1


async def test_an_environment_that_takes_the_place_of_another() -> None:
    """All workers are told the new one. A worker that starts before the change is told both, and a later one no other."""
    async with pool_scene(2, names=NAMES) as scene:
        number = scene.add()
        wanted, former = [served(number, "a"), served(1, "b")], served(0, "a", client_keys=["k"])
        scene.worker_pool.use_environments(wanted, [former])
        await scene.worker_pool.wait_reloaded()
        assert [worker.received_of(messages.Reload)[-1] for worker in scene.made] == [messages.Reload(2, wanted)] * 2
        scene.made[0].end(1)
        await scene.until(lambda: len(scene.made) == 3 and scene.made[2].received)
        assert scene.made[2].received[0] == messages.Welcome(0, wanted, [former], [[0], [1]], {"port": 3000})
        await scene.reload(*wanted)
        scene.worker_pool.forget_feed(0)
        scene.made[1].end(1)
        await scene.until(lambda: len(scene.made) == 4 and scene.made[3].received)
        assert scene.made[3].received[0] == messages.Welcome(1, wanted, [], [[0], [1]], {"port": 3000})
        assert scene.log.at("warn") == []


async def test_a_worker_that_starts_during_a_change_has_it_already() -> None:
    """It was told the environments in its first message, so that the pool does not wait for its acknowledgement."""
    async with pool_scene(1, names=NAMES) as scene:
        scene.made[0].ignores.add(messages.Reload)
        reloading = asyncio.ensure_future(scene.reload(served(1, "b")))
        await scene.until(lambda: scene.made[0].received_of(messages.Reload))
        scene.made[0].end(1)
        await reloading
        await scene.until(lambda: scene.worker_pool.workers == 1 and len(scene.made) == 2)
        await scene.worker_pool.wait_reloaded()
        assert scene.log.at("warn") == [] and not scene.made[1].received_of(messages.Reload)


OPENED = Admission(3, False, TokenScope("production", frozenset(["a"])), False)


async def test_questions_of_workers() -> None:
    """Each worker gets the answers to its own questions."""
    async with pool_scene(2) as scene:
        scene.opened = {"known": OPENED, "later": UnavailableError(4.0)}
        scene.made[0].channel.send(messages.TokenQuestion(7, ["known", "unknown"], "cb", 4.0))
        scene.made[0].channel.send(messages.TokenQuestion(8, ["unknown"]))
        scene.made[1].channel.send(messages.TokenQuestion(7, ["known", "later"], "cb", 5.0))
        await scene.until(lambda: len(scene.made[0].received_of(messages.TokenAnswer)) == 2)
        await scene.until(lambda: scene.made[1].received_of(messages.TokenAnswer))
        assert sorted(scene.made[0].received_of(messages.TokenAnswer), key=lambda each: int(each.number)) == [
            messages.TokenAnswer(7, [OPENED, None]),
            messages.TokenAnswer(8, [None]),
        ]
        assert scene.made[1].received_of(messages.TokenAnswer) == [messages.TokenAnswer(7, [], 4.0)]
        assert sorted(scene.asked) == [
            (["known", "later"], b"\xcb", 5.0),
            (["known", "unknown"], b"\xcb", 4.0),
            (["unknown"], b"", 0.0),
        ]


@pytest.mark.parametrize(("seconds", "told"), [(0.0, LEAST_RETRY_S), (0.3, LEAST_RETRY_S), (42.0, 42.0)])
async def test_it_cannot_be_said_now(seconds: float, told: float) -> None:
    """The seconds are never 0, which would mean that the tokens open nothing."""
    async with pool_scene(1) as scene:
        scene.opened["later"] = UnavailableError(seconds)
        scene.made[0].channel.send(messages.TokenQuestion(7, ["later"]))
        await scene.until(lambda: scene.made[0].received_of(messages.TokenAnswer))
        assert scene.made[0].received_of(messages.TokenAnswer) == [messages.TokenAnswer(7, [], told)]


async def test_a_question_of_one_that_is_gone() -> None:
    """An answer for a worker that has ended is not sent to the one in its place."""
    async with pool_scene(1) as scene:
        first = scene.made[0]
        first.channel.send(messages.TokenQuestion(7, ["known"]))
        await scene.until(lambda: scene.asked)
        first.end(1)
        await scene.until(lambda: len(scene.made) == 2 and scene.worker_pool.workers == 1)
        assert scene.made[1].received_of(messages.TokenAnswer) == []


async def test_a_token_that_is_taken_back() -> None:
    """All workers are told."""
    async with pool_scene(3) as scene:
        scene.worker_pool.revoke_token("revoked")
        for worker in scene.made:
            await scene.until(lambda: worker.received_of(messages.Revoked))  # noqa: B023
            assert worker.received_of(messages.Revoked) == [messages.Revoked("revoked")]


async def test_tokens_that_are_valid() -> None:
    """All workers hear about them, also a worker that starts later."""
    async with pool_scene(2) as scene:
        assert not scene.made[0].received_of(messages.ValidTokens), "there are none at the start"
        scene.valid += ["a1", "b2"]
        scene.worker_pool.tell_valid_tokens([])
        scene.worker_pool.tell_valid_tokens(["b2"])
        for worker in scene.made:
            await scene.until(lambda: worker.received_of(messages.ValidTokens))  # noqa: B023
            assert worker.received_of(messages.ValidTokens) == [messages.ValidTokens(["b2"])]
        scene.made[0].end(1)
        await scene.until(lambda: len(scene.made) == 3 and scene.worker_pool.workers == 2)
        assert scene.made[2].received_of(messages.ValidTokens) == [messages.ValidTokens(["a1", "b2"])]
