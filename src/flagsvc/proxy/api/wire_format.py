"""How the requests of a dialect are read and how its answers look (specification: Endpoints; Errors). Compiled."""

from __future__ import annotations

from typing import Final

import msgspec
from mypy_extensions import mypyc_attr

from flagsvc.engine.context import Context
from flagsvc.engine.fragments import PLAIN, AnswerShape
from flagsvc.http.messages import HttpError
from flagsvc.proxy.api.body import LookupBody, read_lookup
from flagsvc.proxy.api.context_limits import ContextLimits
from flagsvc.proxy.api.query import read_query

TEXT_STATUSES: Final = (401, 501, 503)
"""Errors whose body is a text, as the reference has them; every other error is JSON."""


@mypyc_attr(allow_interpreted_subclasses=True)
class WireFormat:
    """The wire format of `/proxy`. Another dialect is a subclass that overrides what differs.

    `cache_control` is the value of Cache-Control in evaluation answers; `personal_cache_control` in those that may depend on the
    caller's address. `text_statuses` are the statuses of errors whose body is a text. `shape` is the shape of evaluation answers.

    With `reads_bearer`, a key may stand behind the word `Bearer`. With `tells_key_types`, a key for other routes gets a 403. With
    `needs_content_type`, a POST without Content-Type gets a 415. With `merges_slashes`, a doubled slash in a path counts as one.
    With `compares_posts`, If-None-Match of a POST is read.
    """

    reads_bearer: bool = False
    tells_key_types: bool = False
    needs_content_type: bool = False
    merges_slashes: bool = False
    compares_posts: bool = False

    def __init__(
        self,
        cache_control: bytes = b"public, max-age=2",
        personal_cache_control: bytes = b"private, max-age=2",
        text_statuses: tuple[int, ...] = TEXT_STATUSES,
        shape: AnswerShape = PLAIN,
    ) -> None:
        self.cache_control = cache_control
        self.personal_cache_control = personal_cache_control
        self.text_statuses = text_statuses
        self.shape = shape

    def read_query(self, query: bytes, limits: ContextLimits) -> Context:
        """Return the context in a query string. Raises HttpError (400)."""
        context = read_query(query, limits.time)
        if len(query) > limits.value or len(context.properties) > limits.properties:
            limits.check(context, "/query", "/query")
        return context

    def read_body(self, value: object, limits: ContextLimits) -> LookupBody:
        """Return the context and the toggles in a JSON body. Raises HttpError (400)."""
        asked = read_lookup(value, limits.toggles, limits.time)
        limits.check(asked.context, "/body/context", "/body/context/properties")
        return asked

    def error_body(self, refused: HttpError, key_header: str) -> bytes:
        """Return the body of an error: a text for `text_statuses`, else JSON. `key_header` is where keys are looked for."""
        if refused.status in self.text_statuses:
            return refused.message.encode()
        content: dict[str, object] = {"error": refused.message}
        if refused.problems:
            content["validation"] = [
                {"instancePath": pointer, "message": message} for pointer, message in refused.problems
            ]
        return msgspec.json.encode(content)
