"""Delta and streaming at the proxy: an SDK that applies events has what an SDK that polls gets (dialects: Delta and streaming)."""

from __future__ import annotations

import asyncio
import copy
import gzip
import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.http.delta import FORGET_S, MAX_CHANNELS, MAX_STREAMED
from flagsvc.http.messages import Response
from flagsvc.http.parts import PartsResponse
from flagsvc.proxy.api.deltas import DeltaScopes
from flagsvc.proxy.api.scopes import ScopedHolder
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.configuration import ConfigurationDocument
from support import deltas
from support.aio import until
from support.deltas import Json, Listener, Twin
from support.wirekit import KEY, TOKEN, TRANSPORTS, Answer, Wire, open_wire

DELTA, STREAM, FEATURES = "/api/client/delta", "/api/client/streaming", "/api/client/features"
SPEC = {"unleash-client-spec": "5.2.0"}
EU = {"id": 1, "name": "eu", "constraints": [{"contextName": "region", "operator": "IN", "values": ["eu"]}]}


def feature(name: str, project: str | None, *, on: bool = True, segments: tuple[int, ...] = ()) -> Json:
    strategy = {"name": "default", "segments": list(segments)}
    return {"name": name, "enabled": on, "strategies": [strategy]} | ({} if project is None else {"project": project})


BEFORE: Json = {
    "version": 2,
    "features": [feature("a.one", "web", segments=(1,)), feature("a.two", "app"), feature("b", None), feature("gone", "web")],
    "segments": [EU, {"id": 2, "name": "all", "constraints": []}],
}
AFTER: Json = {
    "version": 2,
    "features": [
        feature("b", None),
        feature("a.one", "app", segments=(1,)),
        feature("a.two", "app", on=False),
        feature("new", "web"),
    ],
    "segments": [copy.deepcopy(EU) | {"constraints": []}],
}
MARK = '"meta":{"revisionId":%d,"etag":"\\"0123456789abcdef:%d:v1\\"","queryHash":"0123456789abcdef"}}'


def make(document: Json | None = BEFORE, **settings: Any) -> Wire:
    return open_wire(TRANSPORTS["front"], document=document, tags=(("team", "x"),), **settings)


def get(wire: Wire, path: str, headers: dict[str, str] | None = None, **more: Any) -> Answer:
    return wire.get(path, SPEC | (headers or {}), **{"key": TOKEN, **more})


async def ask(wire: Wire, target: str = STREAM, key: str | None = TOKEN, method: str = "GET", **headers: str) -> Response:
    given = {"unleash_client_spec": "5.2.0", "authorization": key, **headers}
    return await deltas.ask(wire.service, target, method, **given)


async def listen(wire: Wire, target: str = STREAM, key: str = TOKEN, **headers: str) -> Listener:
    given = {"unleash_client_spec": "5.2.0", "authorization": key, **headers}
    return await deltas.listen(wire.service, target, **given)


def polled(answer: Answer) -> Twin:
    """Return what an SDK has that polls."""
    return Twin(answer.json()["features"], answer.json().get("segments", ()))


def test_delta() -> None:
    """Without a known entity tag there is one hydration, for a known tag there are the changes since, and for the newest 304. No
    cache keeps any of them. Documents that differ only in order or in other members are the same."""
    wire = make()
    first = get(wire, DELTA)
    old = str(first.header("etag"))
    assert first.header("cache-control") == "no-store" and old == f'"{int(old[1:-1])}"' and int(old[1:-1]) < 2**52
    twin = Twin()
    assert twin.apply(first.body) == ["hydration"] and twin == polled(get(wire, FEATURES))
    wire.serve(AFTER)
    for condition, types in ((old, 6), (f'"5", W/{old}', 6), ('"5"', 1), ("nonsense", 1)):
        answer = get(wire, DELTA, {"if-none-match": condition})
        caller = twin.copy()
        assert len(caller.apply(answer.body)) == types and caller == polled(get(wire, FEATURES)), condition
    new = str(answer.header("etag"))
    others = [{"name": "gone", "project": "web"}]
    told = get(wire, DELTA, {"if-none-match": old}).json()["events"]
    assert [
        {"name": each["featureName"], "project": each["project"]} for each in told if each["type"] == "feature-removed"
    ] == others
    wire.serve({**AFTER, "features": AFTER["features"][::-1], "query": {"environment": "x"}})
    for condition in (new, f"{old}, {new}", "*"):
        again = get(wire, DELTA, {"if-none-match": condition})
        assert (again.status, again.body, again.header("etag")) == (304, b"", new)


@pytest.mark.parametrize("spec", ["5.2.0", "3.0.0"])
@pytest.mark.parametrize("query", ["", "?project=web", "?namePrefix=a.", "?namePrefix=a.&project=app", "?tag=team:x", "?project=x"])
async def test_events_give_what_polls_give(query: str, spec: str) -> None:
    """With any filter, and with or without segments, who applies the events has what `/features` gives, before and after a change:
    a feature that leaves the filter is removed."""
    wire = make()
    headers = {"unleash-client-spec": spec}
    known = await asyncio.to_thread(get, wire, DELTA + query, headers)
    stream, delta = await listen(wire, STREAM + query, unleash_client_spec=spec), Twin()
    delta.apply(known.body)
    assert delta == stream.twin == polled(await asyncio.to_thread(get, wire, FEATURES + query, headers))
    wire.serve(AFTER)
    answer = await asyncio.to_thread(get, wire, DELTA + query, headers | {"if-none-match": str(known.header("etag"))})
    wanted = polled(await asyncio.to_thread(get, wire, FEATURES + query, headers))
    if answer.status == 200:
        assert "hydration" not in delta.apply(answer.body)
    await until(lambda: stream.twin == wanted)
    assert delta == wanted and stream.known == str(answer.header("etag"))[1:-1]


async def test_streaming() -> None:
    """A new caller is hydrated. Each change is one event, and a caller that comes back hears the changes since, or nothing."""
    wire = make()
    caller = await listen(wire)
    ((name, first, types),) = caller.heard
    assert (name, types) == ("unleash-connected", ["hydration"])
    wire.serve(BEFORE)
    wire.serve(AFTER)
    await until(lambda: len(caller.heard) == 2)
    name, second, types = caller.heard[1]
    assert name == "unleash-updated" and second != first and "hydration" not in types and caller.twin == Twin(**contents(AFTER))
    for known, name in ((first, "unleash-updated"), ("17", "unleash-connected"), ("x" * 99, "unleash-connected"), (second, "")):
        back = await listen(wire, last_event_id=known)
        assert [each[0] for each in back.heard] == [name] * bool(name) and back.known == second, known


def at_least(caller: Listener, heard: int) -> bool:
    return len(caller.heard) >= heard


def contents(document: Json) -> Json:
    return {name: document[name] for name in ("features", "segments")}


async def test_who_does_not_read_hears_the_changes_at_once() -> None:
    """The newest version is all that waits: a caller that missed a change hears it together with the next ones."""
    wire = make()
    slow, quick = await listen(wire), await listen(wire)
    slow.full = True
    for heard in (2, 3, 4):
        wire.serve(BEFORE | {"features": [*BEFORE["features"], feature(f"f{heard}", "web")]})
        await until(partial(at_least, quick, heard))
    slow.full = False
    slow.parts.update()  # type: ignore[attr-defined]
    assert len(slow.heard) == 2 and slow.twin == quick.twin and len(quick.heard) == 4


async def test_the_head_of_a_stream() -> None:
    """No cache keeps it and nginx passes it on; HEAD has the same headers. Only a server-side token opens it, or delta."""
    wire = make()
    for method in ("GET", "HEAD"):
        response = await ask(wire, method=method)
        headers = dict(response.fixed)
        assert isinstance(response, PartsResponse) == (method == "GET") and response.status == 200
        assert headers[b"content-type"] == b"text/event-stream" and headers[b"x-accel-buffering"] == b"no"
        assert headers[b"cache-control"] == b"no-store"
    for path in (STREAM, DELTA):
        for key, status in ((None, 401), ("wrong", 401), (KEY, 403)):
            assert (await ask(wire, path, key)).status == status
        for query in ("?project=", "?tag=bad", "?namePrefix="):
            assert (await ask(wire, path + query)).status == 400


def test_head_and_compression_of_delta() -> None:
    """HEAD has the headers of the answer, and an answer worth it is compressed for those who accept that."""
    wire = make({"version": 2, "features": [feature(f"f{each}", "web") for each in range(100)]})
    plain = get(wire, DELTA)
    head = wire.ask("HEAD", DELTA, SPEC, key=TOKEN)
    assert (head.status, head.body, head.header("content-length")) == (200, b"", str(len(plain.body)))
    for _ in range(2):
        packed = get(wire, DELTA, {"accept-encoding": "gzip"})
        assert packed.header("content-encoding") == "gzip" and gzip.decompress(packed.body) == plain.body
        assert packed.header("etag") == plain.header("etag")
    assert get(wire, DELTA, {"accept-encoding": "gzip", "if-none-match": str(plain.header("etag"))}).status == 304


async def test_streams_off_and_full() -> None:
    """Without streams `/streaming` is 404, and over the limits 429 with Retry-After, never 503. Delta goes on."""
    off = make(max_streams=0)
    assert (await ask(off)).status == 404 and (await ask(off, DELTA)).status == 200
    full = make(max_streams=5, max_streams_per_network=1)
    caller = await listen(full)
    refused = await ask(full)
    assert refused.status == 429 and dict(refused.own)[b"retry-after"] == b"30"
    assert caller.is_open and (await ask(full, DELTA)).status == 200


@pytest.mark.parametrize(
    ("offers", "streams", "query", "offered"), [(1, 5, "", 1), (0, 5, "", 0), (1, 0, "", 0), (1, 5, "?project=web", 0)]
)
def test_the_offer_of_a_stream(offers: int, streams: int, query: str, offered: int) -> None:
    """The option has `/features` tell SDKs to open a stream: with a document, where there are streams, without a filter, because
    SDKs open streams without their filters."""
    wire = make(offer_streaming=bool(offers), max_streams=streams)
    answer = get(wire, FEATURES + query)
    again = get(wire, FEATURES + query, {"if-none-match": str(answer.header("etag"))})
    assert (answer.header("fetch-mode") == "streaming") == bool(offered)
    assert again.status == 304 and again.header("fetch-mode") is None


async def test_not_ready() -> None:
    """Before the first configuration both are 503, as `/features` is."""
    wire = make(document=None)
    assert [(await ask(wire, path)).status for path in (STREAM, DELTA, FEATURES)] == [503, 503, 503]


async def test_a_stream_ends_with_its_token() -> None:
    """A token that counts no longer ends its streams at their next heartbeat."""
    wire = make()
    wire.service.keys.add(b"added", server=True)
    added, listed = await listen(wire, key="added"), await listen(wire)
    wire.service.keys.remove(b"added")
    for caller in (added, listed):
        caller.parts.beat(0.0)  # type: ignore[attr-defined]
    assert not added.is_open and listed.is_open


async def test_the_id_is_that_of_the_flag_server() -> None:
    """An unfiltered document of our flag server has the id that the server gives it, so a proxy that has it hears nothing."""
    wire = make()
    snapshot = wire.holder.current
    assert snapshot is not None
    for revision in (1, 2):
        body = json.dumps(BEFORE)[:-1] + "," + MARK % (revision, revision)
        wire.holder.replace(snapshot, ConfigurationDocument(body.encode(), f'"0123456789abcdef:{revision}:v1"'), 0)
        caller = await listen(wire, last_event_id=str(0x0123456789ABC))
        assert caller.heard == [] and caller.known == str(0x0123456789ABC)
    assert [each[0] for each in (await listen(wire, f"{STREAM}?namePrefix=a.", last_event_id=str(0x0123456789ABC))).heard] == [
        "unleash-connected"
    ]


def tag_of(response: Response) -> bytes:
    return dict(response.own)[b"etag"]


async def test_a_proxy_below_a_filter_has_the_ids_of_the_filter() -> None:
    """Each part of a document of our flag server has another id, and the same at both proxies."""
    wire, below = make(), make()
    snapshot = wire.holder.current
    assert snapshot is not None
    body = json.dumps(BEFORE | {"query": {}})[:-1] + "," + MARK % (1, 1)
    wire.holder.replace(snapshot, ConfigurationDocument(body.encode(), '"0123456789abcdef:1:v1"'), 0)
    ids = set()
    for query in ("", "?namePrefix=a.", "?namePrefix=b", "?project=web", "?project=app"):
        part = (await ask(wire, FEATURES + query)).body
        below.holder.replace(snapshot, ConfigurationDocument(part, f'"{query}"'), 0)
        assert tag_of(await ask(below, DELTA)) == tag_of(await ask(wire, DELTA + query)), query
        ids.add(tag_of(await ask(below, DELTA)))
    assert len(ids) == 5


async def test_a_token_of_some_projects() -> None:
    """Its stream has the features of its projects, and features without a project. A change elsewhere is no event."""
    wire = make()
    holder = ScopedHolder(wire.holder, frozenset({"web"}))
    part = Service(wire.service.settings, holder=holder, usage=wire.usage, log=wire.log, clock=wire.clock)
    scoped = replace(wire, service=part)
    caller = await listen(scoped)
    assert set(caller.twin.features) == {"a.one", "b", "gone"}
    elsewhere = copy.deepcopy(BEFORE)
    elsewhere["features"][1]["enabled"] = False
    wire.serve(elsewhere)
    wire.serve(AFTER)
    await until(lambda: set(caller.twin.features) == {"b", "new"})
    assert len(caller.heard) == 2


async def test_pretty_json_is_one_line_of_an_event() -> None:
    """An upstream may send line breaks, and features that are none. Each event has one line of data, with what is a feature."""
    wire = make()
    document = {**BEFORE, "features": [*BEFORE["features"], 7, {"enabled": True}, {"name": 5}, None], "segments": [{"id": "x"}, EU]}
    body = b"\xef\xbb\xbf" + json.dumps(document, indent=1).replace("\n", "\r\n").encode()
    snapshot = compile_document(BEFORE, CompileOptions()).snapshot
    wire.holder.replace(snapshot, ConfigurationDocument(body, '"x"'), 0)
    assert (await listen(wire)).twin == Twin(BEFORE["features"], [EU])


async def test_what_is_remembered_is_bounded() -> None:
    """Of many filters the oldest is forgotten, and after a while each unused filter. What was asked for without a filter stays.
    With many streams, a stream with a further filter is 429, and all streams go on. A caller that only asks, and a caller without a
    filter,
    has room."""
    wire = make()
    scopes = wire.service.stream.deltas
    assert isinstance(scopes, DeltaScopes)
    tag = tag_of(await ask(wire, DELTA)).decode()
    tags = [tag_of(await ask(wire, f"{DELTA}?namePrefix={name}")).decode() for name in ["a.", *range(MAX_CHANNELS)]]
    assert len(scopes) == MAX_CHANNELS + 1
    wire.serve(AFTER)
    for query, known, is_known in (("", tag, True), ("?namePrefix=a.", tags[0], False)):
        events = json.loads((await ask(wire, DELTA + query, if_none_match=known)).body)["events"]
        assert ("hydration" not in {each["type"] for each in events}) == is_known, query
    await wire.clock.advance(FORGET_S + 1.0)
    caller = await listen(wire)
    wire.serve(BEFORE)
    assert len(scopes) == 1
    callers = [await listen(wire, f"{STREAM}?namePrefix={number}") for number in range(MAX_STREAMED)]
    for number in range(MAX_CHANNELS):
        assert (await ask(wire, f"{DELTA}?namePrefix=x{number}")).status == 200
    assert (await ask(wire, f"{STREAM}?namePrefix=x")).status == 429
    callers += [await listen(wire, f"{STREAM}?namePrefix=0"), await listen(wire, STREAM, unleash_client_spec="3.0.0")]
    wire.serve(AFTER)
    await until(lambda: caller.twin == Twin(**contents(AFTER)))
    assert all(each.is_open for each in callers)
    wire.service.stream.end_all()
    assert not caller.is_open and not any(each.is_open for each in callers)
