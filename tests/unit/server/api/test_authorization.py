"""Which forms of a token are accepted, and which types of token each API accepts (import validation 1, steps 2 and 3)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flagsvc.server.api.authorization import api_area, read_secret
from support.flagservers import ADMIN_SECRET, BACKEND_SECRET, FRONTEND_SECRET, USER_SECRET, AppClient, app_client
from unit.server.api.pipeline_scene import ROUTES, THINGS, message


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppClient]:
    """Give a server with the routes of these tests."""
    with app_client(str(tmp_path_factory.mktemp("door") / "flags.db"), routes=ROUTES) as made:
        yield made


TOKENS = {
    "Bearer {}": 200,
    "bearer   {}": 200,
    "BEARER\t{}": 200,
    " {} ": 200,
    "Bearer{}": 401,
    "Bearer Bearer {}": 401,
    "Bearer": 401,
}


@pytest.mark.parametrize("form", TOKENS)
def test_how_a_token_may_come(client: AppClient, form: str) -> None:
    """A token stands alone or after `Bearer`, in any letter case and with any amount of space."""
    assert client.get(THINGS, token=form.format(USER_SECRET)).status == TOKENS[form]
    assert client.get("/api/client/things", token=form.format(BACKEND_SECRET)).status == TOKENS[form]


@pytest.mark.parametrize("path", [THINGS, "/api/client/things", "/api/nosuch"])
def test_two_tokens(client: AppClient, path: str) -> None:
    """Two headers are a 400, even if one is valid: another reader might use the other one. Paths that need no token ignore them."""
    right = BACKEND_SECRET if "client" in path else USER_SECRET
    for tokens in ((right, right), (right, "unknown"), ("unknown", right)):
        answer = client.get(path, token=tokens[0], more=[("authorization", tokens[1])])
        assert (answer.status, message(answer)) == (400, "the header `authorization` came more than once")
    assert client.get("/open", more=[("authorization", USER_SECRET)]).status == 200


CLIENT = [
    (None, 401, "This endpoint requires an API token. Please add an authorization header to your request with a valid token"),
    ("*:development.unknown", 401, "This endpoint requires an API token. Please add an authorization header to your request"),
    ("user:unknown", 401, "This server does not know this token, or it has expired. Send a backend token."),
    (FRONTEND_SECRET, 403, "invalid token: expected a different token type for this endpoint"),
    (ADMIN_SECRET, 403, "invalid token: expected a different token type for this endpoint"),
    (USER_SECRET, 403, "invalid token: expected a different token type for this endpoint"),
]


@pytest.mark.parametrize(("secret", "status", "start"), CLIENT)
@pytest.mark.parametrize("path", ["/api/client/things", "/api/client/nosuch", "/API//Client/Things/"])
def test_the_client_api_is_for_backend_tokens(client: AppClient, path: str, secret: str, status: int, start: str) -> None:
    """A caller without a token learns nothing about existing paths."""
    answer = client.get(path, token=secret)
    assert (answer.status, message(answer)[: len(start)]) == (status, start)


AREAS = {
    "/api/frontend": "/api/frontend",
    "/api/client": "/api/client",
    "/API/Client/features": "/api/client",
    "/api/clients": "/api",
    "/api/admin/": "/api/admin",
    "/api/administration": "/api",
    "/api": "/api",
    "/apis": "",
    "/": "",
    "/health": "",
}


@pytest.mark.parametrize("path", AREAS)
def test_parts_of_the_api(path: str) -> None:
    """An area of the API is a whole path segment, in any letter case. Paths outside all areas need no token."""
    assert api_area(path) == AREAS[path]


def test_a_secret_is_taken_out_of_its_header() -> None:
    """Non-ASCII bytes raise no error."""
    assert read_secret(None) == read_secret(b" ") == ""
    assert read_secret(b"\xff\xfe") == "\xff\xfe"
