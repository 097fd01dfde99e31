"""Who asks at the frontend API, and what a caller learns when the database is away."""

from __future__ import annotations

from flagsvc.core.errors import DatabaseError, UnwritableError
from flagsvc.http.messages import HttpError
from flagsvc.proxy.api.service import Service
from flagsvc.server.api.errors import RETRY_S, is_away
from flagsvc.server.store.actors import ClientToken


class FrontendCaller:
    """The caller of one request: its token, and the service that answers.

    `token` is None for a preflight. `service` is None until what the token opens is in memory.
    """

    def __init__(self, token: ClientToken | None, service: Service | None) -> None:
        self.token = token
        self.service = service


def unavailable(error: DatabaseError) -> Exception:
    """Return the 503 for a database that is away, or takes no changes; any other error of it as it is."""
    if isinstance(error, UnwritableError):
        return HttpError(503, str(error), [], "", RETRY_S)
    return HttpError(503, "the database is away", [], "", RETRY_S) if is_away(error) else error
