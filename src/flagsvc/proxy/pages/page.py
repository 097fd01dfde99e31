"""A page as a row, a request for one, and its answer: HTML or, at the same address with `.json`, its data."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote

from flagsvc.http.call import Call
from flagsvc.http.compression import Negotiator, gzip
from flagsvc.http.messages import HTML, JSON, Headers, HttpError, Response
from flagsvc.pages.forms import Form
from flagsvc.pages.headers import FILE_HEADERS, PAGE_HEADERS
from flagsvc.pages.templates import DATA_SUFFIX, Frame, Section, StaticFile, StaticFiles, Templates
from flagsvc.proxy.pages.scene import Scene, ShownEnvironment

PAGES: Final = "/ui"
FILES: Final = StaticFiles()
TEMPLATES: Final = Templates(__package__, FILES.address)
SECTIONS: Final = (
    Section("Status", "/status"),
    Section("Flags", "/flags"),
    Section("Try", "/try"),
    Section("Traffic", "/traffic"),
    Section("Changes", "/changes"),
    Section("Config", "/config"),
)
SEE_OTHER: Final = 303
FIRST: Final = "/status"
"""The first page."""

VARIES: Final = (b"vary", b"Accept-Encoding")
HTML_HEADERS: Final[Headers] = [*PAGE_HEADERS, VARIES, (b"content-type", HTML)]
JSON_HEADERS: Final[Headers] = [*PAGE_HEADERS, VARIES, (b"content-type", JSON)]
FIXED_OF_FILES: Final[Headers] = [*FILE_HEADERS, VARIES]
PACKED: Final = (b"content-encoding", b"gzip")
ENCODER: Final = json.JSONEncoder(ensure_ascii=False, indent=2, default=str)
"""An enricher may set values that are no JSON."""
NEGOTIATOR: Final = Negotiator()

Values = dict[str, Any]


class PageCall:
    """A request for a page. `root` is what is in front of PAGES in its path, `segments` are decoded, `params` those after the name.

    `sees_all` tells that the caller may see every page, and `who` how, if with a key. `wants_data` tells that only the data of the
    page is wanted.
    """

    def __init__(self, scene: Scene, head: Call, root: str, below: str) -> None:
        self.scene = scene
        self.head = head
        self.root = root
        self.wants_data = below.endswith(DATA_SUFFIX)
        path = below.removesuffix(DATA_SUFFIX) if self.wants_data else below
        self.segments = tuple(decode(each) for each in path.split("/")[1:])
        self.params: tuple[str, ...] = ()
        self.query = parse_qs(head.request.query.decode("latin-1"), keep_blank_values=True)
        self.form = Form()
        self.slices = Slices()
        self.sees_all = False
        self.who = ""

    def given(self, name: str) -> str:
        """Return the first value of a parameter without blanks around it; empty without one."""
        return self.query.get(name, [""])[0].strip()

    def environment(self, name: str) -> ShownEnvironment:
        """Return an environment; the first one without a name. Raises HttpError (404) for an unknown one."""
        known = self.scene.list_environments()
        found = known.get(name) if name else next(iter(known.values()), None)
        if found is None:
            raise HttpError(404, f"there is no environment {name}" if name else "there is no environment", [])
        return found

    @property
    def frame(self) -> Frame:
        """What is around the page."""
        pages = f"{self.root}{PAGES}"
        path = f"{pages}/{self.segments[0] if self.segments else ''}"
        stream = f"{pages}/stream" if self.sees_all else ""
        return Frame(pages, f"{pages}/static", path, self.who, SECTIONS, stream)


def decode(segment: str) -> str:
    """Return a segment of a path, decoded. Half a surrogate pair may be in the name of a flag; other bytes are replaced."""
    try:
        return unquote(segment, errors="surrogatepass")
    except UnicodeDecodeError:
        return unquote(segment)


class Redirect(NamedTuple):
    """Another page to go to, and further headers. `path` is below PAGES."""

    path: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Shown(NamedTuple):
    """What a page shows: the data, which is the body with `.json`, and the status."""

    data: Values
    status: int = 200


Show = Callable[[PageCall], Awaitable[Shown | Redirect | Response]]
"""Makes the data of a page, or its answer. Raises HttpError."""


class PageRow(NamedTuple):
    """One page. `path` is below PAGES, and its last part may be `:name`. An `open` one needs no key; `limit` is that of a body."""

    path: str
    template: str
    show: Show
    method: bytes = b"GET"
    open: bool = False
    limit: int = 0

    def match(self, segments: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the parameters in the segments of a path; None for another page."""
        own = self.path.split("/")[1:]
        if len(own) != len(segments):
            return None
        pairs = list(zip(own, segments, strict=True))
        if any(mine != given for mine, given in pairs if not mine.startswith(":")):
            return None
        return tuple(given for mine, given in pairs if mine.startswith(":"))


async def respond(call: PageCall, template: str, shown: Shown, own: Headers) -> Response:
    """Return the answer with the data of a page: as JSON, or rendered."""
    if call.wants_data:
        text = await gather(call, ENCODER.iterencode(shown.data))
        return answer(call.head, shown.status, JSON_HEADERS, text.encode("utf-8", "backslashreplace"), own)
    text = await gather(call, TEMPLATES.pieces(template, frame=call.frame, **shown.data))
    return answer(call.head, shown.status, HTML_HEADERS, text.encode("utf-8", "replace"), own)


async def gather(call: PageCall, pieces: Iterable[str]) -> str:
    """Return pieces of text as one; each is made when it is taken, in slices."""
    found: list[str] = []
    for piece in pieces:
        found.append(piece)
        await call.slices.rest()
    return "".join(found)


def respond_error(call: PageCall, status: int, message: str, own: Headers) -> Response:
    """Return the page of an error, or its data."""
    values: Mapping[str, Any] = {"status": status, "message": message}
    if call.wants_data:
        return answer(call.head, status, JSON_HEADERS, json.dumps({"error": message}).encode(), own)
    body = "".join(TEMPLATES.pieces("error.html", frame=call.frame, **values))
    return answer(call.head, status, HTML_HEADERS, body.encode("utf-8", "replace"), own)


def respond_redirect(call: PageCall, redirect: Redirect) -> Response:
    """Return the redirect to another page."""
    address = f"{call.root}{PAGES}{redirect.path}".encode()
    return answer(call.head, SEE_OTHER, PAGE_HEADERS, b"", [(b"location", address), *redirect.headers])


def respond_file(head: Call, file: StaticFile) -> Response:
    """Return a file; 304 if the caller has it."""
    own: Headers = [(b"content-type", file.media), (b"etag", file.tag)]
    if head.if_none_match is not None and file.tag in head.if_none_match:
        return Response(304, FIXED_OF_FILES, own, b"")
    if NEGOTIATOR.wants_gzip(head.accept_encoding or b"", len(file.body)):
        return plain(200, FIXED_OF_FILES, file.gzipped, [*own, PACKED])
    return plain(200, FIXED_OF_FILES, file.body, own)


def answer(head: Call, status: int, fixed: Headers, body: bytes, own: Headers) -> Response:
    """Return a response, compressed if the caller accepts that and it is worthwhile."""
    if NEGOTIATOR.wants_gzip(head.accept_encoding or b"", len(body)):
        return plain(status, fixed, gzip(body), [*own, PACKED])
    return plain(status, fixed, body, own)


def plain(status: int, fixed: Headers, body: bytes, own: Headers) -> Response:
    """Return a response with the length of its body."""
    return Response(status, fixed, [*own, (b"content-length", str(len(body)).encode())], body)


def moment(seconds: float) -> str | None:
    """Return a moment, in seconds since the epoch, as ISO text; None for 0, which is never."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else None


SLICE_S = 0.0005
"""Seconds of work between two turns of the event loop. The last step of a slice may take longer."""


class Slices:
    """The slices of one answer."""

    def __init__(self) -> None:
        self._end = perf_counter() + SLICE_S

    async def rest(self) -> None:
        """Let the event loop run if the slice is used up. Called after each step of some work."""
        if perf_counter() >= self._end:
            await asyncio.sleep(0)
            self._end = perf_counter() + SLICE_S
