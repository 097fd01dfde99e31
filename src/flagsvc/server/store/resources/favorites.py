"""The favorites of users, as on the real server's `…/features/:featureName/favorites` (dialects: Favorites)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, delete, select

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.resources.features import require
from flagsvc.server.store.schema import favorites, features
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import upsert


def user_of(actor: Actor) -> int:
    """Return the id of the user who calls. Raises CallerError (403) for an admin token."""
    if not actor.is_user:
        raise CallerError("ForbiddenError", "favorites belong to a user, and an admin token is none", status=403)
    return actor.id


def add(tx: Tx, actor: Actor, project: str, feature: str) -> None:
    """Make a feature a favorite of the user who calls. Raises CallerError (403, 404)."""
    require(tx, project, feature)
    upsert(tx, favorites, [{"user_id": user_of(actor), "feature": feature, "created_at": tx.now}], [])


def remove(tx: Tx, actor: Actor, project: str, feature: str) -> None:
    """Make a feature no favorite of the user who calls. Raises CallerError (403, 404)."""
    require(tx, project, feature)
    tx.db.execute(delete(favorites).where(favorites.c.user_id == user_of(actor), favorites.c.feature == feature))


def is_favorite(user: int) -> ColumnElement[bool]:
    """Return the condition that a feature is a favorite of a user."""
    return features.c.name.in_(select(favorites.c.feature).where(favorites.c.user_id == user))


def names_of(tx: Tx, actor: Actor) -> set[str]:
    """Return the names of the favorites of a caller. An admin token has none."""
    if not actor.is_user:
        return set()
    return set(tx.db.execute(select(favorites.c.feature).where(favorites.c.user_id == actor.id)).scalars())


def mark(tx: Tx, actor: Actor, found: Sequence[Json]) -> Sequence[Json]:
    """Return features with `favorite`: whether each is a favorite of the caller."""
    names = names_of(tx, actor)
    for each in found:
        each["favorite"] = each["name"] in names
    return found
