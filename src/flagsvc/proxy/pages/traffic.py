"""Traffic: requests per second and since the start, limits that were reached, and how often each flag was on and off.

Requests are counted anyway, for the metrics. While a page asks, they are read once a second. When no page has asked for a minute,
reading stops and everything is forgotten.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger, locate_error
from flagsvc.http import reached_limits as limits
from flagsvc.http.answers import Answer
from flagsvc.http.metrics import LIMITS_REACHED, REQUESTS, Readings
from flagsvc.pages.templates import line_points
from flagsvc.proxy.pages.flags import choose_page
from flagsvc.proxy.pages.page import PageCall, PageRow, ReadCounts, Scene, ShownEnvironment

SECONDS: Final = 60
"""The seconds that are shown. Reading goes on for as many seconds after the last page."""


class Figures(NamedTuple):
    """Some figures since the start. `unchanged` are answers 304, `unauthorized` 401 and `throttled` 429.

    `failed` are 500 and above. `limits` is how often a limit was reached.
    """

    requests: float = 0.0
    unchanged: float = 0.0
    unauthorized: float = 0.0
    throttled: float = 0.0
    failed: float = 0.0
    hits: float = 0.0
    misses: float = 0.0
    limits: float = 0.0


BY_NAME: Final = {
    "flagsvc_answer_cache_hits": "hits",
    "flagsvc_answer_cache_misses": "misses",
    LIMITS_REACHED: "limits",
}
"""Metric → field of the figures."""
BY_STATUS: Final = {"304": "unchanged", "401": "unauthorized", "429": "throttled"}
"""Status → field of the figures."""


def figures_of(readings: Readings) -> Figures:
    """Return the figures of the readings of every environment."""
    found = dict.fromkeys(Figures._fields, 0.0)
    for key, value in readings.items():
        if key[0] == REQUESTS:
            found["requests"] += value
            field = BY_STATUS.get(key[-1], "failed" if key[-1] >= "500" else "")
        else:
            field = BY_NAME.get(key[0], "")
        if field:
            found[field] += value
    return Figures(**found)


class Sample(NamedTuple):
    """The figures at a moment, in seconds of `Clock.monotonic`."""

    at: float
    figures: Figures


class Recorder:
    """Reads the counters when a page asks, and then once a second until no page has asked for a minute."""

    def __init__(self, read: ReadCounts, clock: Clock, log: Logger) -> None:
        self._read = read
        self._clock = clock
        self._log = log
        self._samples: deque[Sample] = deque(maxlen=SECONDS + 1)
        self._until = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def look(self) -> Readings:
        """Return the counters as they are now, and keep on reading."""
        self._until = self._clock.monotonic() + SECONDS
        found = await self._read()
        if not self.is_running:
            self._samples.append(Sample(self._clock.monotonic(), figures_of(found)))
            self._task = asyncio.create_task(self._run(), name="traffic")
        return found

    async def _run(self) -> None:
        try:
            while self._clock.monotonic() < self._until:
                await self._clock.sleep(1.0)
                self._samples.append(Sample(self._clock.monotonic(), figures_of(await self._read())))
        except Exception as error:  # a page must not fail for it; the next one starts again
            self._log.error("reading the traffic failed", error=locate_error(error))
        finally:
            self._samples.clear()

    def rates(self) -> list[Figures]:
        """Return the figures per second of the last seconds, the newest one last; none before the first second has passed."""
        return list(differences(self._samples))


def differences(samples: Iterable[Sample]) -> Iterable[Figures]:
    """Yield how much the figures grow in a second between two samples."""
    for before, after in pairwise(samples):
        seconds = max(after.at - before.at, 0.001)
        yield Figures(*(max(0.0, new - old) / seconds for old, new in zip(before.figures, after.figures, strict=True)))


HEIGHT: Final = 20
"""The height of the line, in units of its drawing. Its width is a unit for each second."""
WHY: Final[dict[str, str]] = {
    limits.HEADERS: "the header block was too large (431)",
    limits.QUERY: "the query was too long (414)",
    limits.BODY: "the body was too large (413)",
    limits.DEPTH: "the JSON was nested too deeply (400)",
    limits.PROPERTIES: "the context had too many properties (400)",
    limits.VALUE: "a value of the context was too long (400)",
    limits.TOGGLES: "too many flags were asked for at once (400)",
    limits.ANSWER: "the answer would have been too large (400)",
    limits.KEY_RATE: "too many requests with one key (429)",
    limits.ADDRESS_RATE: "too many requests from one address (429)",
    limits.CONNECTIONS: "too many connections (503)",
    limits.MEMORY: "the requests under way held too much memory (503)",
    limits.HEADER_TIME: "the head of a request came too slowly",
    limits.BODY_TIME: "the body of a request came too slowly",
    limits.WRITE_TIME: "the caller took the answer too slowly",
    limits.ENRICHER_TIME: "a context enricher took too long",
    limits.ENRICHER_STUCK: "too many calls of a context enricher hung",
    limits.SIGN_IN: "too many wrong tries to sign in at pages (429)",
}
"""Limit → what happened when it was reached."""

Order = Callable[[list[int], str], tuple[Any, ...]]
ORDERS: Final[dict[str, Order]] = {
    "": lambda pair, name: (-pair[0] - pair[1], name),
    "on": lambda pair, name: (-pair[0], name),
    "off": lambda pair, name: (-pair[1], name),
    "name": lambda _, name: (name.casefold(), name),
}
"""Order of the flags → what they are sorted by: all requests, requests that got yes or no, or their names."""


def traffic_rows(scene: Scene) -> tuple[PageRow, ...]:
    recorder = Recorder(scene.read_counts, scene.clock, scene.log)

    async def show(call: PageCall) -> Answer:
        readings = await recorder.look()
        shown = call.environment(call.given("environment"))
        rates = recorder.rates()
        return Answer(
            {
                "environment": shown.name,
                "environments": [name for name in call.scene.list_environments() if name],
                "now": rates[-1]._asdict() if rates else None,
                "seconds": [round(each.requests, 1) for each in rates],
                "line": draw_line(rates),
                "since": figures_of(readings)._asdict(),
                "routes": list_routes(readings),
                "limits": list_limits(readings),
                "usageWaiting": sum(each.asked.entries for each in call.scene.list_environments().values()),
                **await describe_usage(call, shown),
            }
        )

    return (PageRow("/traffic", "traffic.html", show),)


def draw_line(rates: Sequence[Figures]) -> dict[str, Any]:
    """Return the line of the requests: its points, its size and the highest number in it."""
    values = [each.requests for each in rates]
    points = line_points(values, HEIGHT, SECONDS - len(rates))
    return {"points": points, "width": SECONDS, "height": HEIGHT, "highest": round(max(values, default=0.0), 1)}


def list_routes(readings: Readings) -> list[dict[str, Any]]:
    """Return the routes that were asked for, with the number of answers of each status; those with most requests come first."""
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for key, value in readings.items():
        if key[0] == REQUESTS and value:
            route, method, status = key[-3:]
            found[route, method][status] += value
    rows = [
        {
            "route": route,
            "method": method,
            "requests": sum(statuses.values()),
            "statuses": dict(sorted(statuses.items())),
        }
        for (route, method), statuses in found.items()
    ]
    return sorted(rows, key=lambda row: -row["requests"])


def list_limits(readings: Readings) -> list[dict[str, Any]]:
    """Return the limits that were reached, with why; those that were reached most often come first."""
    found: dict[str, float] = defaultdict(float)
    for key, value in readings.items():
        if key[0] == LIMITS_REACHED and value:
            found[key[-1]] += value
    rows = [{"limit": limit, "why": WHY[limit], "count": count} for limit, count in found.items()]
    return sorted(rows, key=lambda row: -row["count"])


async def describe_usage(call: PageCall, shown: ShownEnvironment) -> dict[str, Any]:
    """Return one page of the flags by how often they were asked for."""
    counts: dict[str, list[int]] = {}
    for counts in shown.asked.sum_all():  # noqa: B007 - the last one is complete
        await call.slices.rest()
    query, order = call.given("q"), call.given("sort")
    known = () if shown.holder.current is None else shown.holder.current.names
    wanted = query.casefold()
    names = [name for name in counts if name in known and wanted in name.casefold()]
    await call.slices.rest()
    rank = ORDERS.get(order, ORDERS[""])
    names.sort(key=lambda name: rank(counts[name], name))
    await call.slices.rest()
    page, place = choose_page(call, names)
    kept = {"q": query, "sort": order, "environment": shown.name}
    return {
        "flags": [{"name": name, "yes": counts[name][0], "no": counts[name][1]} for name in page],
        **place,
        "q": query,
        "sort": order if order in ORDERS else "",
        "address": urlencode({name: text for name, text in kept.items() if text}),
    }
