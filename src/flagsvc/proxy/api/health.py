"""Liveness and readiness (specification: GET /proxy/health; behaviour: Liveness and readiness)."""

from __future__ import annotations

from flagsvc.http.call import Answer, Call, Handler
from flagsvc.http.messages import HttpError
from flagsvc.proxy.api.answers import Answers
from flagsvc.proxy.api.readiness import Readiness

ALIVE = b"ok"
READY = "ready"


class Health(Handler):
    """GET /proxy/health and liveness: `ok`. The check of the head answers 503 at /proxy/health while there is no configuration."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return `ok`."""
        return self.answers.respond(self.answers.html, call, ALIVE)


class Ready(Handler):
    """Readiness: whether a load balancer should send callers to this process."""

    def __init__(self, readiness: Readiness, answers: Answers) -> None:
        self.readiness = readiness
        self.answers = answers

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return `ready`. Raises HttpError (503) with the reason as one word."""
        objection = self.readiness.find_objection()
        if objection:
            raise HttpError(503, objection, [])
        return self.answers.respond_text(call, READY)
