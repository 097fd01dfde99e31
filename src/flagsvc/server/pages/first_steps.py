"""First steps: a card on the list of flags that leads from a new server to an application that is seen, until all of it is done."""

from __future__ import annotations

from flagsvc.http.answers import Answer
from flagsvc.http.call import COOKIE
from flagsvc.pages.headers import keep_choice, read_cookie
from flagsvc.pages.site import redirect
from flagsvc.pages.templates import segment
from flagsvc.server.api.authorization import PAGES
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages.page import change
from flagsvc.server.pages.sign_in import START
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources.first_steps import read_first_steps
from flagsvc.server.store.store import Tx

COOKIE_NAME = "flagsvc-first-steps"
CREATE = "CREATE_FEATURE"


def list_steps(call: ApiCall, tx: Tx) -> list[Json]:
    """Return the steps, each with whether it is done, and the path below the pages where it is done, empty for none.

    The list is empty when all steps are done, for somebody who has hidden the card, and for somebody who may create no flag. Every
    role that may create flags may create tokens, too.
    """
    if read_cookie(call.head.other(COOKIE), COOKIE_NAME):
        return []
    found = read_first_steps(tx)
    done = (found.flag is not None, found.has_token, found.has_application)
    if all(done) or not call.actor.may_ever(CREATE):
        return []
    paths = ("/new-flag", "/tokens/new", "" if found.flag is None else f"/flags/{segment(found.flag)}")
    return [{"done": is_done, "path": path} for is_done, path in zip(done, paths, strict=True)]


def hide(call: ApiCall) -> Answer:
    """Hide the card from this browser."""
    pages = f"{call.root}{PAGES}"
    return redirect(f"{pages}{START}", keep_choice(COOKIE_NAME, "hidden", pages))


ROUTES = (change("/first-steps/hide", hide, reads=True, summary="Hide the first steps."),)
