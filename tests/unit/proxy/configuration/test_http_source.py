"""The features endpoint as a source, and a change of its token."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.configuration.sources import HttpSource
from flagsvc.proxy.upstream import Fetched
from flagsvc.testing import RecordingUpstream, turns
from support.aio import asynchronous


class Api(RecordingUpstream):
    """Notes the ETags it is asked with; `gate` holds its answers back while it is closed, `away` has it fail."""

    def __init__(self) -> None:
        super().__init__()
        self.etags: list[str | None] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.away = False

    async def get_features(self, etag: str | None) -> Fetched:
        """Answer."""
        self.etags.append(etag)
        await self.gate.wait()
        if self.away:
            raise UpstreamError("network", "away")
        return Fetched(b"{}", '"one"')


@asynchronous
async def test_without_a_change() -> None:
    """It is asked with the ETag it is given, and there is no news."""
    api = Api()
    source = HttpSource(api)
    assert source.pace is None
    news = asyncio.ensure_future(source.news())
    assert (await source.fetch('"one"')).body == b"{}"
    await turns()
    assert api.etags == ['"one"'] and not news.done()
    news.cancel()


@asynchronous
async def test_a_change() -> None:
    """It is news at once, also to who asks later; until an answer is there no ETag is sent, which may be another document's."""
    api = Api()
    source = HttpSource(api)
    news = asyncio.ensure_future(source.news())
    await turns()
    source.renew()
    await news
    await source.news()
    api.away = True
    with pytest.raises(UpstreamError):
        await source.fetch('"one"')
    api.away = False
    for _ in range(2):
        await source.fetch('"one"')
    assert api.etags == [None, None, '"one"']
    late = asyncio.ensure_future(source.news())
    await turns()
    assert not late.done(), "the fetch has brought it"
    late.cancel()


@asynchronous
async def test_being_told_to_ask_again() -> None:
    """A request for a new poll is news at once, also during a poll. The last document stays valid, so its ETag is sent."""
    api = Api()
    source = HttpSource(api)
    source.poll_now()
    await source.news()
    api.gate.clear()
    fetching = asyncio.ensure_future(source.fetch('"one"'))
    await turns()
    source.poll_now()
    api.gate.set()
    await fetching
    await source.news()
    await source.fetch('"one"')
    assert api.etags == ['"one"', '"one"']
    late = asyncio.ensure_future(source.news())
    await turns()
    assert not late.done()
    late.cancel()


@asynchronous
async def test_a_change_while_it_is_asked() -> None:
    """An answer to the former token says nothing about the new one."""
    api = Api()
    source = HttpSource(api)
    api.gate.clear()
    fetching = asyncio.ensure_future(source.fetch('"one"'))
    await turns()
    source.renew()
    api.gate.set()
    await fetching
    await source.news()
    await source.fetch('"one"')
    assert api.etags == ['"one"', None]
