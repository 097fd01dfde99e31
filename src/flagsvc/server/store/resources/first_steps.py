"""What is done of the first steps with a server: a flag, an API token, an application that was seen."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import exists, select

from flagsvc.server.store.resources.api_tokens import TITLES
from flagsvc.server.store.schema import applications, features, tokens
from flagsvc.server.store.store import Tx


class FirstSteps(NamedTuple):
    """`flag` is the newest flag that is not archived; None without one."""

    flag: str | None
    has_token: bool
    has_application: bool


NEWEST = select(features.c.name).where(features.c.archived_at.is_(None)).order_by(features.c.position.desc()).limit(1)
QUERY = select(NEWEST.scalar_subquery(), exists().where(tokens.c.kind.in_(TITLES)), exists().select_from(applications))


def read_first_steps(tx: Tx) -> FirstSteps:
    """Return what is done, by one query that reads at most a row of each table."""
    return FirstSteps(*tx.db.execute(QUERY).one())
