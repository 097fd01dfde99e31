"""Where changes need a change request, an import must not change strategies (import validation 6.4)."""

from __future__ import annotations

from sqlalchemy import select

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.errors import permission_refusal
from flagsvc.server.store.schema import state
from flagsvc.server.store.store import Tx

STATE_KEY = "changeRequests"
"""The key in `state` of the list of places that need change requests, each with `project` and `environment`."""
SKIP_PERMISSION = "SKIP_CHANGE_REQUEST"


def check_change_request_not_required(
    tx: Tx, actor: Actor | None, project: str, environment: str | None = None
) -> None:
    """Raise CallerError (403) if changes need a change request and the actor may not skip it; `None` never may.

    Without an environment, any environment of the project counts.
    """
    places = tx.db.execute(select(state.c.value).where(state.c.key == STATE_KEY)).scalar() or []
    required = any(
        each["project"] == project and (environment is None or each["environment"] == environment) for each in places
    )
    if required and (actor is None or not actor.may(SKIP_PERMISSION, project, environment)):
        raise permission_refusal([SKIP_PERMISSION])
