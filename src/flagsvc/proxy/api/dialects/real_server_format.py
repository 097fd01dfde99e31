"""Keys and errors as the real server has them, for the dialects below `/api` (dialects: Keys of the proxy). Compiled."""

from __future__ import annotations

from typing import Final

import msgspec
from mypy_extensions import mypyc_attr

from flagsvc.engine.fragments import PLAIN, AnswerShape
from flagsvc.http.messages import HttpError
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
