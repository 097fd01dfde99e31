"""Spans: what this process does for a trace, from when to when, and within what (decision 0037). Imports nothing of OpenTelemetry.

A `Tracer` decides which work is traced. Work that is not traced has no span, and costs one draw. The present span follows the
execution context, so a step within traced work finds it with `child`. No span has data about end users, keys, tokens or addresses.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from time import time_ns
from typing import TYPE_CHECKING, Final, ParamSpec, TypeAlias, TypeVar

if TYPE_CHECKING:
    from random import Random

P = ParamSpec("P")
T = TypeVar("T")

INTERNAL, SERVER, CLIENT = "INTERNAL", "SERVER", "CLIENT"
"""The kinds of spans, as OpenTelemetry names them."""
TRACEPARENT: Final = "traceparent"
"""The header that names the trace, the span of the caller, and whether the caller traces."""
SAMPLED: Final = 1
FORM: Final = re.compile(
    rb"(?!ff)(?!00.{54})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?",
)
"""A valid traceparent. Version 00 has nothing behind the flags, a later version may have."""
SPANS, METRICS = "spans", "metrics"
"""The signals: what is exported, and what is counted when it is dropped."""

Parent: TypeAlias = tuple[int, int, bool]
"""The trace and the span of a caller, and whether the caller traces."""


class Span:
    """One piece of work: its `name`, its `kind`, when it `began` and `ended` in nanoseconds since the epoch, its `attributes`.

    `parent` is the id of the span around it, 0 for none; `is_remote` tells that the caller's process has that span. `error` is a
    word for how it failed; empty if it did not fail. `end` keeps it for the export.
    """

    def __init__(self, tracer: Tracer, name: str, kind: str, trace: int, parent: int = 0, *, is_remote: bool = False) -> None:
        self.tracer: Final = tracer
        self.name = name
        self.kind: Final = kind
        self.trace: Final = trace
        self.id: Final = tracer.draw_id(64)
        self.parent: Final = parent
        self.is_remote: Final = is_remote
        self.attributes: dict[str, str | int] = {}
        self.error = ""
        self.began: Final = time_ns()
        self.ended = 0

    def run(self, function: Callable[P, T], *args: P.args, **given: P.kwargs) -> T:
        """Call a function while this is the present span, also in what the call starts."""
        before = PRESENT.set(self)
        try:
            return function(*args, **given)
        finally:
            PRESENT.reset(before)

    def name_request(self, method: str, route: str) -> None:
        """Name the span of a request by its method and the template of its route, which begins with a slash if there is a route."""
        known = method if method.isupper() else "_OTHER"
        self.attributes["http.request.method"] = known
        self.name = "HTTP" if known == "_OTHER" else known
        if route.startswith("/"):
            self.attributes["http.route"] = route
            self.name += f" {route}"

    def note_status(self, status: int, least_error: int) -> None:
        """Note the status of an answer. From `least_error` on the work has failed."""
        self.attributes["http.response.status_code"] = status
        if status >= least_error:
            self.error = str(status)

    def end(self) -> None:
        """End the span. Only the first end counts."""
        if not self.ended:
            self.ended = time_ns()
            self.tracer.keep(self)

    @property
    def traceparent(self) -> bytes:
        """The header that continues the trace in another process."""
        return b"00-%032x-%016x-01" % (self.trace, self.id)


PRESENT: ContextVar[Span | None] = ContextVar("span", default=None)


class Tracer:
    """Decides what is traced, and keeps up to `room` spans that have ended, until `take` returns them for the export.

    `ratio` is the share of work that is traced. With `follows_parent`, a caller that has decided decides. `dropped` counts what is
    not exported, by signal. `on_batch` is called, in any thread, while `batch` spans or more wait.
    """

    def __init__(
        self, random: Random, ratio: float, *, follows_parent: bool, room: int, batch: int, on_batch: Callable[[], object]
    ) -> None:
        self.ratio: Final = ratio
        self.follows_parent: Final = follows_parent
        self.dropped: Final = {SPANS: 0, METRICS: 0}
        self._random: Final = random
        self._room: Final = room
        self._batch: Final = batch
        self._on_batch: Final = on_batch
        self._ended: Final[deque[Span]] = deque()
        self._lock: Final = Lock()

    def begin(self, name: str, kind: str = INTERNAL, traceparent: bytes | None = None) -> Span | None:
        """Begin the span of work that is not within other work here; None if the work is not traced."""
        parent = None if traceparent is None else read_traceparent(traceparent)
        if parent is None:
            return Span(self, name, kind, self.draw_id(128)) if self._draw() else None
        trace, span, is_traced = parent
        if not (is_traced if self.follows_parent else self._draw()):
            return None
        return Span(self, name, kind, trace, span, is_remote=True)

    def _draw(self) -> bool:
        return self.ratio > 0 and self._random.random() < self.ratio

    def draw_id(self, bits: int) -> int:
        """Return a random id that is not 0."""
        return self._random.getrandbits(bits) or 1

    def refusal(self) -> bytes:
        """Return the header that tells another process not to trace what it does for work that is not traced here."""
        return b"00-%032x-%016x-00" % (self.draw_id(128), self.draw_id(64))

    def keep(self, span: Span) -> None:
        """Keep a span for the export, if there is room."""
        if len(self._ended) >= self._room:
            self.drop(SPANS, 1)
            return
        self._ended.append(span)
        if len(self._ended) >= self._batch:
            self._on_batch()

    def take(self) -> list[Span]:
        """Remove and return the oldest spans, at most a batch. Only one thread may call it."""
        return [self._ended.popleft() for _ in range(min(self._batch, len(self._ended)))]

    def drop(self, signal: str, number: int) -> None:
        """Count what is not exported. Any thread may."""
        with self._lock:
            self.dropped[signal] += number


def read_traceparent(value: bytes) -> Parent | None:
    """Return what a traceparent says; None if it is not valid (W3C Trace Context)."""
    found = FORM.fullmatch(value)
    if found is None:
        return None
    trace, span, flags = found.groups()
    return int(trace, 16), int(span, 16), bool(int(flags, 16) & SAMPLED)


def begin(tracer: Tracer | None, name: str) -> Span | None:
    """Begin a span within the present span. Without a present span, `tracer` decides; without a tracer, nothing is traced."""
    found = child(name)
    return tracer.begin(name) if found is None and tracer is not None else found


def child(name: str, kind: str = INTERNAL) -> Span | None:
    """Begin a span within the present span; None without one, and within one that has ended."""
    present = PRESENT.get()
    if present is None or present.ended:
        return None
    return Span(present.tracer, name, kind, present.trace, present.id)


@contextmanager
def running(span: Span | None) -> Iterator[Span | None]:
    """Make a span the present span of a block, and end it with the block. None changes nothing."""
    if span is None:
        yield None
        return
    before = PRESENT.set(span)
    try:
        yield span
    except BaseException as error:
        span.error = span.error or getattr(error, "kind", type(error).__name__)
        raise
    finally:
        PRESENT.reset(before)
        span.end()


def log_fields() -> dict[str, str]:
    """Return the fields of a log line that name the present span; none without one."""
    present = PRESENT.get()
    return {} if present is None else {"trace_id": f"{present.trace:032x}", "span_id": f"{present.id:016x}"}
