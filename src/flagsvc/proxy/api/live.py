"""The JavaScript module that lets SDKs in pages follow the event stream (dialects: Event streams)."""

from __future__ import annotations

from importlib.resources import files

from flagsvc.http.call import Answer, Call, Handler
from flagsvc.proxy.api.answers import Answers

SCRIPT = b"text/javascript; charset=utf-8"
KEPT = b"public, max-age=3600"
"""Any cache keeps the module for an hour. A browser may get another version than the proxy has: both know only events and ids."""
SAFE = [(b"x-content-type-options", b"nosniff")]


def read_module() -> bytes:
    """Return the text of the module."""
    return files("flagsvc.proxy").joinpath("static", "live.js").read_bytes()


class LiveModule(Handler):
    """GET live.js, without a key."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.headers = answers.headers(SCRIPT, KEPT, SAFE)
        self.body = read_module()

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the module, or the 304 if the caller has it."""
        return self.answers.respond(self.headers, call, self.body)
