"""Every route of the flag server refuses a caller without the permission (import validation 1).

One handler with a special status replaces all handlers. So these tests see only the checks before a handler.

Paths find their routes in any letter case, with any slashes (import validation 1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from flagsvc.http.answers import Answer
from flagsvc.http.client_query import read_query
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.errors import ApiError
from flagsvc.server.api.pipeline import Match, Router, allowed, find_match, parameters, plain_path, refuse_method
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.api.routes import ROUTES
from flagsvc.server.store import keyring
from support.flagservers import ADMIN_SECRET, BACKEND_SECRET, FRONTEND_SECRET, USER_SECRET, VIEWER_SECRET, AppClient, app_client

ELSEWHERE_SECRET = "user:secret-of-the-owner-of-another-project"
EXPIRED_SECRET = "user:secret-that-has-expired"
GIVEN: dict[str, Any] = {
    "projects": [{"id": "other", "name": "Other"}],
    "users": [{"name": "stranger", "rootRole": "viewer", "projectRoles": [{"project": "other", "role": "owner"}]}],
    "tokens": [
        {"type": "personal", "user": "stranger", "secret": ELSEWHERE_SECRET},
        {"type": "personal", "user": "boss", "secret": EXPIRED_SECRET, "expiresAt": "2020-01-01T00:00:00Z"},
    ],
}
REACHED = Answer({"reached": True}, 299)
PLACES = {"projectId": "default", "environment": "development"}
OPEN_TO_ALL = {
    *("/api/admin/archive/:featureName", "/api/admin/archive/revive/:featureName"),
    *("/api/admin/constraints/validate", "/api/admin/events/:id/undo", "/api/admin/events/actions/:groupId/undo"),
    *("/api/admin/features/validate", "/api/admin/projects/:projectId/features/:featureName/variants-batch"),
    "/api/admin/projects/:projectId/features/:featureName/favorites",
    *("/api/admin/features-batch/validate", "/api/admin/features-batch/import"),
    *("/api/admin/features-batch/import/dry-run", "/api/admin/features-batch/export"),
    *("/api/admin/segments/strategies", "/api/admin/segments/validate", "/api/admin/tag-types/validate"),
    *("/api/admin/tags", "/api/admin/user/sessions", "/api/admin/user/sessions/:id", "/api/admin/user/tokens"),
    "/api/admin/user/tokens/:id",
}
"""Routes of the admin API that are no GET and require no permission. They report missing permissions in their answers, check
them in the handler, change nothing, concern only the caller, or are open to everybody on the real server."""

OPEN_QUESTIONS = {"/edge/validate": {"tokens": ["some"]}}
"""Route that needs no token and has a body → an example of the body."""


def path_of(route: Route, **places: str) -> str:
    """Return the path of a route with every parameter filled in."""
    known = PLACES | places
    return "/".join(known.get(part[1:], "some") if part.startswith(":") else part for part in route.path.split("/"))


def rows(condition: Callable[[Route], object]) -> list[Any]:
    """Return the routes that a test is about, each with a name."""
    return [pytest.param(route, id=f"{route.method} {route.path}") for route in ROUTES if condition(route)]


def needed(route: Route) -> tuple[str, ...]:
    """Return the permissions of a route. Any one of them is enough."""
    given = (route.permission,) if isinstance(route.permission, str) else route.permission
    return tuple(name for name in given if name)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppClient]:
    """Give a server whose handlers all answer `REACHED`."""

    def reached(call: ApiCall) -> Answer:
        return REACHED

    database = str(tmp_path_factory.mktemp("routes") / "flags.db")
    idle = [replace(route, handler=reached, at_once=None) for route in ROUTES]
    with pytest.MonkeyPatch.context() as patch, app_client(database, given=GIVEN, routes=idle) as made:
        patch.setattr(keyring, "PAUSE_S", 0)  # an unknown token waits so long for others
        yield made


def status(client: AppClient, route: Route, token: str | None, **places: str) -> int:
    """Return the status of a request to a route, with a JSON body if the route has one."""
    return client.ask(route.method, path_of(route, **places), None if route.body is None else {}, token=token).status


@pytest.mark.parametrize("route", rows(lambda route: route.auth is Auth.ADMIN))
def test_the_admin_api_is_for_users_and_admin_tokens(client: AppClient, route: Route) -> None:
    """Without a token, or with an unknown or expired one: 401. With a client token: 403. An administrator's token passes."""
    for token in (None, "", "unknown", "*:*.unknown", "user:unknown", EXPIRED_SECRET, USER_SECRET + "x", USER_SECRET[:-1]):
        assert status(client, route, token) == 401
    for token in (BACKEND_SECRET, FRONTEND_SECRET):
        assert status(client, route, token) == 403
    for token in (USER_SECRET, ADMIN_SECRET):
        assert status(client, route, token) in ((REACHED.status,) if route.body is None else (REACHED.status, 400))


@pytest.mark.parametrize("route", rows(lambda route: route.auth is Auth.CLIENT))
def test_the_client_api_is_for_backend_tokens(client: AppClient, route: Route) -> None:
    """Without a token, or with an unknown one: 401. With a token of another type: 403. A backend token passes."""
    for token in (None, "", "unknown", "*:*.unknown", "user:unknown", EXPIRED_SECRET, BACKEND_SECRET + "x"):
        assert status(client, route, token) == 401
    for token in (FRONTEND_SECRET, ADMIN_SECRET, USER_SECRET, VIEWER_SECRET):
        assert status(client, route, token) == 403
    assert status(client, route, BACKEND_SECRET) in ((REACHED.status,) if route.body is None else (REACHED.status, 400))


@pytest.mark.parametrize("route", rows(lambda route: route.auth is Auth.ADMIN and needed(route)))
def test_a_permission_is_needed(client: AppClient, route: Route) -> None:
    """A viewer gets 403, and so does the owner of another project."""
    assert status(client, route, VIEWER_SECRET) == 403
    if needed(route) != ("ADMIN",) and ":projectId" in route.path:
        assert status(client, route, ELSEWHERE_SECRET) == 403


def in_a_project(route: Route) -> bool:
    """Return whether a role in a project can give access to a route."""
    return route.auth is Auth.ADMIN and bool(needed(route)) and ":projectId" in route.path


@pytest.mark.parametrize("route", rows(in_a_project))
def test_a_role_opens_its_own_project_only(client: AppClient, route: Route) -> None:
    """A project's owner reaches the routes of this project, but not those of an unknown project or environment."""
    assert status(client, route, ELSEWHERE_SECRET, projectId="nosuch") == 403
    own = status(client, route, ELSEWHERE_SECRET, projectId="other")
    assert own in (REACHED.status, 400), needed(route)
    if ":environment" in route.path and needed(route) != ("UPDATE_PROJECT",):
        assert status(client, route, ELSEWHERE_SECRET, projectId="other", environment="nosuch") == 403


@pytest.mark.parametrize("route", rows(lambda route: route.auth is Auth.NONE and route.path not in OPEN_QUESTIONS))
def test_what_runs_the_server_needs_no_token(client: AppClient, route: Route) -> None:
    """Health, metrics and the documentation are GET routes outside `/api`."""
    assert route.method == "GET" and not route.path.startswith("/api")
    assert status(client, route, None) == REACHED.status


@pytest.mark.parametrize("route", rows(lambda route: route.path in OPEN_QUESTIONS))
def test_a_question_about_tokens_needs_none(client: AppClient, route: Route) -> None:
    """Its route is outside `/api` and changes nothing. A token that comes along is not looked at."""
    assert route.auth is Auth.NONE and route.reads
    for token in (None, "unknown", BACKEND_SECRET, USER_SECRET):
        answer = client.ask(route.method, path_of(route), OPEN_QUESTIONS[route.path], token=token)
        assert answer.status == REACHED.status


def test_rows_are_in_order() -> None:
    """Routes and operations are unique, and fit their area. A change names a permission, except those in `OPEN_TO_ALL`."""
    Router(ROUTES)
    assert not [name for name, times in Counter(route.operation for route in ROUTES).items() if times > 1]
    for route in ROUTES:
        place = {Auth.ADMIN: "/api/admin/", Auth.CLIENT: "/api/client/", Auth.NONE: "/"}[route.auth]
        assert route.path.startswith(place)
        assert route.summary.strip() and route.tag
        assert route.method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        assert not (route.in_memory and route.at_once)
        assert route.reads == (route.method == "POST" and route.path.endswith(("/validate", "/export")))
    changing = [route for route in ROUTES if route.auth is Auth.ADMIN and route.method != "GET" and not needed(route)]
    assert {route.path for route in changing} <= OPEN_TO_ALL


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
