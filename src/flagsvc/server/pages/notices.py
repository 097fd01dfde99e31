"""What a page says first: what its user just did, with a button that undoes it."""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.pages.templates import Notice, segment
from flagsvc.server.api.call import ApiCall
from flagsvc.server.store.event_kinds import sentence_of
from flagsvc.server.store.resources.environments import list_protected
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.subjects import Change, find_action
from flagsvc.server.store.undo.undo import find_obstacle

QUERY = "undo"
"""The parameter of an address that has the id of what was just done."""
NOTHING = "nothing"
"""The id where nothing was different."""
UNCHANGED = Notice(("Nothing was different, so nothing is changed.",))
SHOWN = 3
"""The most sentences of a notice."""
YOU = "You"
SWITCHING = ("feature-archived", "feature-revived")
"""The types whose undo switches a flag on or off in all environments, also in protected ones."""


def id_of(tx: Tx) -> str:
    """Return the id of what a transaction did."""
    return tx.action if tx.pending_events else NOTHING


def kept_notice(call: ApiCall) -> str:
    """Return the id in the address, to keep its notice where a page leads to another one."""
    return call.first_value(QUERY) or ""


def find_notice(call: ApiCall, pages: str, back: str) -> Notice | None:
    """Return what the address says was done, if this user did it; else None. `pages` is the path of the pages."""
    action = call.first_value(QUERY)
    if not action or call.caller.actor is None:
        return None
    if action == NOTHING:
        return UNCHANGED
    with call.store.reading() as tx:
        changes = find_action(tx, action)
        if not changes or any(each.by_id != call.actor.id for each in changes):
            return None
        obstacle = find_obstacle(tx, call.actor, changes)
        protected = list_protected(tx)
    return Notice(
        tell(changes),
        undo=f"{pages}/history/actions/{segment(action)}/undo",
        obstacle="" if obstacle is None else obstacle.reason,
        asks=any(each.environment in protected or (protected and each.type in SWITCHING) for each in changes),
        back=back,
    )


def tell(changes: Sequence[Change]) -> tuple[str, ...]:
    """Return what the user did, as sentences."""
    shown = [sentence_of(each, YOU) for each in changes[:SHOWN]]
    more = len(changes) - SHOWN
    rest = [f"And {more} more change{'' if more == 1 else 's'}."] if more > 0 else []
    return (*(f"{each}." for each in shown), *rest)
