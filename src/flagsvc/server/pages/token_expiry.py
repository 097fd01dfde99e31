"""An API token: what it reads, and the form of the day on which it expires."""

from __future__ import annotations

from flagsvc.server.api.admin.api_tokens import PERMISSIONS, UPDATE
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.pages.attempts import attempt
from flagsvc.server.pages.edits import Look, checked, differences, digest_of, require_unchanged
from flagsvc.server.pages.page import change, page
from flagsvc.server.pages.tokens import LAST_SECOND, find_token, has_any, readable, without_secret
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import api_tokens, projects
from flagsvc.server.store.store import Tx

WRITE = PERMISSIONS["UPDATE"]
PARTS = {"expires": "Expires at the end of"}
DAY = len("2030-01-31")


def show(call: ApiCall) -> ApiAnswer:
    """Return a token that the caller may read. Raises CallerError (404)."""
    return show_page(call, Look())


def show_page(call: ApiCall, look: Look, typed: Json | None = None) -> ApiAnswer:
    """Return the page of a token: with what was typed, or with what is stored. Raises CallerError (404)."""
    with call.store.reading() as tx:
        names = [each["id"] for each in projects.list_names(tx)]
        stored = find_token(call, readable(tx, call.actor, names))
    shown = shown_of(stored)
    data = {
        "token": without_secret(stored),
        "form": typed or shown,
        "base": digest_of(stored["expiresAt"]),
        "changed": look.conflict,
        "conflict_rows": differences(PARTS, shown, typed or shown),
        "may": has_any(call.actor, "UPDATE"),
        "permission": WRITE[1],
        "problems": look.problems,
    }
    return ApiAnswer(data, look.status)


def shown_of(stored: Json) -> Json:
    """Return what the form shows of a stored token: the day (UTC) on which it expires, empty for never."""
    return {"expires": (stored["expiresAt"] or "")[:DAY]}


def update(call: ApiCall) -> ApiAnswer:
    """Change when a token expires, unless someone else changed it since it was shown. The same day leaves the time as it is."""
    typed = {"expires": call.form.text("expires")}

    def work(tx: Tx) -> None:
        stored = find_token(call, api_tokens.list_tokens(tx, call.actor))
        require_unchanged(stored["expiresAt"], call.form.text("base"))
        body = checked(UPDATE, {"expiresAt": f"{typed['expires']}{LAST_SECOND}"})
        if typed != shown_of(stored):
            api_tokens.set_expiry(tx, stored["secret"], body["expiresAt"])

    return attempt(call, work, lambda look: show_page(call, look, typed), "tokens", call.params["id"])


ONE = "token.html"
OWN = "/tokens/:id"

ROUTES = (
    page(OWN, show, ONE, "An API token."),
    change(
        OWN, update, "Change when an API token expires.", template=ONE, permission=WRITE, stands_for="updateApiToken"
    ),
)
