"""Paths find their routes in any letter case, with any slashes (import validation 1)."""

from __future__ import annotations

import pytest

from flagsvc.http.answers import Answer
from flagsvc.http.client_query import read_query
from flagsvc.server.api.errors import ApiError
from flagsvc.server.api.pipeline import Match, Router, allowed, find_match, parameters, plain_path, refuse_method
from flagsvc.server.api.route import Route


def route(path: str, method: str = "GET") -> Route:
    """Return a row."""
    return Route(path=path, method=method, handler=lambda call: Answer(), operation="x", summary="x", tag="x")


ROWS = [
    route("/api/admin/tags"),
    route("/api/admin/tags", "POST"),
    route("/api/admin/tags/:type"),
    route("/api/admin/tags/:type/:value"),
    route("/api/admin/tags/all"),
    route("/api/admin/tags/all/things", "POST"),
    route("/api/admin/tags/:type/things", "DELETE"),
]
ROUTER = Router(ROWS)


def find(method: str, path: str) -> Match:
    """Return the route of a path that has one."""
    match = find_match(ROUTER.matches(path), method)
    assert match is not None
    return match


FOUND = {
    "/api/admin/tags": ("/api/admin/tags", {}),
    "/API/Admin/TAGS": ("/api/admin/tags", {}),
    "/api/admin/tags/": ("/api/admin/tags", {}),
    "/api//admin///tags//": ("/api/admin/tags", {}),
    "/api/admin/tags/Simple": ("/api/admin/tags/:type", {"type": "Simple"}),
    "/api/admin/tags/%73%C3%A4": ("/api/admin/tags/:type", {"type": "sä"}),
    "/api/admin/tags/a+b": ("/api/admin/tags/:type", {"type": "a+b"}),
    "/api/admin/tags/all": ("/api/admin/tags/all", {}),
    "/api/admin/tags/all/b%2Fc": ("/api/admin/tags/:type/:value", {"type": "all", "value": "b/c"}),
}


@pytest.mark.parametrize("path", FOUND)
def test_a_path_finds_its_route_and_its_parameters(path: str) -> None:
    """A fixed name wins over a parameter. A parameter keeps its letter case and is decoded."""
    match = find("GET", path)
    assert (match.route.path, parameters(match)) == FOUND[path]


@pytest.mark.parametrize("path", ["/", "/api", "/api/admin", "/api/admin/tag%73", "/api/admin/tags/a/b/c", "/api/./admin/tags"])
def test_an_unknown_path_is_a_404(path: str) -> None:
    """The message names the path."""
    assert find_match(ROUTER.matches(path), "GET") is None
    refused = refuse_method(ROUTER.matches(path), "GET", path)
    assert refused.status == 404
    assert refused.body["message"] == f"The path you were looking for ({path}) is not available."


def test_another_method_is_a_405_that_lists_them() -> None:
    """The list has the methods of all routes that match the path, and HEAD if GET is there. HEAD finds the route of GET."""
    path = "/api/admin/tags/all/things"
    assert find_match(ROUTER.matches(path), "PUT") is None
    refused = refuse_method(ROUTER.matches(path), "PUT", path)
    assert (refused.status, refused.headers) == (405, [(b"allow", b"POST,DELETE,GET,HEAD")])
    assert find("HEAD", "/api/admin/tags").route is ROWS[0]
    assert allowed(ROUTER.matches("/api/admin/tags")) == "GET,HEAD,POST"


@pytest.mark.parametrize("value", ["%zz", "%", "%f", "%ff", "a%2"])
def test_invalid_escape_is_a_400(value: str) -> None:
    """The message names the parameter's value."""
    with pytest.raises(ApiError) as caught:
        parameters(find("GET", f"/api/admin/tags/{value}"))
    assert caught.value.status == 400
    assert caught.value.body["details"] == [{"message": f"Failed to decode param '{value}'"}]


def test_a_route_cannot_be_there_twice() -> None:
    """Two rows for one method and path are an error, also if the parameter names differ."""
    with pytest.raises(ValueError, match="two routes for GET"):
        Router([route("/a/:b"), route("/a/:c")])


def test_the_path_of_messages_has_single_slashes() -> None:
    """Repeated slashes become one slash. The rest of the path stays as sent."""
    assert plain_path(b"/api//Admin/nosuch/%zz/") == "/api/Admin/nosuch/%zz/"


QUERIES = {
    b"": {},
    b"a=1&a=2&b=": {"a": ["1", "2"], "b": [""]},
    b"a[]=1&a[1]=2": {"a": ["1", "2"]},
    b"a%5B%5D=1": {"a": ["1"]},
    b"tag=team%3Aw+eb": {"tag": ["team:w eb"]},
    b"a=%ff&b=%zz": {"a": ["�"], "b": ["%zz"]},
    b"flag": {"flag": [""]},
}


@pytest.mark.parametrize("query", QUERIES, ids=repr)
def test_the_query_string(query: bytes) -> None:
    """Values keep their order, brackets make lists, and no query string is an error."""
    assert read_query(query) == QUERIES[query]


def test_a_huge_query_string_is_cut() -> None:
    """Only the first thousand parameters are read, as on the real server."""
    assert len(read_query(b"&".join(b"a%d=1" % number for number in range(5000)))) == 1000
