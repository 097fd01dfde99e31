"""Delta and streaming at the flag server: an SDK that applies events has what an SDK that polls gets (dialects: Delta and
streaming).
"""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest
from sqlalchemy import delete, update

from flagsvc.core.errors import DatabaseError
from flagsvc.http.delta import MAX_CHANNELS, MAX_STREAMED, make_id
from flagsvc.http.messages import Response
from flagsvc.http.parts import PartsResponse
from flagsvc.http.reached_limits import STREAMS
from flagsvc.http.streams import StreamLimits
from flagsvc.server.store import client_features, documents, schema
from flagsvc.server.store.documents import ClientDocument, DocumentQuery
from flagsvc.server.store.store import Store, Tx, open_store
from flagsvc.testing import RecordingLog
from support import deltas
from support.aio import until
from support.deltas import Listener, Twin
from support.flagservers import ADMIN_SECRET, BACKEND_SECRET, FRONTEND_SECRET, AppClient
from support.stored_flags import Flags

pytestmark = pytest.mark.one_database

DELTA, STREAM, FEATURES = "/api/client/delta", "/api/client/streaming", "/api/client/features"
ONE_PROJECT = "default:development.of-one-project"
OF_PRODUCTION = "*:production.of-production"
US = {"contextName": "region", "operator": "IN", "values": ["us"]}
GIVEN = {
    "projects": [{"id": "other", "name": "Other"}],
    "tokens": [
        {"type": "backend", "secret": ONE_PROJECT, "projects": ["default"], "environment": "development"},
        {"type": "backend", "secret": OF_PRODUCTION, "environment": "production"},
    ],
}
WHO = {"unleash_appname": "shop", "unleash_instanceid": "one"}


def prepare(client: AppClient) -> None:
    """Make flags in two projects."""
    flags = Flags()
    flags.segment("us", US)
    flags.feature("a-flag", on=["development"], strategies=[{"segments": ["us"]}], tags=[("simple", "red")])
    flags.feature("b-flag", on=["production"])
    flags.feature("o-flag", project="other")
    with client.server.store.writing(None) as tx:
        flags.put(tx)


async def ask(
    client: AppClient, target: str = STREAM, token: str | None = BACKEND_SECRET, method: str = "GET", **more: str
) -> Response:
    given = {"unleash_client_spec": "5.2.0", "authorization": token, **more}
    return await deltas.ask(client.app._contract, target, method, **given)


async def listen(client: AppClient, target: str = STREAM, token: str = BACKEND_SECRET, **more: str) -> Listener:
    given = {"unleash_client_spec": "5.2.0", "authorization": token, **more}
    return await deltas.listen(client.app._contract, target, **given)


async def poll(client: AppClient, query: str = "", token: str = BACKEND_SECRET, **more: str) -> Twin:
    """Return what an SDK has that polls."""
    document = json.loads((await ask(client, FEATURES + query, token, **more)).body)
    return Twin(document["features"], document.get("segments", ()))


async def change(store: Store, put: Callable[[Tx], object]) -> None:
    """Commit a change, in another thread as any change is."""

    def commit() -> None:
        with store.writing(None) as tx:
            put(tx)

    await asyncio.to_thread(commit)


def switch(name: str, *, on: bool, environment: str = "development") -> Callable[[Tx], object]:
    state = schema.feature_environments
    here = (state.c.feature == name, state.c.environment == environment)
    return lambda tx: tx.db.execute(update(state).where(*here).values(enabled=on))


def move(name: str, project: str) -> Callable[[Tx], object]:
    features = schema.features
    return lambda tx: tx.db.execute(update(features).where(features.c.name == name).values(project=project))


def drop_segments(tx: Tx) -> None:
    for table in (schema.strategy_segments, schema.segments):
        tx.db.execute(delete(table))


async def test_delta(client: AppClient) -> None:
    """Without a known entity tag there is one hydration, for a known tag there are the changes since, and for the newest 304. The
    id is that of the document's digest. HEAD has no body, and no cache keeps an answer."""
    first = await ask(client, DELTA)
    headers = dict(first.headers())
    digest = json.loads((await ask(client, FEATURES)).body)["meta"]["queryHash"]
    assert headers[b"etag"].decode() == f'"{make_id(digest)}"' and headers[b"cache-control"] == b"no-store"
    twin, known = Twin(), headers[b"etag"].decode()
    assert twin.apply(first.body) == ["hydration"] and twin == await poll(client)
    assert ((await ask(client, DELTA, method="HEAD")).status, (await ask(client, DELTA, method="HEAD")).body) == (200, b"")
    await change(client.server.store, switch("a-flag", on=False))
    await change(client.server.store, drop_segments)
    for _ in range(2):
        answer = await ask(client, DELTA, if_none_match=known)
        caller = Twin(twin.features.values(), twin.segments.values())
        assert caller.apply(answer.body) == ["feature-updated", "segment-removed"] and caller == await poll(client)
    new = dict(answer.headers())[b"etag"].decode()
    assert json.loads((await ask(client, DELTA, if_none_match='"5"')).body)["events"][0]["type"] == "hydration"
    for condition in (new, f'"5", {known}, W/{new}', "*"):
        again = await ask(client, DELTA, if_none_match=condition)
        assert (again.status, again.body, dict(again.headers())[b"etag"].decode()) == (304, b"", new)
    await change(client.server.store, add_many)
    packed = await ask(client, DELTA, accept_encoding="gzip", if_none_match=new)
    plain = await ask(client, DELTA, if_none_match=new)
    assert dict(packed.headers())[b"content-encoding"] == b"gzip" and gzip.decompress(packed.body) == plain.body


def add_many(tx: Tx) -> None:
    flags = Flags(placed=50)
    for number in range(30):
        flags.feature(f"more-{number}")
    flags.put(tx)


@pytest.mark.parametrize(
    ("token", "query", "spec"),
    [
        (BACKEND_SECRET, "", "5.2.0"),
        (BACKEND_SECRET, "", "3.0.0"),
        (BACKEND_SECRET, "?project=other", "5.2.0"),
        (BACKEND_SECRET, "?namePrefix=a&tag=simple:red", "5.2.0"),
        (ONE_PROJECT, "", "5.2.0"),
        (ONE_PROJECT, "?project=other", "3.0.0"),
        (OF_PRODUCTION, "", "5.2.0"),
    ],
)
async def test_events_give_what_polls_give(client: AppClient, token: str, query: str, spec: str) -> None:
    """With any token and filter, and with or without segments, who hears the events has what `/features` gives."""
    stream = await listen(client, STREAM + query, token, unleash_client_spec=spec)
    assert stream.heard[0][0] == "unleash-connected"
    steps = (
        switch("b-flag", on=True),
        move("o-flag", "default"),
        drop_segments,
        move("a-flag", "other"),
        switch("a-flag", on=False),
    )
    for step in steps:
        await change(client.server.store, step)
        wanted = await poll(client, query, token, unleash_client_spec=spec)
        await until(partial(is_equal, stream, wanted))
    assert {name for name, _, _ in stream.heard[1:]} <= {"unleash-updated"}
    assert not any("hydration" in types for _, _, types in stream.heard[1:])


def is_equal(stream: Listener, wanted: Twin) -> bool:
    return stream.twin == wanted


async def test_who_comes_back(client: AppClient) -> None:
    """A known id has the changes since, the newest has nothing, and any other has a hydration. A commit that changes nothing of a
    document is told to no caller."""
    caller, elsewhere = await listen(client), await listen(client, token=OF_PRODUCTION)
    first = caller.known
    await change(client.server.store, switch("a-flag", on=False))
    await until(lambda: len(caller.heard) == 2)
    for known, name in ((first, "unleash-updated"), ("5", "unleash-connected"), ("no id", "unleash-connected"), (caller.known, "")):
        back = await listen(client, last_event_id=known)
        assert [each[0] for each in back.heard] == [name] * bool(name) and back.known == caller.known, known
    assert len(elsewhere.heard) == 1


async def test_who_may_listen(client: AppClient) -> None:
    """Backend tokens open both. HEAD opens no stream, and no cache keeps one. A malformed filter is 400."""
    for path in (DELTA, STREAM):
        statuses = [(await ask(client, path, token)).status for token in (None, "unknown", FRONTEND_SECRET, ADMIN_SECRET)]
        assert statuses == [401, 401, 403, 403], path
        assert (await ask(client, f"{path}?project=")).status == 400
        assert (await ask(client, path, unleash_client_spec="x")).status == 400
    head = await ask(client, method="HEAD")
    headers = dict(head.headers())
    assert head.status == 200 and not isinstance(head, PartsResponse)
    assert headers[b"content-type"] == b"text/event-stream" and headers[b"cache-control"] == b"no-store"


async def test_streams_off_and_full(client: AppClient) -> None:
    """Without streams `/streaming` is 404, and over the limits 429 with Retry-After, never 503. Delta goes on."""
    for limits, status in ((StreamLimits(total=0), 404), (StreamLimits(total=1), 429)):
        client.server.caller_streams.limits = limits
        if status == 429:
            await listen(client)
        refused = await ask(client)
        assert refused.status == status and (dict(refused.headers()).get(b"retry-after") == b"30") == (status == 429)
        assert (await ask(client, DELTA)).status == 200 and client.server.reached.counts[STREAMS] == (status == 429)


async def test_the_offer_of_a_stream(client: AppClient) -> None:
    """The option has `/features` tell SDKs to open a stream, with a document and without a filter."""
    for offers in (False, True):
        object.__setattr__(client.server, "offers_streaming", offers)
        answer = dict((await ask(client, FEATURES)).headers())
        assert answer.get(b"fetch-mode") == (b"streaming" if offers else None)
        known = answer[b"etag"].decode()
        others = [await ask(client, f"{FEATURES}?namePrefix=a"), await ask(client, FEATURES, if_none_match=known)]
        assert all(b"fetch-mode" not in dict(each.headers()) for each in others)


async def test_filters_leave_room(client: AppClient) -> None:
    """While many filters have streams, another filter has no room for one. A caller without a filter has room, with any projects of
    its token, and so has a caller that only asks."""
    for number in range(MAX_STREAMED):
        await listen(client, f"{STREAM}?project=default&project=x{number}")
    for number in range(MAX_CHANNELS):
        assert (await ask(client, f"{DELTA}?namePrefix=x{number}")).status == 200
    assert (await ask(client, f"{STREAM}?project=default")).status == 429
    assert (await ask(client, f"{STREAM}?namePrefix=a", ONE_PROJECT)).status == 429
    for token, query in ((ONE_PROJECT, ""), (ONE_PROJECT, "?project=other"), (BACKEND_SECRET, ""), (OF_PRODUCTION, "")):
        assert (await listen(client, STREAM + query, token)).is_open
    assert (await listen(client, f"{STREAM}?project=default")).is_open, "the channel of a token without a filter"


async def test_a_stream_ends_with_its_token(client: AppClient) -> None:
    """A token that was deleted ends its streams at their next heartbeat."""
    one, other = await listen(client, token=ONE_PROJECT), await listen(client)
    await change(client.server.store, lambda tx: tx.db.execute(delete(schema.tokens).where(schema.tokens.c.projects != ["*"])))
    for caller in (one, other):
        caller.parts.beat(0.0)  # type: ignore[attr-defined]
    assert not one.is_open and other.is_open


async def test_what_has_arrived(client: AppClient) -> None:
    """An SDK with a stream has a change as soon as it was told, and counts as there as long as its stream lives. A caller that does
    not read has the former document. An SDK that asks for changes is known as well."""
    caller, slow = await listen(client, **WHO), await listen(client, **{**WHO, "unleash_instanceid": "slow"})
    await ask(client, DELTA, **{**WHO, "unleash_instanceid": "asks"})

    def digests() -> dict[str, str]:
        return {each.instance_id: each.digest for each in client.server.pollers.list_all()}

    before = digests()
    assert set(before) == {"one", "slow", "asks"} and len(set(before.values())) == 1
    slow.full = True
    await change(client.server.store, switch("a-flag", on=False))
    await until(lambda: digests()["one"] == client.server.documents.get(DocumentQuery("development")).digest != before["one"])
    assert digests()["slow"] == before["slow"]
    polled = {each.instance_id: each.polled for each in client.server.pollers.list_all()}
    caller.parts.beat(0.0)  # type: ignore[attr-defined]
    assert {each.instance_id: each.polled for each in client.server.pollers.list_all()}["one"] > polled["one"]


async def test_a_long_event_has_arrived_when_it_is_read(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """An SDK that does not read at once has the document at the next heartbeat at which it has read all before."""
    caller = await listen(client, **WHO)
    documents_of = client.server.pollers.list_all
    before, is_full = documents_of()[0].digest, True
    monkeypatch.setattr(caller, "is_full", lambda: is_full and len(caller.heard) > 1)
    await change(client.server.store, switch("a-flag", on=False))
    await until(lambda: len(caller.heard) > 1)
    caller.parts.beat(0.0)  # type: ignore[attr-defined]
    assert documents_of()[0].digest == before
    is_full = False
    caller.parts.beat(0.0)  # type: ignore[attr-defined]
    assert documents_of()[0].digest != before


async def test_a_document_that_was_only_read_has_not_arrived(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another SDK may ask for a change before the callers with streams are told of it. Until then they have the document before."""
    caller = await listen(client, **WHO)
    [before] = client.server.pollers.list_all()
    monkeypatch.setattr(client.server.deltas, "_renew_soon", lambda committed: None)
    await change(client.server.store, switch("a-flag", on=False))
    await ask(client, DELTA)
    caller.parts.beat(0.0)  # type: ignore[attr-defined]
    assert before.digest in {each.digest for each in client.server.pollers.list_all() if each.instance_id == before.instance_id}


async def test_commits_of_another_server(client: AppClient, database_url: str) -> None:
    """A change that another server makes in the same database is an event, too."""
    caller = await listen(client)
    with closing(open_store(database_url, client.server.clock, RecordingLog())) as other:
        await change(other, switch("a-flag", on=False))
    await until(lambda: not caller.twin.features["a-flag"]["enabled"])


async def test_a_database_that_is_away_for_a_moment(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit whose documents cannot be read is told as soon as they can."""
    caller = await listen(client)
    monkeypatch.setattr("flagsvc.server.api.deltas.RETRY_S", 0.01)
    monkeypatch.setattr(documents, "RETRY_S", 0.0)
    real, failures = client_features.read_environment_features, iter(range(3))

    def read(*given: Any) -> Any:
        if next(failures, None) is not None:
            raise DatabaseError("away")
        return real(*given)

    monkeypatch.setattr(documents, "read_environment_features", read)
    await change(client.server.store, switch("a-flag", on=False))
    await until(lambda: not caller.twin.features["a-flag"]["enabled"])


async def test_a_database_that_is_away_is_asked_once_for_each_document(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """After RETRY_S all documents are read again: each once, however many there are, and however many callers have come."""
    callers = [await listen(client, f"{STREAM}?namePrefix={number}") for number in range(10)]
    retry_s, rounds = 0.2, 3
    reads: list[float] = []

    def get(query: DocumentQuery) -> None:
        reads.append(time.monotonic())
        time.sleep(0.002)  # as a database that is far away
        raise DatabaseError("away")

    monkeypatch.setattr("flagsvc.server.api.deltas.RETRY_S", retry_s)
    monkeypatch.setattr(client.server.documents, "get", get)
    monkeypatch.setattr(client.server.documents, "get_cached", lambda query: None)
    come = partial(client.server.deltas.follow, callers[0].parts.channel)  # type: ignore[attr-defined]
    for _ in range(4):
        reads.clear()
        come()
        await until(lambda: reads)
        come()
        await until(lambda: time.monotonic() - reads[-1] > 0.02)  # no document is read now
    reads.clear()
    await until(lambda: len(reads) > len(callers) * rounds)
    assert reads[len(callers) * rounds] - reads[0] > (rounds - 1) * retry_s


async def test_a_mistake_with_one_document_leaves_the_others(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers of other documents hear of each commit."""
    callers = [await listen(client, STREAM + query) for query in ("", *(f"?namePrefix={number}" for number in range(8)))]
    real = client.server.documents.get

    def get(query: DocumentQuery) -> ClientDocument:
        if query.prefix is not None:
            raise ZeroDivisionError
        return real(query)

    monkeypatch.setattr(client.server.documents, "get", get)
    for on in (False, True):
        await change(client.server.store, switch("a-flag", on=on))
        await until(partial(is_on, callers[0], on))


def is_on(caller: Listener, on: bool) -> bool:
    return bool(caller.twin.features["a-flag"]["enabled"]) == on


async def test_the_time_until_callers_are_told(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metric counts from the commit on, also when another caller comes while the commit is read."""
    caller, gate, held_s = await listen(client), threading.Event(), 0.05
    real = client.server.documents.get
    monkeypatch.setattr(client.server.documents, "get", lambda query: gate.wait() and real(query))
    await change(client.server.store, switch("a-flag", on=False))
    await asyncio.sleep(held_s)
    client.server.deltas.follow(caller.parts.channel)  # type: ignore[attr-defined]
    gate.set()
    await until(partial(is_on, caller, False))
    assert client.server.caller_streams.delay_s >= held_s


@pytest.fixture(autouse=True)
def ended(client: AppClient) -> Iterator[None]:
    """End every stream after a test."""
    yield
    client.server.caller_streams.end_all()
