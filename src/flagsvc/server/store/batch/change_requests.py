"""Where changes must be requested first, nobody changes a strategy by an import (import validation 6.4)."""

from __future__ import annotations

from sqlalchemy import select

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.refusals import Refusal
from flagsvc.server.store.schema import state
from flagsvc.server.store.store import Tx

KEY = "changeRequests"
"""The row of `state` with the places, each with `project` and `environment`."""
SKIP = "SKIP_CHANGE_REQUEST"
NEEDED = "You don't have the required permissions to perform this operation. To perform this action, you need {} permission{}"


def check_no_request_needed(tx: Tx, actor: Actor | None, project: str, environment: str | None = None) -> None:
    """Raise Refusal (403) where changes must be requested and the actor may not go around that; None never may.

    Without an environment it is about any of the project's.
    """
    places = tx.db.execute(select(state.c.value).where(state.c.key == KEY)).scalar() or []
    asked = any(
        each["project"] == project and (environment is None or each["environment"] == environment) for each in places
    )
    if asked and (actor is None or not actor.may(SKIP, project, environment)):
        raise lacking([SKIP])


def lacking(permissions: list[str], environment: str | None = None) -> Refusal:
    """Return the 403 for permissions that are missing; of several it reads as if one of them would do."""
    names = ", ".join(f'"{name}"' for name in permissions)
    end = "." if environment is None else f' in the "{environment}" environment.'
    if len(permissions) == 1:
        return Refusal("PermissionError", NEEDED.format(f"the {names}", end))
    start = NEEDED.partition(" need ")[0]
    return Refusal("PermissionError", f"{start} need one of the following permissions: {names}{end}")
