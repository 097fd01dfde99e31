"""GET /api/client/features: the configuration for proxies and server-side SDKs (dialects: GET /api/client/features).

The token decides the projects and the environment of a document. A filter by project has an effect only with a token of all
projects. The header `Unleash-Client-Spec` of an SDK tells whether it supports segments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from flagsvc.http.route import Parameter
from flagsvc.http.shapes.text import to_json
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.shapes.client_bodies import FEATURE, FEATURES
from flagsvc.server.store.actors import ALL, ClientToken
from flagsvc.server.store.checks import INVALID, MAX_NAME_LENGTH, RELATIVE_PATHS, URL_FRIENDLY
from flagsvc.server.store.documents import ClientDocument, DocumentQuery
from flagsvc.server.store.errors import CallerError, bad_data, not_found

NUMBER = r"(0|[1-9]\d{0,15})"
LABEL = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
SEMVER = re.compile(rf"{NUMBER}\.{NUMBER}\.{NUMBER}(-{LABEL}(?:\.{LABEL})*)?", re.ASCII)
SEGMENTS_SINCE = (4, 2, 0)
"""The version of the client specification that introduced segments."""
TAG = re.compile(r"\w+:.+", re.ASCII)
EMPTY = "is not allowed to be empty."

Problems: TypeAlias = Iterator[str]


def get_features(call: ApiCall) -> ApiAnswer:
    """Return the document, or 304 if the caller has it. Raises `DatabaseError` if it was never read and cannot be."""
    return build_answer(call, call.server.documents.get(read_query(call)))


def get_cached_features(call: ApiCall) -> ApiAnswer | None:
    """Return the document if it is in memory and up to date."""
    found = call.server.documents.get_cached(read_query(call))
    return None if found is None else build_answer(call, found)


def get_feature(call: ApiCall) -> ApiAnswer:
    """Return one feature of the document. Raises `CallerError` (404)."""
    name = call.params["featureName"]
    body = call.server.documents.feature(read_query(call), name)
    if body is None:
        raise not_found(f"Could not find feature flag {name}")
    return ApiAnswer(body)


def build_answer(call: ApiCall, found: ClientDocument) -> ApiAnswer:
    """Return a document, or 304 if the caller has it, perhaps from another server with the same database."""
    condition = call.head.if_none_match
    if condition is not None and f'"{found.digest}:'.encode() in condition:
        return ApiAnswer(None, 304, ((b"etag", found.tag),))
    return ApiAnswer(found.body, gzipped=found.gzipped, tag=found.tag)


def read_query(call: ApiCall) -> DocumentQuery:
    """Return the query of a request. Raises `CallerError` (400) for an invalid filter or header."""
    inline = not knows_segments(call.head.client_spec)
    token, requested = call.token, call.query
    given = {name: list(requested[name]) for name in FILTERS if name in requested}
    if ALL not in token.projects:
        given.pop("project", None)
    wrong = [problem for name, values in given.items() for problem in FILTERS[name](values)]
    if wrong:
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


def split_tags(tags: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the type and the value of each tag; a value may contain colons."""
    for tag in tags:
        kind, _, value = tag.partition(":")
        yield kind, value


def knows_segments(version: bytes | None) -> bool:
    """Return whether an SDK with this version of the client specification supports segments. Raises `CallerError` (400)."""
    if not version:
        return False
    text = version.decode("latin-1").strip()
    match = SEMVER.fullmatch(text)
    if match is None:
        what = "SemVer" if text[:1].isdigit() else "prefix"
        raise bad_data(f'Invalid {what} in the Unleash-Client-Spec header: "{text}".')
    numbers = tuple(int(each) for each in match.groups()[:3])
    return numbers > SEGMENTS_SINCE or (numbers == SEGMENTS_SINCE and not match[4])


def project_problems(values: list[str]) -> Problems:
    """Yield what is wrong with a filter by project; one more problem if no value is valid."""
    if values == [""]:
        yield '"project" must be an array.'
        return
    wrong = [
        f'"project[{place}]" {problem}' for place, value in enumerate(values) if (problem := project_problem(value))
    ]
    yield from wrong
    if len(wrong) == len(values):
        yield f'"project" does not contain 1 required value(s). You provided {to_json(values)}.'


def project_problem(value: str) -> str:
    """Return what is wrong with a project id; empty for a valid one."""
    if not value:
        return EMPTY
    if len(value) > MAX_NAME_LENGTH:
        return f'length must be less than or equal to {MAX_NAME_LENGTH} characters long. You provided "{value}".'
    friendly = URL_FRIENDLY.match(value) and value not in RELATIVE_PATHS
    return "" if friendly else f'must be URL friendly. You provided "{value}".'


def prefix_problems(values: list[str]) -> Problems:
    """Yield what is wrong with a filter by name prefix."""
    if len(values) > 1:
        yield f'"namePrefix" must be a string. You provided {to_json(values)}.'
    elif not values[0]:
        yield f'"namePrefix" {EMPTY}'


def tag_problems(values: list[str]) -> Problems:
    """Yield what is wrong with a filter by tag."""
    if values == [""]:
        yield '"tag" must be an array.'
        return
    for place, value in enumerate(values):
        if not value:
            yield f'"tag[{place}]" {EMPTY}'
        elif TAG.search(value) is None:
            yield f'"tag[{place}]" with value "{value}" fails to match the tag pattern. You provided "{value}".'


FILTERS: dict[str, Callable[[list[str]], Problems]] = {
    "tag": tag_problems,
    "project": project_problems,
    "namePrefix": prefix_problems,
}
"""Parameter of the query string → the function that finds problems of its values."""

PARAMETERS = (
    Parameter(
        "project", "Only features of this project; has an effect only with a token of all projects.", repeated=True
    ),
    Parameter("namePrefix", "Only features whose name begins with this."),
    Parameter("tag", "Only features with this tag, written `type:value`; of several tags any one.", repeated=True),
)

ROUTES = (
    Route(
        path="/api/client/features",
        handler=get_features,
        at_once=get_cached_features,
        operation="getAllClientFeatures",
        summary="The configuration of the flags that the token's projects and environment hold.",
        tag="Client",
        auth=Auth.CLIENT,
        query=PARAMETERS,
        result=FEATURES,
    ),
    Route(
        path="/api/client/features/:featureName",
        handler=get_feature,
        operation="getClientFeature",
        summary="The configuration of one flag.",
        tag="Client",
        auth=Auth.CLIENT,
        query=PARAMETERS,
        result=FEATURE,
    ),
)
