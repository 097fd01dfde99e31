"""No error of the upstream carries a secret away, not even in the variables that the frames of its traceback keep.

No message holds a secret (behaviour: Odd values).
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable

import pytest

from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import UpstreamError
from flagsvc.core.log import locate_error
from flagsvc.http.client.sealing import sealed
from flagsvc.http.client.transport import Transport
from flagsvc.proxy.upstream import Limits, Outbound, Trust, Upstream, download
from support.aio import until
from support.loopback import Answer, loopback, reply, then_reset
from support.pki import Authority
from support.processes import free_port
from support.tracebacks import chain, leaks
from support.upstream_faults import FAULTS, Fault
from support.upstream_session import session

MARK = "q7x9zk"
TOKEN = f"*:development.token{MARK}"
HASTE = Limits(step_s=0.2, total_s=0.3, max_bytes=1_000_000)
LIMITS = Limits(step_s=5.0, total_s=10.0, max_bytes=1_000_000)
ASKED: dict[str, Callable[[Upstream], Awaitable[object]]] = {
    "features": lambda upstream: upstream.get_features('"etag"'),
    "register": lambda upstream: upstream.register({}),
    "metrics": lambda upstream: upstream.send_metrics({}),
}


async def refused(asking: Awaitable[object]) -> UpstreamError:
    """Return the error that asking ends with; it holds no secret."""
    with pytest.raises(UpstreamError) as caught:
        await asking
    assert not leaks(caught.value, [MARK])
    return caught.value


def fetched(url: str, outbound: Outbound | None = None, trust: Trust | None = None) -> Awaitable[bytes]:
    """Return the download of a bootstrap document with a secret of its own."""
    given = {"trust": trust or Trust(), "outbound": outbound or Outbound(), "clock": SystemClock()}
    return download(url, authorization=f"Bearer {MARK}", **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
async def test_whatever_the_upstream_does(fault: Fault) -> None:
    """For any behaviour of the upstream, an error contains no token, no password of a URL and no authorization of a bootstrap."""
    async with session(token=TOKEN, limits=HASTE if fault.slow else LIMITS) as (server, upstream):
        server.script(fault.answer)
        url = f"http://user:{MARK}@127.0.0.1:{server.port}/flags?signature={MARK}"
        askings = [*(ask(upstream) for ask in ASKED.values()), *([] if fault.slow else [fetched(url)])]
        errors = [await error_of(asking) for asking in askings]
    assert not any(error is not None and leaks(error, [MARK]) for error in errors)
    assert (errors[0] is None) == arrives(fault)


async def error_of(asking: Awaitable[object]) -> UpstreamError | None:
    """Return the UpstreamError of a request; None if it succeeds."""
    try:
        await asking
    except UpstreamError as error:
        return error
    return None


def arrives(fault: Fault) -> bool:
    """Return whether a features request gets an answer, with any body."""
    whole = ("status 304", "empty gzip", "a length that is too short")
    return fault.name.startswith("200 with ") or fault.name in whole


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
async def test_nobody_listens(ask: Callable[[Upstream], Awaitable[object]]) -> None:
    """Errors of a refused connection contain no secret, with and without an outbound proxy with a password."""
    place = f"http://user:{MARK}@127.0.0.1:{free_port()}"
    for outbound in (Outbound(), Outbound(http=place), Outbound(http=f"http://user:{MARK}@-%zz-:1")):
        async with session(token=TOKEN, outbound=outbound) as (server, upstream):
            server.script(then_reset())
            await refused(ask(upstream))
    await refused(fetched(f"{place}/flags"))


async def test_tls() -> None:
    """The same holds for errors of TLS, of a refused tunnel, and of a certificate that cannot be used."""
    tls = Authority().server()
    async with loopback() as proxy, session(token=TOKEN, tls=tls) as (_, upstream):
        await refused(upstream.get_features(None))
        proxy.script(reply(407))
        outbound = Outbound(https=f"http://user:{MARK}@127.0.0.1:{proxy.port}")
        await refused(fetched(f"https://user:{MARK}@127.0.0.1:1/flags", outbound))
        await refused(fetched("https://127.0.0.1:1/flags", trust=Trust(ca=f"/nowhere/{TOKEN[:3]}")))


async def test_an_error_that_nobody_thought_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """It still says at which line it was raised, and so does a cancellation; the values of its frames are gone."""

    def broken(*given: object) -> bytes:
        held = given
        raise KeyError(len(held))

    async with session(token=TOKEN) as (_, upstream):
        monkeypatch.setattr(Transport, "_written", broken)
        with pytest.raises(KeyError) as caught:
            await upstream.get_features(None)
    assert locate_error(caught.value).startswith(f"KeyError at {__file__}:")
    passed = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert passed[-5:] == ["_ask", "follow", "_send", "send", "broken"]
    assert not leaks(caught.value, [MARK])


async def test_a_cancellation() -> None:
    """It is one afterwards, too, and holds nothing."""
    slow = next(fault for fault in FAULTS if fault.name == "silence")
    async with session(token=TOKEN) as (server, upstream):
        server.script(slow.answer)
        asking = asyncio.create_task(upstream.send_metrics({}))
        await until(lambda: server.requests)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await asking
    assert asking.cancelled() and not leaks(caught.value, [MARK])


async def test_what_it_was_raised_from_goes() -> None:
    """The cause is removed, because its text may repeat what was sent. The result and the name of the function stay."""

    @sealed
    async def asks(word: str, *, fail: bool) -> str:
        """Ask."""
        try:
            int(word)
        except ValueError as error:
            if fail:
                raise UpstreamError("network", "in words of ours") from error
        return word

    assert await asks(MARK, fail=False) == MARK and asks.__name__ == "asks" and asks.__doc__ == "Ask."
    assert list(chain(error := await refused(asks(MARK, fail=True)))) == [error]


@pytest.mark.parametrize("answer", [then_reset(), reply(302, location="http://127.0.0.2:9/x")], ids=["cut", "elsewhere"])
async def test_this_would_be_seen(answer: Answer) -> None:
    """The same errors without the seal hold the token, and the walk over their frames finds it."""
    async with session(token=TOKEN) as (server, upstream):
        server.script(answer)
        with pytest.raises(UpstreamError) as caught:
            await Upstream.get_features.__wrapped__(upstream, None)  # type: ignore[attr-defined]
    assert any(place.endswith(":_ask: every") for place in leaks(caught.value, [MARK]))
