"""The routes of the OpenAPI document and of its page (specification: GET /docs/openapi; behaviour: Documentation page)."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import msgspec

from flagsvc.http.call import Answer, Call, FunctionHandler, Handler
from flagsvc.http.docs_page import SAFE, TYPES, contents, page
from flagsvc.http.messages import HTML, JSON
from flagsvc.proxy.api.answers import ASK_AGAIN, Answers
from flagsvc.proxy.api.openapi import document
from flagsvc.proxy.api.settings import ServiceSettings

TITLE = "flagsvc proxy: endpoints"


class OpenApi(Handler):
    """GET /docs/openapi.json."""

    def __init__(self, settings: ServiceSettings, answers: Answers) -> None:
        self.settings = settings
        self.answers = answers
        self.headers = answers.headers(JSON, ASK_AGAIN)
        self.made: tuple[bytes, bytes] = (b"", b"")

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the document for the path where the application is mounted. The last document is kept."""
        root = call.request.root
        if not self.made[1] or self.made[0] != root:
            self.made = (root, msgspec.json.encode(document(self.settings, quote(root))))
        return self.answers.respond(self.headers, call, self.made[1])


def make_handlers(settings: ServiceSettings, answers: Answers) -> dict[str, Handler]:
    """Return the handlers of the document, of its page and of the files that the page loads, by name."""
    html = answers.headers(HTML, ASK_AGAIN, SAFE)

    def make_file(name: str, content: bytes) -> Handler:
        headers = answers.headers(TYPES[Path(name).suffix], ASK_AGAIN, SAFE)
        return FunctionHandler(lambda call, _: answers.respond(headers, call, content))

    return {
        "openapi": OpenApi(settings, answers),
        "page": FunctionHandler(lambda call, _: answers.respond(html, call, page(TITLE, call.request.path))),
        **{name: make_file(name, content) for name, content in contents().items()},
    }
