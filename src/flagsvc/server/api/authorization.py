"""Authenticates callers by the part of the API, and checks permissions by the route (import validation 1, steps 2 and 3).

The project of a check is in the path, or in the body, or that of the object in the path.

`/api/client` is for backend tokens, everything else below `/api` for users and admin tokens. Any path, known or not, rejects a
token of the other kind. `/api/frontend` has a contract of its own (`flagsvc/frontend/`). Pages, below `/ui`, take a session from a
cookie, or a token of the admin API.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from flagsvc.http.call import COOKIE, Call
from flagsvc.http.messages import Request
from flagsvc.http.shapes import Integer, ShapeError, check
from flagsvc.pages.headers import read_cookie
from flagsvc.server.api.call import ANONYMOUS, NUL, ApiCall, ApiContext, Caller
from flagsvc.server.api.errors import (
    forbidden,
    no_token,
    sign_in_needed,
    token_required,
    two_tokens,
    unknown_token,
    wrong_token,
)
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.store.actors import Actor, ClientToken
from flagsvc.server.store.resources.projects import project_of_feature, project_of_field, project_of_segment

API, ADMIN_API, CLIENT_API, FRONTEND_API, OFREP_API = "/api", "/api/admin", "/api/client", "/api/frontend", "/ofrep"
PAGES = "/ui"
AREAS = (CLIENT_API, ADMIN_API, FRONTEND_API, OFREP_API, API, PAGES)
BEARER = re.compile(r"^bearer\s+", re.IGNORECASE)
PERSONAL = "user:"
BACKEND = ("client", "backend")


class Authorization:
    """Identifies callers and checks their permissions."""

    def __init__(self, server: ApiContext) -> None:
        self._server = server
        self._keyring = server.keyring

    def identify(self, head: Call, area: str) -> Caller:
        """Return who sends a request to an area.

        Raises ApiError: 400 for a repeated header, 401 for a missing or unknown token, 403 for one of the wrong type.
        """
        if not area:
            return ANONYMOUS
        if area == PAGES and head.key is None:
            return self._identify_session(head)
        if head.keyed_twice:
            raise two_tokens()
        secret = read_secret(head.key)
        found = self._keyring.find(secret) if secret else None
        if area == CLIENT_API:
            return self._identify_client(secret, found)
        if isinstance(found, ClientToken):
            raise wrong_token()
        if found is None:
            raise unknown_token() if secret else no_token(self._server.base)
        return Caller(actor=found)

    def is_unknown(self, head: Call, area: str) -> bool:
        """Return whether a caller sends a token or a session that is not in memory. Another server may have just made it."""
        of_page = area == PAGES and head.key is None
        secret = self._read_session(head) if of_page else read_secret(head.key) if area else ""
        return bool(secret) and not self._keyring.is_valid(secret)

    def _identify_client(self, secret: str, found: Actor | ClientToken | None) -> Caller:
        """Return the caller with a backend token. Raises ApiError."""
        if found is None:
            raise unknown_token("Send a backend token") if secret.startswith(PERSONAL) else token_required()
        if not isinstance(found, ClientToken) or found.kind not in BACKEND:
            raise wrong_token()
        return Caller(token=found)

    def _identify_session(self, head: Call) -> Caller:
        """Return the user of a session, or a caller without one: the route says whether it needs a user."""
        header, secret = self._server.ways.header, self._read_session(head)
        person = None if header is None else header.read(head)
        actor = self._keyring.find_session(secret, "" if person is None else person.digest) if secret else None
        return Caller(actor, session="" if actor is None else secret, person=person)

    def _read_session(self, head: Call) -> str:
        """Return the secret of the session in the cookie; empty without one."""
        return read_cookie(head.other(COOKIE), SESSION.pick(head.request, self._server.url))

    def check(self, route: Route, call: ApiCall) -> None:
        """Raise ApiError (403) if a route rejects this caller: the wrong type of token, or a missing permission."""
        needed = (route.permission,) if isinstance(route.permission, str) else route.permission
        if route.auth is Auth.CLIENT and call.caller.token is None:
            raise wrong_token()
        if route.auth not in (Auth.ADMIN, Auth.PAGE):
            return
        if route.auth is Auth.PAGE and call.caller.actor is None:
            raise sign_in_needed()
        if call.caller.actor is None:
            raise wrong_token()
        if not any(needed) or has_any_permission(call, needed, call.params.get("projectId")):
            return
        if route.project_of is None or not has_any_permission(call, needed, route.project_of(call)):
            raise forbidden(needed)


def has_any_permission(call: ApiCall, needed: Iterable[str], project: str | None) -> bool:
    """Return whether the caller has one of these permissions in a project and the environment of the path."""
    environment = call.params.get("environment")
    return any(call.actor.may(each, project=project, environment=environment) for each in needed)


def api_area(path: str) -> str:
    """Return the area of a path, one of AREAS; empty for paths without a token."""
    lower = f"{path.lower().rstrip('/')}/"
    return next((area for area in AREAS if lower.startswith(f"{area}/")), "")


class CookieNames(NamedTuple):
    """The names of a cookie. With TLS only the cookie for this host counts: another host of the domain could set the plain one."""

    secure: str
    plain: str

    def pick(self, request: Request, url: str) -> str:
        """Return the name for a request. `url` is the public address of the server."""
        return self.secure if is_secure(request, url) else self.plain


SESSION = CookieNames("__Host-flagsvc", "flagsvc")
"""The names of the cookie with a session. Browsers bind the secure cookie to the host, and send it with TLS only."""


def is_secure(request: Request, url: str) -> bool:
    """Return whether browsers reach the server by TLS: its own, or that of a proxy at its public address `url`."""
    return request.scheme == "https" or url.startswith("https:")


def read_secret(authorization: bytes | None) -> str:
    """Return the secret in an Authorization header, without a `Bearer` prefix in any letter case."""
    return BEARER.sub("", (authorization or b"").decode("latin-1").strip())


NUMBER = Integer()
MAX_ID = 2**31 - 1


def body_project(call: ApiCall) -> str | None:
    """Return the project in the body, to which the described object will belong."""
    named = call.body.get("project") if isinstance(call.body, dict) else None
    return named if isinstance(named, str) and named else None


def feature_project(call: ApiCall) -> str | None:
    name = call.params["featureName"]
    if NUL in name:
        return None
    with call.store.reading() as tx:
        return project_of_feature(tx, name)


def segment_project(call: ApiCall) -> str | None:
    """Return the project of the segment in the path, unless the body names another; for deletions."""
    own = _read_segment_project(call)
    return own if body_project(call) in (None, own) else None


def written_segment_project(call: ApiCall) -> str | None:
    """Return the project of the segment in the path, if the body names the same; else None, which stands for all projects.

    Ours: on the real server, a permission for any project in the body is enough to change any segment.
    """
    own = _read_segment_project(call)
    return own if isinstance(call.body, dict) and call.body.get("project") == own else None


def _read_segment_project(call: ApiCall) -> str | None:
    try:
        number = read_number(call, "id")
    except ShapeError:
        return None
    with call.store.reading() as tx:
        return project_of_segment(tx, number)


def context_field_project(call: ApiCall) -> str | None:
    """Return the project of the context field in the path, if the body names the same.

    Ours: on the real server, a permission for any project in the body is enough.
    """
    named = body_project(call)
    if named is None or NUL in call.params["contextField"]:
        return None
    with call.store.reading() as tx:
        own = project_of_field(tx, call.params["contextField"])
    return own if named == own else None


def read_number(call: ApiCall, name: str) -> int:
    """Return a parameter of the path as an id, at most MAX_ID. Raises ShapeError (400)."""
    number = check(NUMBER, call.params[name], f"/params/{name}")
    return number if isinstance(number, int) and abs(number) < MAX_ID else MAX_ID
