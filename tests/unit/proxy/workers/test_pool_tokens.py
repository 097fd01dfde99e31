"""The pool and tokens: the parent answers each worker's questions, and takes tokens back from all workers."""

from __future__ import annotations

from flagsvc.proxy.tokens import TokenScope, UnavailableError
from flagsvc.proxy.workers import messages
from support.aio import asynchronous
from support.worker_pool_scene import pool_scene

OPENED = messages.TokenOpened(3, False, ("production", ["a"]), False)


@asynchronous
async def test_questions_of_workers() -> None:
    """Each worker gets the answers to its own questions."""
    async with pool_scene(2) as scene:
        scene.opened = {
            "known": (3, False, TokenScope("production", frozenset("a")), False),
            "later": UnavailableError(4.0),
        }
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


@asynchronous
async def test_a_question_of_one_that_is_gone() -> None:
    """An answer for a worker that has ended is not sent to the one in its place."""
    async with pool_scene(1) as scene:
        first = scene.made[0]
        first.channel.send(messages.TokenQuestion(7, ["known"]))
        await scene.until(lambda: scene.asked)
        first.end(1)
        await scene.until(lambda: len(scene.made) == 2 and scene.worker_pool.workers == 1)
        assert scene.made[1].received_of(messages.TokenAnswer) == []


@asynchronous
async def test_a_token_that_is_taken_back() -> None:
    """All workers are told."""
    async with pool_scene(3) as scene:
        scene.worker_pool.revoke_token("revoked")
        for worker in scene.made:
            await scene.until(lambda: worker.received_of(messages.Revoked))  # noqa: B023
            assert worker.received_of(messages.Revoked) == [messages.Revoked("revoked")]


@asynchronous
async def test_tokens_that_are_valid() -> None:
    """All workers are told about them, and so is one that starts later."""
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
