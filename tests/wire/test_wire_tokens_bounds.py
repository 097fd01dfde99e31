"""What callers with unknown tokens may cost: the upstream gets its budget, and one network leaves room for the others."""

from __future__ import annotations

import asyncio

from flagsvc.proxy.tokens.bounds import MAX_WAITING
from flagsvc.testing import turns
from support.aio import asynchronous, until
from support.token_scene import FRONT, UNKNOWN, token_scene


@asynchronous
async def test_many_tokens() -> None:
    """A hundred go into one question. Those beyond what one network may have are turned away, callers from elsewhere are not."""
    many = [f"*:production.hidden-{number}" for number in range(MAX_WAITING // 2 + 50)]
    async with token_scene(token_lookup_rate=1) as scene:
        assert await scene.status("/proxy", UNKNOWN) == 401  # this second's budget
        asking = [asyncio.ensure_future(scene.ask("/proxy", token)) for token in many]
        other = asyncio.ensure_future(scene.status("/proxy", FRONT, peer="198.51.100.1"))
        await turns()
        turned_away = [each.result() for each in asking if each.done()]
        waiting = [each for each in asking if not each.done()]
        assert {(each.status_code, each.headers["retry-after"]) for each in turned_away} == {(503, "1")}
        assert len(turned_away) == 50 and len(scene.questions()) == 1
        for number in range(2, 8):
            while len(scene.questions()) < number:
                await scene.clock.advance(0.1)
        assert await other == 200
        assert [(await each).status_code for each in waiting] == [401] * (MAX_WAITING // 2)
        assert [len(each) for each in scene.questions()] == [1, *[100] * 5, 1]
        assert FRONT in scene.questions()[1], "the other network does not wait for all of this one"


@asynchronous
async def test_the_budget() -> None:
    """However many tokens come, the upstream gets no more questions than the option allows."""
    async with token_scene(token_lookup_rate=2) as scene:
        for second in range(10):
            for part in range(4):
                token = f"*:production.hidden-{second}-{part}"
                asyncio.ensure_future(scene.ask("/proxy", token, peer=f"198.51.{second}.{part}"))  # noqa: RUF006
                await turns()
                await scene.clock.advance(0.25)
            assert len(scene.questions()) <= 2 * (second + 2)
        await scene.clock.advance(5)
        await until(lambda: len({token for each in scene.questions() for token in each}) == 40)


@asynchronous
async def test_addresses_behind_a_proxy() -> None:
    """The caller's address is that of X-Forwarded-For if the peer is trusted: one caller's flood leaves room for others."""
    async with token_scene(trust_proxy="true", token_lookup_rate=1) as scene:
        assert await scene.status("/proxy", UNKNOWN) == 401  # this second's budget
        flood = [
            asyncio.ensure_future(
                scene.ask("/proxy", f"{UNKNOWN}-{number}", headers={"x-forwarded-for": "198.51.100.9"})
            )
            for number in range(MAX_WAITING // 2 + 30)
        ]
        other = asyncio.ensure_future(scene.ask("/proxy", FRONT, headers={"x-forwarded-for": "198.51.101.9"}))
        await turns()
        assert sum(each.done() for each in flood) == 30 and not other.done()
        await scene.clock.advance(2)
        await until(lambda: len(scene.questions()) >= 2)
        assert (await other).status_code == 200
        for _ in range(5):
            await scene.clock.advance(1.1)
            await turns()
        assert {(await each).status_code for each in flood} == {401, 503}
