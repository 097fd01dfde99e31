"""Whether the proxy lives and whether it is ready (specification: GET /proxy/health)."""

from __future__ import annotations

from flagsvc.api.answers import Answers
from flagsvc.api.call import Answer, Call, Handler

ALIVE = b"ok"


class Health(Handler):
    """GET /proxy/health and /proxy/live: `ok`. That the first is 503 until the proxy is ready is a check of the head."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return `ok`."""
        return self.answers.seal(self.answers.html, call, ALIVE)
