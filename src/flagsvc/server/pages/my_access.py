"""My tokens, of which a new one's secret is shown once, and my sessions: where the caller is signed in. Both can be ended."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from flagsvc.http.answers import Answer
from flagsvc.server.api.admin.user import CREATE
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import row_id
from flagsvc.server.pages.edits import Look, checked, make
from flagsvc.server.pages.page import change, page, see_other
from flagsvc.server.pages.tokens import LAST_SECOND
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import personal_tokens, sessions
from flagsvc.server.store.resources.personal_tokens import MAX_TOKENS, user_of
from flagsvc.server.store.store import Tx

USUAL_TIME = timedelta(days=90)
"""How long a token works, unless another day is typed."""


def usual_day(tx: Tx) -> str:
    """Return the day (UTC) on which a new token ends, unless another one is typed."""
    return (tx.now + USUAL_TIME).date().isoformat()


def show_page(call: ApiCall, typed: Json | None = None, look: Look | None = None) -> Answer:
    """Return the caller's tokens, with the form of a new token: with what was typed, or empty. Raises CallerError (403)."""
    look = look or Look()
    with call.store.reading() as tx:
        found = personal_tokens.list_tokens(tx, user_of(call.actor))
        form = typed or {"description": "", "expires": usual_day(tx)}
    data = {"tokens": found, "form": form, "most": MAX_TOKENS, "problems": look.problems, "made": None}
    return Answer(data, look.status)


def create(call: ApiCall) -> Answer:
    """Make a token, and show its secret in this answer only."""
    form = {name: call.form.text(name) for name in ("description", "expires")}
    sent = {"description": form["description"], "expiresAt": f"{form['expires']}{LAST_SECOND}"}

    def work(tx: Tx) -> Json:
        return {"made": personal_tokens.create(tx, user_of(call.actor), checked(CREATE, sent))}

    return make(call, work, partial(show_page, call, form))


def remove(call: ApiCall) -> Answer:
    """Delete a token, and with it the sessions that it has opened."""
    with call.store.writing(call.actor, "page") as tx:
        personal_tokens.remove(tx, user_of(call.actor), row_id(call))
    return see_other(call, "my-tokens", done=tx)


TEMPLATE = "my_tokens.html"


def show_sessions(call: ApiCall) -> Answer:
    """Return the caller's sessions. Raises CallerError (403) for an admin token."""
    with call.store.reading() as tx:
        found = sessions.list_sessions(tx, user_of(call.actor), call.caller.session)
    return Answer({"sessions": found})


def end(call: ApiCall) -> Answer:
    with call.store.writing(call.actor, "page") as tx:
        sessions.end_sessions(tx, user_of(call.actor), row_id(call))
    return see_other(call, "sessions", done=tx)


def end_others(call: ApiCall) -> Answer:
    """End every session but the current one."""
    with call.store.writing(call.actor, "page") as tx:
        sessions.end_sessions(tx, user_of(call.actor), keep=call.caller.session)
    return see_other(call, "sessions", done=tx)


ROUTES = (
    page("/my-tokens", show_page, TEMPLATE, "The caller's personal tokens."),
    change("/my-tokens", create, template=TEMPLATE, stands_for="createPat"),
    change("/my-tokens/:id/delete", remove, stands_for="deletePat"),
    page("/sessions", show_sessions, "sessions.html", "The caller's sessions."),
    change("/sessions/end", end_others, stands_for="endSessions"),
    change("/sessions/:id/end", end, stands_for="endSession"),
)
