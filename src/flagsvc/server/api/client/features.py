"""GET /api/client/features: the configuration for proxies and server-side SDKs (dialects: GET /api/client/features).

The token decides the projects and the environment of a document. A filter by project has an effect only with a token of all
projects. The header `Unleash-Client-Spec` of an SDK tells whether it supports segments.
"""

from __future__ import annotations

from functools import partial

from flagsvc.http.answers import Answer
from flagsvc.http.call import APP_NAME, INSTANCE_ID, SDK
from flagsvc.http.client_query import FILTERS, PARAMETERS, find_problems, knows_segments, split_tags
from flagsvc.http.delta import STREAMING
from flagsvc.http.shapes import Array, Boolean, Integer, Map, Named, Nullable, Object, String
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.pollers import Who
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.store.actors import ALL, ClientToken
from flagsvc.server.store.checks import INVALID
from flagsvc.server.store.documents import ClientDocument, DocumentQuery
from flagsvc.server.store.errors import CallerError, bad_data, not_found

TEXT = String()
TEXTS = Array(TEXT)
COUNT = Integer(minimum=0)

CONSTRAINTS = Array(Object({"contextName": TEXT, "operator": TEXT}, required=("contextName", "operator")))
STRATEGY = Object(
    {
        "name": TEXT,
        "constraints": CONSTRAINTS,
        "parameters": Map(TEXT),
        "variants": Array(Object({"name": TEXT, "weight": COUNT}, required=("name", "weight"))),
        "segments": Array(Integer(), description="Ids of segments of the document."),
    },
    required=("name", "constraints", "parameters"),
)

FEATURE = Named(
    "clientFeatureSchema",
    Object(
        {
            "name": TEXT,
            "type": TEXT,
            "enabled": Boolean(),
            "project": TEXT,
            "stale": Boolean(),
            "strategies": Array(STRATEGY),
            "variants": Array(Object({"name": TEXT, "weight": COUNT}, required=("name", "weight"))),
            "description": Nullable(TEXT),
            "impressionData": Boolean(),
            "dependencies": Array(Object({"feature": TEXT, "enabled": Boolean(), "variants": TEXTS}, required=("feature",))),
        },
        required=("name", "enabled"),
    ),
)

FEATURES = Named(
    "clientFeaturesSchema",
    Object(
        {
            "version": Integer(description="2: the format of the document."),
            "features": Array(FEATURE),
            "query": Object(
                {
                    "tag": Array(TEXTS),
                    "project": TEXTS,
                    "namePrefix": TEXT,
                    "environment": TEXT,
                    "inlineSegmentConstraints": Boolean(),
                }
            ),
            "segments": Array(
                Object({"id": Integer(), "name": TEXT, "constraints": CONSTRAINTS}, required=("id", "constraints")),
                description="The segments in use; not there for SDKs that know none.",
            ),
            "meta": Object({"revisionId": Integer(), "etag": TEXT, "queryHash": TEXT}),
        },
        required=("version", "features"),
    ),
)


def get_features(call: ApiCall) -> Answer:
    """Return the document, or 304 if the caller has it. Raises `DatabaseError` if it was never read and cannot be."""
    query = read_query(call)
    return build_answer(call, query, call.server.documents.get(query))


def get_cached_features(call: ApiCall) -> Answer | None:
    """Return the document if it is in memory and up to date."""
    query = read_query(call)
    found = call.server.documents.get_cached(query)
    return None if found is None else build_answer(call, query, found)


def get_feature(call: ApiCall) -> Answer:
    """Return one feature of the document. Raises `CallerError` (404)."""
    name = call.params["featureName"]
    body = call.server.documents.feature(read_query(call), name)
    if body is None:
        raise not_found(f"Could not find feature flag {name}")
    return Answer(body)


def build_answer(call: ApiCall, query: DocumentQuery, found: ClientDocument) -> Answer:
    """Return a document, or 304 if the caller has it, perhaps from another server with the same database."""
    call.server.pollers.note(query, read_who(call), found, call.server.clock.now())
    condition = call.head.if_none_match
    if condition is not None and f'"{found.digest}:'.encode() in condition:
        return Answer(None, 304, ((b"etag", found.tag),))
    offer = (STREAMING,) if call.server.offers_streaming and not call.query else ()
    return Answer(found.body, headers=offer, gzipped=found.gzipped, tag=found.tag)


def read_who(call: ApiCall) -> Who:
    """Return the names that the caller gives itself."""
    head = call.head
    return head.other(APP_NAME), head.other(INSTANCE_ID), head.other(SDK)


def read_query(call: ApiCall) -> DocumentQuery:
    """Return the query of a request. Raises `CallerError` (400) for an invalid filter or header."""
    try:
        inline = not knows_segments(call.head.client_spec)
    except ValueError as error:
        raise bad_data(str(error)) from None
    token, requested = call.token, call.query
    given = {name: list(requested[name]) for name in FILTERS if name in requested}
    if ALL not in token.projects:
        given.pop("project", None)
    if wrong := find_problems(given):
        raise CallerError("BadDataError", INVALID, [{"message": problem} for problem in wrong])
    return DocumentQuery(
        environment=token.environment,
        projects=select_projects(token, given.get("project")),
        prefix=next(iter(given.get("namePrefix", ())), None),
        tags=None if "tag" not in given else tuple(split_tags(given["tag"])),
        inline=inline,
    )


def select_projects(token: ClientToken, requested: list[str] | None) -> tuple[str, ...] | None:
    """Return the projects of a document: the token's, or with a token of all projects the requested ones; None for all."""
    if ALL not in token.projects:
        return token.projects
    return None if requested is None else tuple(requested)


route = partial(Route, tag="Client", auth=Auth.CLIENT)

ROUTES = (
    route(
        path="/api/client/features",
        handler=get_features,
        at_once=get_cached_features,
        operation="getAllClientFeatures",
        summary="The configuration of the flags that the token's projects and environment hold.",
        query=PARAMETERS,
        result=FEATURES,
    ),
    route(
        path="/api/client/features/:featureName",
        handler=get_feature,
        operation="getClientFeature",
        summary="The configuration of one flag.",
        query=PARAMETERS,
        result=FEATURE,
    ),
)
