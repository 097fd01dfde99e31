"""A page as a row, a request for one, and its answer: HTML or, at the same address with `.json`, its data."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Final, NamedTuple
from urllib.parse import parse_qs, unquote

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger, Secrets
from flagsvc.engine.compile import CompileOptions
from flagsvc.http.answers import Answer
from flagsvc.http.call import COOKIE, Call
from flagsvc.http.messages import HttpError
from flagsvc.http.metrics import Readings
from flagsvc.pages.forms import Form
from flagsvc.pages.headers import PAGE_HEADERS
from flagsvc.pages.site import HTML_HEADERS, Site
from flagsvc.pages.templates import DATA_SUFFIX, Frame, Section
from flagsvc.pages.theme import theme_of
from flagsvc.proxy.api.metrics import WorkerFigures
from flagsvc.proxy.api.readiness import Readiness
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.configuration.change_log import ChangeLog
from flagsvc.proxy.configuration.poller import PollNotes
from flagsvc.proxy.extensions import ContextEnricher
from flagsvc.proxy.upstream import Identity
from flagsvc.proxy.usage import UsageCounters
from flagsvc.settings.places import Resolved

ReadCounts = Callable[[], Awaitable[Readings]]
"""Returns the counters of all processes that answer callers."""


class ShownEnvironment(NamedTuple):
    """One environment. `name` is empty if the process has a single one; `upstream` is its address without credentials.

    `refresh_s` is refreshInterval in seconds.
    """

    name: str
    upstream: str
    refresh_s: float
    holder: Holder
    notes: PollNotes
    asked: UsageCounters
    changes: ChangeLog
    settings: ServiceSettings
    compile_options: CompileOptions
    enrichers: Sequence[ContextEnricher]


class Scene(NamedTuple):
    """One process. `resolved` are its options as they were read at the start, if it read any; `started` is in epoch seconds.

    `read_counts` returns the counters of all processes that answer callers.
    """

    read_identity: Callable[[], Identity]
    clock: Clock
    log: Logger
    secrets: Secrets
    readiness: Readiness
    read_workers: Callable[[], WorkerFigures]
    read_counts: ReadCounts
    list_environments: Callable[[], Mapping[str, ShownEnvironment]]
    resolved: Resolved | None
    started: float


PAGES: Final = "/ui"
SITE: Final = Site(
    __package__,
    Section("Status", "/status"),
    Section("Status", "/status", "status"),
    Section("Flags", "/flags", "flag"),
    Section("Try", "/try", "try"),
    Section("Traffic", "/traffic", "experiment"),
    Section("Changes", "/changes", "changes"),
    Section("Config", "/config", "settings"),
)
FIRST: Final = "/status"
"""The first page."""

ENCODER: Final = json.JSONEncoder(ensure_ascii=False, indent=2, default=str)
"""An enricher may set values that are no JSON."""


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
        path = self.address(f"/{self.segments[0] if self.segments else ''}")
        theme, now = theme_of(self.head.other(COOKIE)), self.scene.clock.now()
        return SITE.frame(self.address(""), path, self.who, theme, live=self.sees_all, now=now)

    def address(self, path: str) -> str:
        """Return the address of a page. `path` is below PAGES."""
        return f"{self.root}{PAGES}{path}"


def decode(segment: str) -> str:
    """Return a segment of a path, decoded. Half a surrogate pair may be in the name of a flag; other bytes are replaced."""
    try:
        return unquote(segment, errors="surrogatepass")
    except UnicodeDecodeError:
        return unquote(segment)


Show = Callable[[PageCall], Awaitable[Answer]]
"""Makes the answer of a page: its values, or another answer. Raises HttpError."""


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


async def render(call: PageCall, template: str, answer: Answer) -> Answer:
    """Return an answer with the page of its values, or with their JSON, in slices. An answer without values stays as it is."""
    if answer.body is None:
        return answer
    if call.wants_data:
        text = await gather(call, ENCODER.iterencode(answer.body))
        return replace(answer, body=text.encode("utf-8", "backslashreplace"), headers=(*answer.headers, *PAGE_HEADERS))
    text = await gather(call, SITE.templates.pieces(template, frame=call.frame, **answer.body))
    return replace(answer, body=text.encode("utf-8", "replace"), headers=(*answer.headers, *HTML_HEADERS))


async def gather(call: PageCall, pieces: Iterable[str]) -> str:
    """Return pieces of text as one; each is made when it is taken, in slices."""
    found: list[str] = []
    for piece in pieces:
        found.append(piece)
        await call.slices.rest()
    return "".join(found)


def answer_error(call: PageCall, status: int, message: str, *headers: tuple[bytes, bytes]) -> Answer:
    if call.wants_data:
        return Answer({"error": message}, status, (*headers, *PAGE_HEADERS))
    return SITE.error(call.frame, status, message, headers)


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
