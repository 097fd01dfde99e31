"""Answers from memory run on the event loop, database work runs in threads, and changes do not block reads."""

from __future__ import annotations

import gzip
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import Anything
from flagsvc.server.api.asgi import READERS, REPORTERS, WRITERS
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.store.engines import POOL_SIZE
from support.flagservers import BACKEND_SECRET, app_client


def row(path: str, handler: Any, **given: Any) -> Route:
    """Return a route that needs no token."""
    return Route(path=path, handler=handler, operation=path, summary="x", tag="x", auth=Auth.NONE, **given)


def where(call: ApiCall) -> Answer:
    """Answer with the name of the thread that runs the handler."""
    return Answer(threading.current_thread().name)


def test_what_runs_where(tmp_path: Path) -> None:
    """Answers from memory use no thread; reads, changes and reports use separate threads."""
    routes = (
        row("/memory", where, in_memory=True),
        row("/read", where),
        row("/write", where, method="POST"),
        row("/check", where, method="POST", reads=True),
        replace(row("/api/client/report", where, method="POST"), auth=Auth.CLIENT),
    )
    with app_client(str(tmp_path / "flags.db"), routes=routes) as client:
        assert client.get("/memory").json() == threading.current_thread().name
        assert client.get("/read").json().startswith("flagsvc reader")
        assert client.post("/write").json().startswith("flagsvc writer")
        assert client.post("/check").json().startswith("flagsvc reader")
        assert client.post("/api/client/report", token=BACKEND_SECRET).json().startswith("flagsvc reporter")
        assert client.post("/none").status == 404
    assert READERS + WRITERS + REPORTERS < POOL_SIZE


def test_large_bodies_take_turns(tmp_path: Path) -> None:
    """Two bodies larger than a megabyte, compressed or not, are never handled at the same time."""
    inside: list[str] = []
    most: list[int] = []
    both = threading.Barrier(2)

    def work(call: ApiCall) -> Answer:
        inside.append("one")
        most.append(len(inside))
        with suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        both.reset()
        inside.remove("one")
        return Answer(None, 204)

    route = row("/api/admin/write", work, method="POST", body=Anything())
    with app_client(str(tmp_path / "flags.db"), routes=(route,), body_limit=5_000_000) as client:
        large = b'"' + b"x" * 1_200_000 + b'"'
        packed = {"content-encoding": "gzip"}
        for bodies in ([(large, {}), (large, {})], [(gzip.compress(large), packed), (large, {})]):  # type: ignore[var-annotated]
            most.clear()
            with ThreadPoolExecutor(2) as pool:
                found = [pool.submit(client.post, "/api/admin/write", body, headers=headers) for body, headers in bodies]
                assert [each.result().status for each in found] == [204, 204]
            assert max(most) == 1
