"""Keys and errors as the real server has them, for the dialects below `/api` (dialects: Keys of the proxy). Compiled.

Requests and answers of the frontend API have a form of their own (dialects: Frontend API).
"""

from __future__ import annotations

from typing import Final

import msgspec
from mypy_extensions import mypyc_attr

from flagsvc.engine.context import Context
from flagsvc.engine.fragments import CLOSE, OPEN, PLAIN, AnswerShape
from flagsvc.http.messages import HttpError
from flagsvc.proxy.api.body import LookupBody, read_lenient_lookup
from flagsvc.proxy.api.context_limits import ContextLimits
from flagsvc.proxy.api.query import read_lenient_query
from flagsvc.proxy.api.wire_format import WireFormat

NO_KEY: Final = (
    "This endpoint requires an API token. Please add an authorization header to your request with a valid token"
)
NO_KEY_ELSEWHERE: Final = (
    "This endpoint requires an API token. Please add a header `{}` to your request with a valid token"
)
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

    def fragment(self, plain: bytes, enabled: bool) -> bytes:
        """Return the fragment of a toggle. The end of a plain one is fixed: the end of the variant and the impression flag."""
        at = plain.rindex(IMPRESSION)
        variant, flag = plain[:at], plain[at + len(IMPRESSION) : -1]
        state = STATES[1 if enabled else 0]
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
