"""The event stream of the proxy: each second, and when an environment serves or knows something else."""

from __future__ import annotations

import copy
from typing import Any

from flagsvc.http.parts import PartsResponse
from flagsvc.pages.live import MAX_OF_ONE, MAX_STREAMS
from flagsvc.proxy.configuration import State
from flagsvc.proxy.pages import rows
from support.aio import asynchronous, until
from support.desk_scene import DOCUMENT, ELSEWHERE, KEY, DeskScene, header, serve
from unit.pages.test_live import Caller


async def listen(desk: DeskScene, **more: Any) -> Caller:
    """Open a stream."""
    answer = await desk.ask("/ui/stream", **more)
    assert isinstance(answer, PartsResponse), answer.status
    caller = Caller(answer.parts)
    answer.parts.open(caller)
    return caller


async def sign_in(desk: DeskScene) -> str:
    """Open a session, and return its cookie."""
    signed_in = await desk.ask("/ui/sign-in", "POST", {"key": KEY}, host=ELSEWHERE)
    return (header(signed_in, "set-cookie") or "").partition(";")[0]


@asynchronous
async def test_seconds_and_revisions(monkeypatch: Any) -> None:
    """Every second is told, and a revision or a state once; the events name no flag."""
    monkeypatch.setattr(rows, "SECOND_S", 0.002)
    desk = DeskScene()
    caller = await listen(desk)
    await until(lambda: caller.sent.count(b"event: second") == 3)
    assert caller.sent.count(b"event: revision") == 1
    document: Any = copy.deepcopy(DOCUMENT)
    document["features"] = document["features"][:1]
    serve(desk.only, document)
    desk.only.holder.set_state(State.STALE)
    await until(lambda: caller.sent.count(b"event: revision") >= 2)
    assert b"new-checkout" not in caller.sent
    caller.parts.lose()


@asynchronous
async def test_who_may_listen() -> None:
    """The checks are those of the other pages: the Host on this machine, and a key elsewhere. HEAD opens no stream."""
    desk = DeskScene()
    assert (await desk.ask("/ui/stream", host="evil.example")).status == 421
    assert (await desk.ask("/ui/stream.json")).status == 404
    plain = await desk.ask("/ui/stream", method="HEAD")
    assert plain.status == 200 and header(plain, "content-type") == "text/event-stream" and not plain.body
    assert not isinstance(plain, PartsResponse)
    elsewhere = DeskScene(ELSEWHERE, admin_page_keys=[KEY])
    assert (await elsewhere.ask("/ui/stream", host=ELSEWHERE)).status == 303
    assert "data-live" not in await elsewhere.text("/ui/status", host=ELSEWHERE)
    caller = await listen(elsewhere, host=ELSEWHERE, authorization=KEY)
    assert 'data-live="/ui/stream"' in await elsewhere.text("/ui/status", host=ELSEWHERE, authorization=KEY)
    caller.parts.lose()


@asynchronous
async def test_there_is_a_limit() -> None:
    """Above it, the answer is a 503 with a text."""
    desk = DeskScene()
    callers = [await listen(desk) for _ in range(MAX_STREAMS)]
    refused = await desk.ask("/ui/stream")
    assert refused.status == 503 and b"256 pages are open" in refused.body
    for each in callers:
        each.parts.lose()


@asynchronous
async def test_one_session_does_not_take_all() -> None:
    """A session and a key hold a few streams each; who has another session gets a stream."""
    desk = DeskScene(ELSEWHERE, admin_page_keys=[KEY])
    one, other = [await sign_in(desk) for _ in range(2)]
    callers = [await listen(desk, host=ELSEWHERE, cookie=one) for _ in range(MAX_OF_ONE)]
    refused = await desk.ask("/ui/stream", host=ELSEWHERE, cookie=one)
    assert refused.status == 503 and b"8 of your pages are open" in refused.body
    callers.append(await listen(desk, host=ELSEWHERE, cookie=other))
    forms = (KEY, f"Bearer {KEY}")
    callers += [await listen(desk, host=ELSEWHERE, authorization=forms[at % 2]) for at in range(MAX_OF_ONE)]
    for form in forms:
        assert (await desk.ask("/ui/stream", host=ELSEWHERE, authorization=form)).status == 503
    for each in callers:
        each.parts.lose()


@asynchronous
async def test_a_stream_ends_with_its_session(monkeypatch: Any) -> None:
    """After signing out the next second ends the stream."""
    monkeypatch.setattr(rows, "SECOND_S", 0.002)
    desk = DeskScene(ELSEWHERE, admin_page_keys=[KEY])
    cookie = await sign_in(desk)
    caller = await listen(desk, host=ELSEWHERE, cookie=cookie)
    await until(lambda: b"second" in caller.sent)
    assert (await desk.ask("/ui/sign-out", "POST", {}, host=ELSEWHERE, cookie=cookie)).status == 303
    await until(lambda: caller.ended)
