"""Traffic: requests per second and since the start, limits that were reached, and how often each flag was on and off.

Requests are counted anyway, for the metrics. `Recorder` reads the counters every STEP_S seconds, and when a page asks. It keeps the
readings of an hour, so the last minutes are known when a page is first opened.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger, locate_error
from flagsvc.http import reached_limits as limits
from flagsvc.http.answers import Answer
from flagsvc.http.metrics import LIMITS_REACHED, REQUESTS, Readings
from flagsvc.pages.charts import Mark, Series, picture
from flagsvc.proxy.pages.flags import choose_page
from flagsvc.proxy.pages.page import PageCall, PageRow, ReadCounts, ShownEnvironment

STEP_S: Final = 15.0
"""Seconds between two readings that are kept."""
KEPT_S: Final = 3600.0
"""Seconds that a reading is kept."""
FRESH_S: Final = 0.9
"""The least seconds between two readings that tell the present rate: several pages may ask in a second."""


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

    @property
    def refused(self) -> float:
        """Requests that were refused or failed."""
        return self.unauthorized + self.throttled + self.failed


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


class Growth(NamedTuple):
    """How much the figures grew between two samples, so many seconds apart, with `middle` between them."""

    middle: float
    seconds: float
    figures: Figures

    @property
    def rates(self) -> Figures:
        """The figures per second."""
        return Figures(*(each / self.seconds for each in self.figures))


def growth(before: Sample, after: Sample) -> Growth:
    """Return how much the figures grew between two samples."""
    grown = Figures(*(max(0.0, new - old) for old, new in zip(before.figures, after.figures, strict=True)))
    return Growth((before.at + after.at) / 2, max(after.at - before.at, 0.001), grown)


class Recorder:
    """Reads the counters: every STEP_S seconds while `run` runs, and when a page asks."""

    def __init__(self, read: ReadCounts, clock: Clock, log: Logger) -> None:
        self._read = read
        self._clock = clock
        self._log = log
        self._kept: deque[Growth] = deque(maxlen=int(KEPT_S / STEP_S))
        self._began: Sample | None = None
        self._last: deque[Sample] = deque(maxlen=2)

    async def run(self) -> None:
        """Keep what was counted up to each multiple of STEP_S, until cancelled."""
        while True:
            try:
                await self.look()
                self._keep(self._last[-1])
            except Exception as error:  # only pages need it
                self._log.error("reading the traffic failed", error=locate_error(error))
            passed = self._clock.monotonic()
            await self._clock.sleep((round(passed / STEP_S) + 1) * STEP_S - passed)

    def _keep(self, now: Sample) -> None:
        if self._began is not None:
            self._kept.append(growth(self._began, now))
        self._began = now

    async def look(self) -> Readings:
        """Return the counters as they are now."""
        found = await self._read()
        now = self._clock.monotonic()
        if not self._last or now - self._last[-1].at >= FRESH_S:
            self._last.append(Sample(now, figures_of(found)))
        return found

    def now(self) -> Figures | None:
        """Return the figures per second between the last two readings; None before there are two."""
        return growth(*self._last).rates if len(self._last) == 2 else None

    def bars(self, span: float) -> list[Figures]:
        """Return the figures per second in each of the last BARS times `span` seconds, the present ones last."""
        found: dict[int, list[Growth]] = defaultdict(list)
        unkept = [] if self._began is None else [growth(self._began, self._last[-1])]
        for each in (*self._kept, *unkept):
            found[int(each.middle // span)].append(each)
        last = int(self._clock.monotonic() // span)
        return [average(found.get(place, ())) for place in range(last - BARS + 1, last + 1)]


def average(grown: Sequence[Growth]) -> Figures:
    """Return the figures per second of some times together; zeros for no time."""
    seconds = sum(each.seconds for each in grown) or 1.0
    return Figures(*(sum(column) / seconds for column in zip(*(each.figures for each in grown), strict=True)))


BARS: Final = 60
"""The bars of the picture."""


class Window(NamedTuple):
    """What the picture shows: in words, how many seconds a bar has, and what is written below, in equal distances."""

    words: str
    span: float
    marks: tuple[str, ...]


WINDOWS: Final = {
    "": Window("last 15 minutes", KEPT_S / 4 / BARS, ("−15 min", "−12", "−9", "−6", "−3")),
    "hour": Window("last hour", KEPT_S / BARS, ("−60 min", "−45", "−30", "−15")),
}


def picture_of(recorder: Recorder, window: Window) -> dict[str, Any]:
    """Return the requests per second as a picture: answered requests, and above them the refused and failed requests."""
    bars = recorder.bars(window.span)
    return picture(
        [
            Series("answered", "yes", [round(each.requests - each.refused, 2) for each in bars]),
            Series("refused or failed", "bad", [round(each.refused, 2) for each in bars]),
        ],
        [Mark(each) for each in window.marks],
    )


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
    limits.STREAMS: "too many event streams (429)",
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


def traffic_rows(recorder: Recorder) -> tuple[PageRow, ...]:
    """Return the row of the page."""

    async def show(call: PageCall) -> Answer:
        readings = await recorder.look()
        shown = call.environment(call.given("environment"))
        now, window = recorder.now(), WINDOWS.get(call.given("span"), WINDOWS[""])
        return Answer(
            {
                "environment": shown.name,
                "environments": [name for name in call.scene.list_environments() if name],
                "span": call.given("span"),
                "words": window.words,
                "spans": [{"words": each.words, "address": address_of(call, shown, span=name)} for name, each in WINDOWS.items()],
                "secondsOfBar": window.span,
                "picture": picture_of(recorder, window),
                "now": None if now is None else now._asdict(),
                "since": figures_of(readings)._asdict(),
                "routes": list_routes(readings),
                "limits": list_limits(readings),
                "usageWaiting": sum(each.asked.entries for each in call.scene.list_environments().values()),
                **await describe_usage(call, shown),
            }
        )

    return (PageRow("/traffic", "traffic.html", show),)


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
    return {
        "flags": [{"name": name, "yes": counts[name][0], "no": counts[name][1]} for name in page],
        **place,
        "q": query,
        "sort": order if order in ORDERS else "",
        "address": address_of(call, shown),
    }


def address_of(call: PageCall, shown: ShownEnvironment, **other: str) -> str:
    """Return what follows the `?` in the address of this page, with `other` parameters."""
    kept = {
        "q": call.given("q"),
        "sort": call.given("sort"),
        "environment": shown.name,
        "span": call.given("span"),
        **other,
    }
    return urlencode({name: text for name, text in kept.items() if text})
