"""What the poller notes for people: since when, why not, when again, and what was left out."""

from __future__ import annotations

from support.aio import asynchronous
from support.polling import DOWN, ONE, TWO, running


@asynchronous
async def test_what_is_noted() -> None:
    """A failure notes its words and moment; the recovery removes the words, and a change of state notes when."""
    async with running(ONE, DOWN, DOWN, TWO, TWO) as world:
        notes, clock = world.poller.notes, world.clock
        delay = await clock.next_sleep()
        began = clock.now()
        assert (notes.since, notes.error, notes.failed_at, notes.next_at) == (began, "", None, began + delay)
        await clock.advance(delay)
        delay = await clock.next_sleep()
        failed = clock.now()
        assert (notes.since, notes.error, notes.failed_at) == (failed, str(DOWN), failed)
        await clock.advance(delay)
        delay = await clock.next_sleep()
        assert (notes.since, notes.failed_at) == (failed, clock.now()), "it is still the same state"
        await clock.advance(delay)
        await clock.next_sleep()
        assert notes.error == "" and notes.since == clock.now() > failed
