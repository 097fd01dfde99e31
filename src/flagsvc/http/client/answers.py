"""The upstream's answers, and the errors that they mean. No I/O.

The contract says what counts as a failure, and which documents are not accepted (behaviour: Failures; Documents that are not
accepted).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Protocol

from flagsvc.core.errors import UpstreamError

KINDS = {401: "unauthorized", 403: "unauthorized", 404: "not-found", 429: "throttled"}
REASONS = {
    "unauthorized": "the upstream refused the token",
    "not-found": "the upstream knows no such address",
    "throttled": "the upstream asked for fewer requests",
    "server": "the upstream failed",
    "unexpected": "the upstream gave an answer that means nothing here",
}
GZIP = 16 + zlib.MAX_WBITS
MOST_MEMBERS = 2000
"""The most gzip members of one answer. Empty members cost time and add no bytes, so no other limit stops them."""


@dataclass(frozen=True)
class Limits:
    """The limits of one exchange.

    They are seconds for one step (connect, a read, a write) and for all steps, and bytes of the decompressed answer.
    """

    step_s: float = 10.0
    total_s: float = 60.0
    max_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True)
class Fetched:
    """The result of a source: the bytes of a document and its ETag. Without `body` the document with that ETag is still current."""

    body: bytes | None = field(repr=False)
    etag: str | None = None


@dataclass(frozen=True)
class Answer:
    """One HTTP answer: status, headers by lower-case name, and the decoded body."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def html(self) -> bool:
        """Whether this is a web page. No endpoint of a flag server's client API answers with one."""
        return self.headers.get("content-type", "").lower().startswith("text/html")

    @property
    def astray(self) -> bool:
        """Whether the address is probably not the API's: not found, or a web page."""
        return self.status == 404 or (self.html and self.status < 400)

    @property
    def worked(self) -> bool:
        """Whether the request reached the API and succeeded."""
        return (200 <= self.status < 300 or self.status == 304) and not self.html


def kind_of(status: int) -> str:
    return KINDS.get(status) or ("server" if 500 <= status <= 599 else "unexpected")


def failure(answer: Answer, shown: str, now: float, hint: str = "", *, reason: str = "") -> UpstreamError:
    """Return the error for an unsuccessful answer.

    `shown` is the address for the message, `now` is in seconds since the epoch, and `hint` says what to try. `reason` says what has
    happened, if it is not what the status usually means.
    """
    if answer.html and answer.status < 400:
        return UpstreamError("document", f"the upstream answered with a web page at `{shown}`", status=answer.status)
    kind = kind_of(answer.status)
    message = f"{reason or REASONS[kind]}: status {answer.status} from `{shown}`{hint}"
    return UpstreamError(kind, message, status=answer.status, retry_after=retry_after(answer.headers.get("retry-after"), now))


def retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds of a Retry-After header (seconds or an HTTP date); None if it is not usable."""
    if value is None:
        return None
    try:
        seconds = float(value) if value.strip().isascii() else math.nan
    except ValueError:
        seconds = seconds_until(value, now)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def seconds_until(date: str, now: float) -> float:
    """Return the seconds from `now` to an HTTP date; NaN if it is not one."""
    try:
        return parsedate_to_datetime(date).timestamp() - now
    except (ValueError, OverflowError):
        return math.nan


def coding_of(headers: Mapping[str, str]) -> str:
    """Return the Content-Encoding of an answer in lower case; empty without one."""
    return headers.get("content-encoding", "").strip().lower()


class Sink(Protocol):
    """What takes the bytes of one answer as they arrive."""

    def feed(self, data: bytes) -> None:
        """Take bytes. An UpstreamError ends the answer."""

    def finish(self) -> bytes:
        """Return what is kept of the whole body. Raises UpstreamError."""


class Body:
    """Collects the bytes of one answer up to a limit. Decompresses gzip piece by piece, so that no small answer becomes huge."""

    def __init__(self, coding: str, limit: int, shown: str) -> None:
        """Take the Content-Encoding, the limit in bytes and the address for messages.

        Raises UpstreamError for a coding that was not requested.
        """
        if coding not in ("", "identity", "gzip", "x-gzip"):
            raise UpstreamError("document", f"`{shown}` answered in the content coding `{coding}`, which was not asked for")
        self._inflate = zlib.decompressobj(GZIP) if coding.endswith("gzip") else None
        # not a list: a chunk of one byte would take sixty
        self._whole = bytearray()
        self._limit = limit
        self._shown = shown
        self._fed = False
        self._members = 1

    def feed(self, data: bytes) -> None:
        """Add bytes. Raises UpstreamError if the limit is passed or the gzip data are wrong."""
        while data:
            self._fed = True
            data = self._keep(data) if self._inflate is None else self._unpack(self._inflate, data)

    def finish(self) -> bytes:
        """Return the whole body. Raises UpstreamError if the gzip data end early."""
        if self._fed and self._inflate is not None and not self._inflate.eof:
            raise UpstreamError("document", f"the gzip stream from `{self._shown}` ended early")
        return bytes(self._whole)

    def _keep(self, data: bytes) -> bytes:
        self._whole += data
        if len(self._whole) > self._limit:
            raise UpstreamError("document", f"the answer of `{self._shown}` is larger than {self._limit} bytes")
        return b""

    def _unpack(self, inflate: zlib._Decompress, data: bytes) -> bytes:
        if inflate.eof:
            self._members += 1
            inflate = self._inflate = zlib.decompressobj(GZIP)
        if self._members > MOST_MEMBERS:
            raise UpstreamError("document", f"the gzip stream from `{self._shown}` has too many members")
        try:
            self._keep(inflate.decompress(data, self._limit - len(self._whole) + 1))
        except zlib.error:
            raise UpstreamError("document", f"the gzip stream from `{self._shown}` is wrong") from None
        return inflate.unused_data
