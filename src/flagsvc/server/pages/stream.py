"""The event stream of live pages. It names no flag: a page asks for what its viewer may see."""

from __future__ import annotations

from flagsvc.pages.live import HEADERS
from flagsvc.server.api.authorization import read_secret
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.pages.page import raw


def show(call: ApiCall) -> ApiAnswer:
    """Return a stream that ends with the session or the token. Raises HttpError (503) if there are too many.

    All sessions and personal tokens of a user are one viewer, and so is an admin token.
    """
    secret = call.caller.session or read_secret(call.head.key)
    keyring, actor = call.server.keyring, call.actor
    viewer = actor.id if actor.is_user else actor.token
    return ApiAnswer(headers=tuple(HEADERS), parts=call.server.streams.make(lambda: keyring.is_valid(secret), viewer))


ROUTES = (raw("/stream", show, "What has changed, as events.", "text/event-stream"),)
