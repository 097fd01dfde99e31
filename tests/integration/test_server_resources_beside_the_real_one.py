"""Segments, context fields, strategy types, tags, links, users, tokens, webhooks: the same calls to ours and the real server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import admin_call_rows_context
import admin_call_rows_segments
import admin_call_rows_tags
import admin_call_rows_users
import pytest

from support.databases import KINDS
from support.processes import Answer
from support.server_pair import Recorded, Step, our_twin, play, real_twin

TABLES = (
    admin_call_rows_segments.TABLES | admin_call_rows_context.TABLES | admin_call_rows_tags.TABLES | admin_call_rows_users.TABLES
)

IGNORED = ("createdAt",)
"""Members that no two servers have alike."""
OWN_WORDS = ("description", "displayName")
"""Members of built-in strategy types that each server says in its own words."""
OF_USERS = ("id", "imageUrl", "inviteLink")
"""Members of users that each server has for itself: its number, a picture, a link to set a password."""
OF_TOKENS = ("secret",)
"""Members of tokens that each server has for itself: the secret, which ours masks in lists."""
NEWER = '"SEMVER_GTE", "SEMVER_LTE", '
"""Operators of version 8.2.0, which ours follows, that 7.5.1 does not name."""
OF_FEATURES = ("environments", "collaborators")
"""Members of features that the two states do not have alike."""
OF_LINKS = ("id",)
"""Members of links that each server has for itself."""
LINK_ID = re.compile(r"(?<=No item with id )(?:[0-9a-f-]{36}|[0-9A-Z]{26})")
OF_WEBHOOKS = ("deliveries", "updatedAt")
"""Members of webhooks that only ours has."""
OWN_OF = {"accountType": OF_USERS, "tokenName": OF_TOKENS, "collaborators": OF_FEATURES, "url": OF_LINKS, "provider": OF_WEBHOOKS}
"""A member that only one kind of objects has → the members that are not compared there."""
UNORDERED = ("tags", "tagTypes", "segments", "users")
IDENTITY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

RECORDED_ALIKE = ("people", "users", "tokens of a project", "webhooks")
"""Tables whose changes both servers record alike: the same types, projects and environments in the same order."""


class Played(NamedTuple):
    """What a table of calls came to: the answers, and what was recorded."""

    answers: list[Answer]
    recorded: list[Recorded]


Play = Callable[[str], Played]


@pytest.fixture(scope="module")
def real() -> Iterator[Play]:
    """Return what a table of calls came to on the real server, in the state. It is called once."""
    known: dict[str, Played] = {}
    with real_twin() as twin:

        def played(table: str) -> Played:
            if table not in known:
                twin.reset()
                known[table] = Played(play(twin, TABLES[table]), twin.recorded())
            return known[table]

        yield played


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table", TABLES)
def test_each_call_is_answered_alike(real: Play, new_database: Callable[[str], str], table: str, kind: str) -> None:
    """Status and body are the real server's, except for the named differences."""
    theirs, recorded = real(table)
    with our_twin(new_database(kind)) as twin:
        ours = play(twin, TABLES[table])
        if table in RECORDED_ALIKE:
            assert twin.recorded() == recorded
    different = [
        problem for step, our, their in zip(TABLES[table], ours, theirs, strict=True) if (problem := difference(step, our, their))
    ]
    assert not different, "\n".join(different)


def difference(step: Step, ours: Answer, theirs: Answer) -> str:
    """Return how our answer to a step differs from the expected one; empty if it does not."""
    told = f"{step.method} {step.path} {step.body} ({step.who})\n  ours   {shown(ours)}\n  theirs {shown(theirs)}"
    if step.ours is None:
        return "" if (ours.status, plain(ours)) == (theirs.status, plain(theirs)) else told
    named = ours.status == step.ours.status and step.ours.message in ours.body.decode().replace('\\"', '"')
    return "" if named and theirs.status == step.ours.real else f"{told}\n  named  {step.ours}"


def shown(answer: Answer) -> str:
    """Return an answer for people."""
    return f"{answer.status} {answer.body.decode()[:900]}"


def plain(answer: Answer) -> Any:
    """Return the body of an answer as it is compared."""
    return comparable(answer.json()) if answer.body else None


def comparable(value: Any) -> Any:
    """Return a value without what may differ: moments, ids of errors, own words, the order in which a database has its rows."""
    if isinstance(value, dict):
        left = IGNORED + own_members(value)
        kept = {key: comparable(each) for key, each in value.items() if key not in left and not is_identity(key, each)}
        if value.get("editable") is False:
            kept["parameters"] = [{**each, "description": ""} for each in kept["parameters"]]
        return kept | {name: in_order(kept[name]) for name in UNORDERED if name in kept}
    if isinstance(value, list):
        return [comparable(each) for each in value]
    return LINK_ID.sub("ID", value.replace(NEWER, "")) if isinstance(value, str) else value


def own_members(value: dict[str, Any]) -> tuple[str, ...]:
    """Return the members of an object that each server has for itself."""
    words = value.get("editable") is False or value.get("type") == "root"
    found = OWN_WORDS if words else ()
    return sum((members for mark, members in OWN_OF.items() if mark in value), found)


def is_identity(key: str, value: Any) -> bool:
    """Return whether a member is the random id of an error."""
    return key == "id" and isinstance(value, str) and IDENTITY.fullmatch(value) is not None and not value.startswith("0000000")


def in_order(items: Sequence[Any]) -> list[Any]:
    """Return items in an order of their own."""
    return sorted(items, key=repr)
