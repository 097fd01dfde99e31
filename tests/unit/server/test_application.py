"""The flag server as an ASGI application: it starts by lifespan, by `start()` or with the first request."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from flagsvc.core.errors import ConfigurationError, DatabaseError
from flagsvc.core.notices import Notice
from flagsvc.http.call import Call
from flagsvc.http.messages import Request
from flagsvc.server.application import FlagServer, ServerRuntime, create_flag_server, secrets_of
from flagsvc.settings.server import ServerOptions
from flagsvc.testing import FakeClock
from support.tracebacks import leaks

NO_STREAMS: dict[str, Any] = {"offer_streaming": True, "max_streams": 0}


def server_in(folder: Path, **options: Any) -> FlagServer:
    """Return a flag server on a file in a folder."""
    return create_flag_server(ServerOptions(database=str(folder / "flags.db"), **options), "http://flags.test")


def caller(app: Any, peer: str = "127.0.0.1") -> httpx.AsyncClient:
    """Return a client of an application."""
    transport = httpx.ASGITransport(app=app, client=(peer, 4711))
    return httpx.AsyncClient(transport=transport, base_url="http://flags.test")


def get(app: Any, path: str) -> httpx.Response:
    """Return the answer to one GET."""

    async def ask() -> httpx.Response:
        async with caller(app) as client:
            return await client.get(path)

    return asyncio.run(ask())


SDK_TOKEN = "*:development.of-an-sdk"


@pytest.mark.parametrize(("options", "offered"), [({}, None), ({"offer_streaming": True}, "streaming"), (NO_STREAMS, None)])
async def test_options_of_streams(tmp_path: Path, options: dict[str, Any], offered: str | None) -> None:
    """`offerStreaming` tells SDKs that poll of streams, where there are any."""
    async with server_in(tmp_path, init_backend_tokens=(SDK_TOKEN,), **options) as server, caller(server) as client:
        answer = await client.get("/api/client/features", headers={"authorization": SDK_TOKEN})
        assert (answer.status_code, answer.headers.get("fetch-mode")) == (200, offered)


def test_the_first_request_starts_it(tmp_path: Path) -> None:
    """The server works without lifespan events. After `aclose` none of its threads runs."""
    before = set(threading.enumerate())

    async def live() -> None:
        server = server_in(tmp_path)
        async with caller(server) as client:
            answers = await asyncio.gather(*(client.get("/health") for _ in range(5)))
            assert [answer.status_code for answer in answers] == [200] * 5
            assert (await client.get("/ready")).json() == {"health": "GOOD"}
        await server.aclose()
        await server.aclose()
        await server.start()
        assert server.greeting() == [Notice(f"flagsvc ready: 0 feature flags in {tmp_path}/flags.db")]
        await server.aclose()

    asyncio.run(live())
    assert set(threading.enumerate()) <= before


def test_lifespan_events_start_and_stop_it(tmp_path: Path) -> None:
    """The server answers lifespan events. It answers a failed start with the reason."""

    async def lifespan(server: FlagServer) -> list[dict[str, Any]]:
        events, sent = ["lifespan.startup", "lifespan.shutdown"], []

        async def receive() -> dict[str, Any]:
            return {"type": events.pop(0)}

        async def send(message: Any) -> None:
            sent.append(message)

        await server({"type": "lifespan"}, receive, send)
        return sent

    good = asyncio.run(lifespan(server_in(tmp_path)))
    assert [each["type"] for each in good] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    bad = asyncio.run(lifespan(create_flag_server(ServerOptions(database="/proc/none/flags.db"))))
    assert [each["type"] for each in bad] == ["lifespan.startup.failed"]
    assert "cannot be made" in bad[0]["message"]


def test_a_database_that_is_away_is_a_503(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every path is a 503, also health, and the log has the reason. The server starts when the database can be opened."""
    place = tmp_path / "file"
    place.write_text("in the way")
    server = create_flag_server(ServerOptions(database=str(place / "flags.db")))
    for path in ("/health", "/api/admin/projects"):
        answer = get(server, path)
        assert (answer.status_code, answer.json()) == (503, {"health": "BAD"})
        assert int(answer.headers["retry-after"]) > 0
    assert "the flag server cannot start" in capsys.readouterr().err
    with pytest.raises(DatabaseError):
        asyncio.run(server.start())
    place.unlink()

    async def recovered() -> None:
        await server.ready()
        await server.aclose()

    asyncio.run(recovered())


@pytest.mark.parametrize("host", ["127.0.0.1:1", "nowhere.invalid"])
def test_a_database_that_is_away_keeps_its_password(host: str) -> None:
    """No variable in the error's traceback or in its causes contains the password. The driver's frames would contain it."""
    server = create_flag_server(ServerOptions(database=f"postgresql://flags:very-hidden@{host}/flags"))
    with pytest.raises(DatabaseError) as caught:
        asyncio.run(server.start())
    assert not leaks(caught.value, ["hidden"])
    assert "hidden" not in repr(server.options)


async def test_mounted_it_knows_its_place(tmp_path: Path) -> None:
    """A mounted server answers below its mount path, and runs as long as the outer application."""
    server = server_in(tmp_path)
    app = Starlette(routes=[Mount("/flags", app=server)], lifespan=server.lifespan)
    async with app.router.lifespan_context(app), caller(app) as client:
        assert (await client.get("/flags/health")).status_code == 200
        document = (await client.get("/flags/docs/openapi.json")).json()
        assert document["servers"] == [{"url": "/flags"}]


def test_closed_while_it_starts_it_is_closed(tmp_path: Path) -> None:
    """`aclose` during a start closes everything, also if the start was cancelled. The server can start again then."""
    before = {thread.name for thread in threading.enumerate() if thread.name.startswith("flagsvc")}

    async def live(give_up: bool) -> None:
        server = server_in(tmp_path)
        starting = asyncio.create_task(server.start())
        await asyncio.sleep(0)
        if give_up:
            starting.cancel()
            await asyncio.wait([starting])
        await server.aclose()
        assert {thread.name for thread in threading.enumerate() if thread.name.startswith("flagsvc")} == before
        assert starting.done()
        async with server:
            pass

    asyncio.run(live(give_up=False))
    asyncio.run(live(give_up=True))


async def test_a_start_that_fails_is_not_tried_for_each_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many requests cause one attempt per second. Other requests are answered immediately."""
    clock, attempts, going, begun = FakeClock(), [], threading.Event(), threading.Semaphore(0)

    def fail(*given: object, **named: object) -> ServerRuntime:
        attempts.append(given)
        begun.release()
        assert going.wait(20)
        raise DatabaseError("away")

    monkeypatch.setattr("flagsvc.server.application.SystemClock", lambda: clock)
    monkeypatch.setattr("flagsvc.server.application.open_runtime", fail)
    server = server_in(tmp_path)

    async def ask(times: int = 1) -> None:
        async with caller(server) as client:
            answers = await asyncio.gather(*(client.get("/health") for _ in range(times)))
        assert {answer.status_code for answer in answers} == {503}

    going.set()
    await ask(5)
    assert len(attempts) == 1
    await clock.advance(2)
    going.clear()
    assert begun.acquire(timeout=20)
    trying = asyncio.create_task(ask())
    assert await asyncio.to_thread(begun.acquire, timeout=20)
    await ask(5)
    going.set()
    await trying
    assert len(attempts) == 2


async def test_the_first_token_is_told_once(tmp_path: Path) -> None:
    """No repr contains it, and after the first greeting the server no longer has it."""
    async with server_in(tmp_path) as server:
        runtime = server._runtime
        assert runtime is not None and "user:" in str(runtime.notices)
        assert "user:" not in repr(runtime) + repr(server)
        assert "FLAGSVC_ADMIN_TOKEN=user:" in server.greeting()[1].on_terminal
        assert "user:" not in str(runtime.notices + server.greeting())


def test_a_start_that_takes_long_is_alive(tmp_path: Path) -> None:
    """Before the database is open, liveness is 200 and everything else 503, also at the address for operators."""
    server = server_in(tmp_path)
    for contract in (server.contract, server.operators):
        asked = {path: contract.check_head(Call(Request(b"GET", path, b"", []))) for path in (b"/livez", b"/readyz", b"/x")}
        assert {path: getattr(answer, "status", 0) for path, answer in asked.items()} == {
            b"/livez": 200,
            b"/readyz": 503,
            b"/x": 503,
        }


async def test_a_mounted_server_keeps_its_metrics(tmp_path: Path) -> None:
    """No listener serves adminAddress there, so callers go on to get the metrics."""
    options = ServerOptions(database=str(tmp_path / "flags.db"), admin_address="127.0.0.1:0")
    async with create_flag_server(options) as server, caller(server) as client:
        assert (await client.get("/metrics")).status_code == 200


async def test_what_is_refused_before_it_is_a_request(tmp_path: Path) -> None:
    """Refusals before a request is parsed have the usual form of an error."""
    assert server_in(tmp_path).contract.early_refusal(400).status == 503, "there is no database yet"
    assert server_in(tmp_path).contract.tls_refusal().status == 503
    async with server_in(tmp_path) as server:
        for status in (400, 431, 503):
            answer = server.contract.early_refusal(status)
            assert (answer.status, answer.body[:12]) == (status, b'{"message":"')
        answer = server.contract.tls_refusal()
        assert answer.status == 400 and b"speaks plain HTTP" in answer.body


def test_the_log_masks_the_password_of_the_database(capsys: pytest.CaptureFixture[str]) -> None:
    """The password is masked in every log field."""
    server = create_flag_server(ServerOptions(database="postgresql://me:hunter2hunter2@db/flags"))
    server.log.error("something", about="postgresql://me:hunter2hunter2@db/flags")
    assert "hunter2" not in capsys.readouterr().err
    assert secrets_of("flags.db") == secrets_of("mysql://a:b@c/d") == []


def test_a_mounted_server_takes_the_header_of_a_proxy_on_a_promise_only(tmp_path: Path) -> None:
    """An ASGI server may read the address of a caller from a header, as uvicorn does. Code that mounts says that it does not."""
    networks = ("10.0.0.0/8",)
    options = ServerOptions(database=str(tmp_path / "flags.db"), user_header="x-user", user_header_from=networks)
    with pytest.raises(ConfigurationError, match="trust_peers=True"):
        create_flag_server(options)
    headers = {"x-user": "ada", "x-forwarded-for": "10.1.2.3"}

    async def place_after(peer: str, *, rewritten: bool = False) -> str:
        async with create_flag_server(options, trust_peers=True) as server:
            app: Any = ProxyHeadersMiddleware(server, "*") if rewritten else server  # type: ignore[arg-type]
            async with caller(app, peer) as client:
                return (await client.get("/ui/flags", headers=headers)).headers["location"].partition("?")[0]

    assert asyncio.run(place_after("10.1.2.3")) == "/ui/sign-in/header"
    assert asyncio.run(place_after("203.0.113.7")) == "/ui/sign-in"
    assert asyncio.run(place_after("203.0.113.7", rewritten=True)) == "/ui/sign-in/header", "what the promise excludes"


def test_a_mounted_server_has_its_public_address(tmp_path: Path) -> None:
    """The option publicUrl says whether cookies are for TLS; an address that the caller gives wins."""
    options = ServerOptions(database=str(tmp_path / "flags.db"), public_url="https://flags.example")
    assert create_flag_server(options)._url == "https://flags.example"
    assert create_flag_server(options, "http://flags.test")._url == "http://flags.test"
    assert create_flag_server(ServerOptions(database=options.database))._url == ""
