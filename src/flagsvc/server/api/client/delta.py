"""GET /api/client/delta and /api/client/streaming: the changes since the document of an SDK (dialects: Delta and streaming)."""

from __future__ import annotations

from functools import partial

from flagsvc.http.answers import NEGOTIATOR, Answer
from flagsvc.http.call import LAST_EVENT_ID
from flagsvc.http.client_query import PARAMETERS
from flagsvc.http.delta import ANSWER, tag_of
from flagsvc.http.shapes import Named
from flagsvc.http.streams import EVENT_STREAM, HEADERS
from flagsvc.server.api.authorization import read_secret
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.client.features import read_query, read_who, route, select_projects
from flagsvc.server.api.deltas import DocumentChannel, Sdk
from flagsvc.server.api.route import NO_STORE
from flagsvc.server.store.documents import ClientDocument, DocumentQuery

DELTA = Named("clientFeaturesDeltaSchema", ANSWER)
MAX_ID = 20
"""The most characters of an id."""


def get_delta(call: ApiCall) -> Answer:
    """Return the changes, or 304 if the caller has the newest document. Raises `DatabaseError`, and HttpError (429)."""
    query = read_query(call)
    return build_answer(call, query, call.server.documents.get(query))


def get_cached_delta(call: ApiCall) -> Answer | None:
    """Return the changes if those of the newest document are known."""
    query = read_query(call)
    found = call.server.documents.get_cached(query)
    is_known = found is not None and find_channel(call, query).document is found
    return build_answer(call, query, found) if found is not None and is_known else None


def build_answer(call: ApiCall, query: DocumentQuery, found: ClientDocument) -> Answer:
    """Return the answer. The answer depends on what the caller has, so no cache keeps it."""
    server = call.server
    changes = find_channel(call, query).take(found)
    identity, told = changes.answer(call.head.if_none_match)
    server.pollers.note(query, read_who(call), found, server.clock.now())
    if told is None:
        return Answer(None, 304, (*NO_STORE, (b"etag", tag_of(identity))))
    body, accept = told.body, call.head.accept_encoding
    packed = told.packed if accept is not None and NEGOTIATOR.wants_gzip(accept, len(body)) else None
    return Answer(body, headers=NO_STORE, gzipped=packed, tag=tag_of(identity))


def find_channel(call: ApiCall, query: DocumentQuery, *, for_stream: bool = False) -> DocumentChannel:
    """Return the channel of a query. Raises HttpError (429) if too many other filters have streams."""
    plain = DocumentQuery(query.environment, select_projects(call.token, None), inline=query.inline)
    return call.server.deltas.channels.find(query, is_plain=query == plain, for_stream=for_stream)


def open_stream(call: ApiCall) -> Answer:
    """Return a stream that ends with the token. Raises `DatabaseError`, and HttpError (404, 429) if there is no room."""
    server, head = call.server, call.head
    network = server.trust.caller_network(head.request.peer, head.forwarded)
    server.caller_streams.check_room(network)
    query = read_query(call)
    channel = find_channel(call, query, for_stream=True)
    channel.take(server.documents.get(query))
    known = (head.other(LAST_EVENT_ID) or b"").decode("latin-1")[:MAX_ID]
    may_stay = partial(server.keyring.is_valid, read_secret(head.key))
    return Answer(headers=tuple(HEADERS), parts=Sdk(channel, network, known, may_stay, server.deltas, read_who(call)))


ROUTES = (
    route(
        path="/api/client/delta",
        handler=get_delta,
        at_once=get_cached_delta,
        operation="getDelta",
        summary="The changes since the document that the caller has, or all of it.",
        query=PARAMETERS,
        result=DELTA,
    ),
    route(
        path="/api/client/streaming",
        handler=open_stream,
        operation="streamChanges",
        summary="The changes as they come.",
        query=PARAMETERS,
        media=EVENT_STREAM.decode(),
    ),
)
