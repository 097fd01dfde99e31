"""`GET /`: the name of the program and its endpoints, as text or JSON by `Accept` (ours: the reference answers 404).

It needs no key and no configuration. It names only endpoints that anybody can find by asking.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from flagsvc.http.call import Answer, Call, Handler
from flagsvc.http.first_page import Place, as_json, as_text, prefers_json
from flagsvc.http.http_errors import unknown_path
from flagsvc.http.messages import JSON, TEXT
from flagsvc.proxy.api.answers import ASK_AGAIN, Answers, ResponseHeaders
from flagsvc.proxy.api.route import Auth, ProxyRoute
from flagsvc.proxy.api.settings import ServiceSettings

NAME = "flagsvc proxy"
ABOUT = "evaluates feature flags for applications"
KEYS = {
    Auth.NONE: "",
    Auth.CLIENT: "client key",
    Auth.SERVER: "server-side token",
    Auth.EITHER: "client key or server-side token",
}
VARY = (b"Accept", b"Accept-Encoding")


class FirstPage(Handler):
    """Answers callers who know only the address. One with a key is an SDK with a wrong URL: it gets a 404 with `hint`."""

    def __init__(self, settings: ServiceSettings, rows: Sequence[ProxyRoute], answers: Answers, hint: str) -> None:
        self.hint = hint
        self.answers = answers
        self.base = settings.base_path
        self.rows = [row for row in rows if row.listed and row.path != "/" and told(row, settings)]
        self.text = ResponseHeaders(answers.cors, TEXT, ASK_AGAIN, VARY, [])
        self.json = ResponseHeaders(answers.cors, JSON, ASK_AGAIN, VARY, [])

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the endpoints with the paths that the caller can use. Raises HttpError (404) for an SDK."""
        if call.key is not None:
            raise unknown_path(call.request.path, self.hint)
        root = quote(call.request.root)
        found = [Place(row.method, root + row.place(self.base), row.summary, KEYS[row.auth]) for row in self.rows]
        if prefers_json(call.accept):
            return self.answers.respond(self.json, call, msgspec.json.encode(as_json(NAME, ABOUT, found)))
        return self.answers.respond(self.text, call, as_text(NAME, ABOUT, found).encode())


def told(row: ProxyRoute, settings: ServiceSettings) -> bool:
    """Return whether the first page lists a row: it is on, and not only key holders may know that."""
    return row.on(settings) and (row.condition is None or row.auth is Auth.NONE)
