"""A change that a form asks for: in one transaction, and the form again with the reason if it is refused."""

from __future__ import annotations

from collections.abc import Callable

from flagsvc.http.shapes import ShapeError
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.pages.edits import CONFLICT, ChangedMeanwhileError, Look, reasons_of
from flagsvc.server.pages.page import see_other
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.store import Tx


def changed_meanwhile(*problems: str, by_whom: bool = True) -> Look:
    """Return the look of a page where nothing was done, because someone else changed the same; `by_whom` tells who it was."""
    return Look(CONFLICT, list(problems), by_whom=by_whom)


def attempt(
    call: ApiCall,
    work: Callable[[Tx], object],
    again: Callable[[Look], ApiAnswer],
    *goal: str,
    changed: Look | None = None,
) -> ApiAnswer:
    """Do a change in one transaction, and go to the page whose path has the segments `goal`.

    `again` shows the form of a refused change: with the reasons, and after another person's change with both versions. A form
    that has nothing typed has `changed_meanwhile` as `changed` instead.
    """
    try:
        with call.store.writing(call.actor, "page") as tx:
            work(tx)
    except ChangedMeanwhileError:
        return again(changed or Look(CONFLICT, conflict=True))
    except (CallerError, ShapeError) as error:
        return again(Look(*reasons_of(error)))
    return see_other(call, *goal, done=tx)
