"""GET /api/client/features on the wire: tokens, filters, entity tags, versions of the client specification."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from typing import Any

import pytest

from flagsvc.http.call import Call
from flagsvc.http.messages import Request
from flagsvc.server.api.call import ApiCall, Caller
from flagsvc.server.api.client.features import get_cached_features
from support.flagservers import BACKEND_SECRET, AppClient
from support.stored_flags import Flags

pytestmark = pytest.mark.one_database

ONE_PROJECT = "default:development.of-one-project"
TWO_PROJECTS = "[]:production.of-two-projects"
PATH = "/api/client/features"
SPEC = {"Unleash-Client-Spec": "5.1.9"}
US = {"contextName": "region", "operator": "IN", "values": ["us"]}
GIVEN = {
    "projects": [{"id": "other", "name": "Other"}],
    "tokens": [
        {"type": "backend", "secret": ONE_PROJECT, "projects": ["default"], "environment": "development"},
        {"type": "backend", "secret": TWO_PROJECTS, "projects": ["default", "other"], "environment": "production"},
    ],
}


def prepare(client: AppClient) -> None:
    """Make flags in two projects."""
    flags = Flags()
    flags.segment("us", US)
    flags.feature("a-flag", on=["development"], strategies=[{"segments": ["us"]}], tags=[("simple", "red:x")])
    flags.feature("b-flag", on=["production"])
    flags.feature("o-flag", project="other")
    flags.feature("archived", archived_at=datetime(2026, 1, 1, tzinfo=UTC))
    with client.server.store.writing(None) as tx:
        flags.put(tx)


def ask(client: AppClient, query: str = "", token: str = BACKEND_SECRET, **headers: str) -> Any:
    """Ask for the document."""
    return client.get(PATH + query, token=token, headers=SPEC | headers)


def names(client: AppClient, query: str = "", token: str = BACKEND_SECRET) -> list[str]:
    """Return the names of the features in a document."""
    answer = ask(client, query, token)
    assert answer.status == 200, answer.body
    return [feature["name"] for feature in answer.json()["features"]]


def test_the_document(client: AppClient) -> None:
    """It is JSON with an entity tag, which it also contains; HEAD has no body."""
    answer = ask(client)
    document = answer.json()
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json; charset=utf-8")
    assert list(document) == ["version", "features", "query", "segments", "meta"]
    meta = document["meta"]
    assert answer.headers["etag"] == meta["etag"] == f'"{meta["queryHash"]}:{meta["revisionId"]}:v1"'
    assert meta["revisionId"] == client.server.store.revision()
    assert document["query"] == {"environment": "development", "inlineSegmentConstraints": False}
    assert document["segments"] == [{"id": 1, "name": "us", "constraints": [US]}]
    head = client.ask("HEAD", PATH, token=BACKEND_SECRET, headers=SPEC)
    assert (head.status, head.body, head.headers["etag"]) == (200, b"", answer.headers["etag"])


@pytest.mark.parametrize(
    ("token", "query", "expected"),
    [
        (BACKEND_SECRET, "", ["a-flag", "b-flag", "o-flag"]),
        (ONE_PROJECT, "", ["a-flag", "b-flag"]),
        (TWO_PROJECTS, "", ["a-flag", "b-flag", "o-flag"]),
        (BACKEND_SECRET, "?project=other", ["o-flag"]),
        (BACKEND_SECRET, "?project=other&project=default", ["a-flag", "b-flag", "o-flag"]),
        (BACKEND_SECRET, "?project=*", ["a-flag", "b-flag", "o-flag"]),
        (BACKEND_SECRET, "?project=nosuch", []),
        (ONE_PROJECT, "?project=other", ["a-flag", "b-flag"]),
        (BACKEND_SECRET, "?namePrefix=a", ["a-flag"]),
        (BACKEND_SECRET, "?namePrefix=A", []),
        (BACKEND_SECRET, "?namePrefix=%25", []),
        (ONE_PROJECT, "?namePrefix=o", []),
        (BACKEND_SECRET, "?tag=simple:red:x", ["a-flag"]),
        (BACKEND_SECRET, "?tag=simple:none&tag=simple:red:x", ["a-flag"]),
        (BACKEND_SECRET, "?tag=simple:none", []),
        (BACKEND_SECRET, "?tag=other:red:x", []),
        (BACKEND_SECRET, "?environment=production&foo=bar", ["a-flag", "b-flag", "o-flag"]),
    ],
)
def test_what_a_token_sees(client: AppClient, token: str, query: str, expected: list[str]) -> None:
    """The token's projects limit the document; filters narrow it; a project filter works only with a token of all projects."""
    assert names(client, query, token) == expected


def test_the_document_tells_its_filters(client: AppClient) -> None:
    """Only filters that are there are told."""
    told = ask(client, "?project=other&namePrefix=o&tag=simple:red:x").json()["query"]
    given = {"tag": [["simple", "red:x"]], "project": ["other"], "namePrefix": "o"}
    assert told == given | {"environment": "development", "inlineSegmentConstraints": False}


def test_the_environment_is_the_tokens(client: AppClient) -> None:
    """The token's environment decides which flags are on, with any query."""
    features = ask(client, "?environment=development", TWO_PROJECTS).json()["features"]
    assert [feature["name"] for feature in features if feature["enabled"]] == ["b-flag"]


VERSIONS = (
    ("4.1.9", False),
    ("4.2.0", True),
    ("4.2.0-beta", False),
    ("4.3.0-beta", True),
    ("5.1.9", True),
    ("10.0.0", True),
    ("", False),
)


def test_which_sdks_know_segments(client: AppClient) -> None:
    """From version 4.2.0 of the client specification on, a document has segments; before, strategies hold their constraints."""
    for version, knows in VERSIONS:
        document = client.get(PATH, token=BACKEND_SECRET, headers={"Unleash-Client-Spec": version}).json()
        strategy = document["features"][0]["strategies"][0]
        assert ("segments" in document, "segments" in strategy, strategy["constraints"] == [US]) == (knows, knows, not knows)
        assert document["query"]["inlineSegmentConstraints"] is not knows


def test_a_caller_who_has_the_document(client: AppClient) -> None:
    """If-None-Match with the document's tag, in any of its forms, is a 304 without a body."""
    for form in ("{0}", "W/{0}", '"a", {0}', "*"):
        tag = ask(client).headers["etag"]
        answer = ask(client, **{"If-None-Match": form.format(tag)})
        assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", tag)
        assert ask(client, **{"If-None-Match": '"other:1:v1"'}).status == 200


def test_a_document_of_another_revision_with_the_same_content(client: AppClient) -> None:
    """A tag that another server gave to the same content matches: the digest decides, not the revision number."""
    digest = ask(client).json()["meta"]["queryHash"]
    assert ask(client, **{"If-None-Match": f'"{digest}:999:v1"'}).status == 304


def test_a_change_gives_another_tag(client: AppClient) -> None:
    """After a commit the caller's tag is no longer that of the document."""
    tag = ask(client).headers["etag"]
    flags = Flags(placed=50)
    flags.feature("new")
    with client.server.store.writing(None) as tx:
        flags.put(tx)
    answer = ask(client, **{"If-None-Match": tag})
    assert (answer.status, answer.headers["etag"] == tag) == (200, False)
    assert [feature["name"] for feature in answer.json()["features"]][-1] == "new"


def test_gzip(client: AppClient) -> None:
    """A large document is compressed if the client accepts gzip, and has the same tag."""
    flags = Flags(placed=50)
    for number in range(30):
        flags.feature(f"more-{number}")
    with client.server.store.writing(None) as tx:
        flags.put(tx)
    plain, gzipped = ask(client), ask(client, **{"Accept-Encoding": "gzip"})
    assert gzipped.headers["content-encoding"] == "gzip"
    assert (gzip.decompress(gzipped.body), gzipped.headers["etag"]) == (plain.body, plain.headers["etag"])


def test_one_feature(client: AppClient) -> None:
    """A single feature is the same as in the document. A feature that the token cannot see is a 404."""
    whole = {feature["name"]: feature for feature in ask(client).json()["features"]}
    answer = client.get(f"{PATH}/a-flag", token=ONE_PROJECT, headers=SPEC)
    assert (answer.status, answer.json()) == (200, whole["a-flag"])
    inline = client.get(f"{PATH}/a-flag", token=ONE_PROJECT).json()
    assert [each["constraints"] for each in inline["strategies"]] == [[US]]
    for name in ("A-flag", "o-flag", "archived"):
        message = f"Could not find feature flag {name}"
        answer = client.get(f"{PATH}/{name}", token=ONE_PROJECT)
        expected = {"name": "NotFoundError", "message": message, "details": [{"message": message}]}
        assert (answer.status, answer.json()) == (404, expected)


def test_what_is_up_to_date_is_answered_without_a_thread(client: AppClient) -> None:
    """The second request needs no thread; a request after a change does."""
    token = client.server.keyring.find(BACKEND_SECRET)
    call = ApiCall(Call(Request(b"GET", PATH.encode(), b"", [])), client.server, Caller(token=token))  # type: ignore[arg-type]
    assert get_cached_features(call) is None
    client.get(PATH, token=BACKEND_SECRET)
    answer = get_cached_features(call)
    assert answer is not None and answer.status == 200
    with client.server.store.writing(None):
        pass
    assert get_cached_features(call) is None
