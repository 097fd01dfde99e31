"""A change that a form asks for: in one transaction, and the form again with the reason if it is refused."""

from __future__ import annotations

from collections.abc import Callable

from flagsvc.http.shapes import ShapeError
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.pages.edits import CONFLICT, ChangedMeanwhileError, Look, reasons_of
from flagsvc.server.pages.page import see_other
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.store import Tx


def attempt(
    call: ApiCall, work: Callable[[Tx], None], again: Callable[[Look], ApiAnswer], *goal: str, changed: str = ""
) -> ApiAnswer:
    """Do a change in one transaction, and go to the page whose path has the segments `goal`.

    `again` shows the form of a refused change: with the reasons, and after another person's change with both versions. A form
    that has nothing typed says `changed` instead.
    """
    try:
        with call.store.writing(call.actor, "page") as tx:
            work(tx)
    except ChangedMeanwhileError:
        return again(Look(CONFLICT, [changed]) if changed else Look(CONFLICT, conflict=True))
    except (CallerError, ShapeError) as error:
        return again(Look(*reasons_of(error)))
    return see_other(call, *goal, done=tx)
