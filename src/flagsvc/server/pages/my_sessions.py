"""My sessions: where the caller is signed in at the pages, and ending sessions."""

from __future__ import annotations

from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.shared import row_id
from flagsvc.server.pages.page import change, page, see_other
from flagsvc.server.store.resources import sessions
from flagsvc.server.store.resources.personal_tokens import user_of


def show(call: ApiCall) -> ApiAnswer:
    """Return the caller's sessions. Raises CallerError (403) for an admin token."""
    with call.store.reading() as tx:
        found = sessions.list_sessions(tx, user_of(call.actor), call.caller.session)
    return ApiAnswer({"sessions": found})


def end(call: ApiCall) -> ApiAnswer:
    """End one session."""
    with call.store.writing(call.actor, "page") as tx:
        sessions.end_sessions(tx, user_of(call.actor), row_id(call))
    return see_other(call, "sessions", done=tx)


def end_others(call: ApiCall) -> ApiAnswer:
    """End every session but the current one."""
    with call.store.writing(call.actor, "page") as tx:
        sessions.end_sessions(tx, user_of(call.actor), keep=call.caller.session)
    return see_other(call, "sessions", done=tx)


ROUTES = (
    page("/sessions", show, "sessions.html", "The caller's sessions."),
    change("/sessions/end", end_others, "End the other sessions.", stands_for="endSessions"),
    change("/sessions/:id/end", end, "End a session.", stands_for="endSession"),
)
