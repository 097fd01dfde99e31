"""Who asks, and whether they may: tokens by the part of the API, permissions by the route (import validation 1, steps 2 and 3).

`/api/client` is for backend tokens, everything else below `/api` for users and admin tokens. A token of the other kind is told so
on every path, known or not. There is no `/api/frontend`: every caller is told what answers frontend SDKs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.errors import (
    forbidden,
    no_frontend_api,
    no_token,
    token_required,
    two_tokens,
    unknown_token,
    wrong_token,
)
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.store.access import Keyring
from flagsvc.server.store.actors import Actor, ClientToken

API, ADMIN_API, CLIENT_API, FRONTEND_API = "/api", "/api/admin", "/api/client", "/api/frontend"
BEARER = re.compile(r"^bearer\s+", re.IGNORECASE)
PERSONAL = "user:"
BACKEND = ("client", "backend")


class Caller(NamedTuple):
    """Who asks: a user or an admin token, a backend token, or nobody."""

    actor: Actor | None = None
    token: ClientToken | None = None


NOBODY = Caller()


class Authorization:
    """Lets callers in. `base` is the path that everything is below."""

    def __init__(self, keyring: Keyring, base: str) -> None:
        self._keyring = keyring
        self._base = base

    def caller(self, authorization: bytes | None, path: str, *, twice: bool = False) -> Caller:
        """Return who asks for a path; `twice` tells that the header came in several lines.

        Raises Failure: 400 for that, 401 for no token and an unknown one, 403 for one of the wrong type, 404 for the frontend API.
        """
        part = area(path)
        if not part:
            return NOBODY
        if part == FRONTEND_API:
            raise no_frontend_api()
        if twice:
            raise two_tokens()
        secret = secret_of(authorization)
        found = self._keyring.find(secret) if secret else None
        if part == CLIENT_API:
            return self._client(secret, found)
        if isinstance(found, ClientToken):
            raise wrong_token()
        if found is None:
            raise unknown_token() if secret else no_token(self._base)
        return Caller(actor=found)

    def _client(self, secret: str, found: Actor | ClientToken | None) -> Caller:
        """Return the backend token that asks."""
        if found is None:
            raise unknown_token("Send a backend token") if secret.startswith(PERSONAL) else token_required()
        if not isinstance(found, ClientToken) or found.kind not in BACKEND:
            raise wrong_token()
        return Caller(token=found)

    def check(self, route: Route, call: ApiCall) -> None:
        """Raise Failure (403) when a route is not for this caller: the wrong kind of token, or a permission is missing."""
        needed = (route.permission,) if isinstance(route.permission, str) else route.permission
        if route.auth is Auth.CLIENT and call.known_token is None:
            raise wrong_token()
        if route.auth is not Auth.ADMIN:
            return
        if call.known_actor is None:
            raise wrong_token()
        if not any(needed) or may(call, needed, call.params.get("projectId")):
            return
        if route.project_of is None or not may(call, needed, route.project_of(call)):
            raise forbidden(needed)


def may(call: ApiCall, needed: Iterable[str], project: str | None) -> bool:
    """Return whether the caller has one of some permissions in a project, and the environment that the path names."""
    environment = call.params.get("environment")
    return any(call.actor.may(each, project=project, environment=environment) for each in needed)


def area(path: str) -> str:
    """Return which part of the API a path lies in: CLIENT_API, ADMIN_API, FRONTEND_API, API; empty for what needs no token."""
    lower = f"{path.lower().rstrip('/')}/"
    return next((part for part in (CLIENT_API, ADMIN_API, FRONTEND_API, API) if lower.startswith(f"{part}/")), "")


def secret_of(authorization: bytes | None) -> str:
    """Return the secret in an Authorization header: `Bearer` may stand before it, in any letter case."""
    return BEARER.sub("", (authorization or b"").decode("latin-1").strip())
