"""How the requests of a dialect are read and how its answers look. Compiled.

`/proxy` has the form of the reference (specification: Endpoints; Errors). The dialects below `/api` have the keys and errors of the
real server (dialects: Keys of the proxy). The frontend API has requests and answers of its own (dialects: Frontend API).
"""

from __future__ import annotations

from typing import Final

import msgspec
from mypy_extensions import mypyc_attr

from flagsvc.engine.context import Context
from flagsvc.engine.features import Toggle, ToggleOutcome
from flagsvc.engine.fragments import CLOSE, OPEN, PLAIN, AnswerShape
from flagsvc.http.messages import HttpError
from flagsvc.proxy.api.body import LookupBody, read_lenient_lookup, read_lookup
from flagsvc.proxy.api.query import ContextLimits, read_lenient_query, read_query

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
            content["validation"] = [{"instancePath": pointer, "message": message} for pointer, message in refused.problems]
        return msgspec.json.encode(content)


NO_KEY: Final = "This endpoint requires an API token. Please add an authorization header to your request with a valid token"
NO_KEY_ELSEWHERE: Final = "This endpoint requires an API token. Please add a header `{}` to your request with a valid token"
"""The message if an option moves the key to another header, whose name fills the gap."""
AUTHORIZATION: Final = "authorization"
BAD_DATA: Final = "BadDataError"


@mypyc_attr(allow_interpreted_subclasses=True)
class RealServerFormat(WireFormat):
    """A wire format with the keys and errors of the real server."""

    def __init__(self, shape: AnswerShape = PLAIN) -> None:
        super().__init__(b"no-cache", b"private, no-cache", (), shape)
        self.reads_bearer = True
        self.tells_key_types = True
        self.needs_content_type = True
        self.merges_slashes = True

    def error_body(self, refused: HttpError, key_header: str) -> bytes:
        """Return the body of an error: its message, and for a 400 what is wrong where."""
        content: dict[str, object] = {"message": no_key(key_header) if refused.status == 401 else refused.message}
        if refused.problems:
            content["name"] = BAD_DATA
            content["details"] = [{"message": message, "path": pointer} for pointer, message in refused.problems]
        return msgspec.json.encode(content)


def no_key(key_header: str) -> str:
    """Return the message for a missing or wrong key: the real server's, with the name of another header if keys are in that."""
    return NO_KEY if key_header == AUTHORIZATION else NO_KEY_ELSEWHERE.format(key_header)


IMPRESSION: Final = b'},"impressionData":'
STATES: Final = (b',"feature_enabled":false,"featureEnabled":false', b',"feature_enabled":true,"featureEnabled":true')


class FrontendShape(AnswerShape):
    """Toggles whose variant repeats the toggle's state, and that have the impression flag under both of its names."""

    def __init__(self, name: bytes = b"f", opening: bytes = OPEN, closing: bytes = CLOSE) -> None:
        super().__init__(name, opening, closing)

    def fragment(self, outcome: ToggleOutcome, toggle: Toggle | None) -> bytes:
        """Return the fragment of a toggle. The end of a plain one is fixed: the end of the variant and the impression flag."""
        plain = outcome.fragment
        at = plain.rindex(IMPRESSION)
        variant, flag = plain[:at], plain[at + len(IMPRESSION) : -1]
        state = STATES[1 if outcome.enabled else 0]
        if not variant.endswith(state):
            variant += state
        return b"".join([variant, IMPRESSION, flag, b',"impression_data":', flag, b"}"])


class FrontendFormat(RealServerFormat):
    """The wire format of the frontend API."""

    def __init__(self) -> None:
        super().__init__(FrontendShape())
        self.compares_posts = True

    def read_query(self, query: bytes, limits: ContextLimits) -> Context:
        """Return the context in a query string; what cannot be read is ignored. Raises HttpError (400) beyond the limits."""
        context = read_lenient_query(query, limits.time)
        if len(query) > limits.value or len(context.properties) > limits.properties:
            limits.check(context, "/query", "/query")
        return context

    def read_body(self, value: object, limits: ContextLimits) -> LookupBody:
        """Return the context and the toggles in a JSON body. Raises HttpError (400)."""
        asked = read_lenient_lookup(value, limits.toggles, limits.time)
        limits.check(asked.context, "/body/context", "/body/context/properties")
        return asked
