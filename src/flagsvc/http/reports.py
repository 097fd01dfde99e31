"""The reports of SDKs, as shapes: usage metrics of one application, those of many, registrations, and impact metrics. Compiled.

Both programs take what a real server takes (behaviour: POST /proxy/client/metrics; decision 0010). An entry that cannot be read
costs only itself: in its place the checked report has null.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from flagsvc.http.shapes.alternatives import AnyOf, OneOf
from flagsvc.http.shapes.containers import Array, Members, Record
from flagsvc.http.shapes.scalars import Enum, Integer, Number, String
from flagsvc.http.shapes.shape import Anything, Named, Nullable, OrNull, Schema, Shape

MAX_COUNT: Final = 2**53 - 1
"""The largest count: JavaScript's largest safe integer."""
MAX_TIME_MS: Final = 8_640_000_000_000_000
"""The last moment that JavaScript has, in milliseconds since the epoch."""
MAX_NAME_LENGTH: Final = 255
"""The most characters of a name, as flag servers store it."""
DEFAULT_INSTANCE: Final = "default"
COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"
MUST_BE_BOUND: Final = "must be a number or +Inf"
INFINITY: Final = "+Inf"
NUL: Final = "\0"
REPLACEMENT: Final = "\ufffd"

Entry: TypeAlias = "dict[str, Any] | None"
"""A checked entry of a report; None for one that cannot be read."""


class ReportedUsage(NamedTuple):
    """The counts of one toggle in an SDK's report."""

    name: str
    yes: int
    no: int
    variants: dict[str, int]


class ReportedMetrics(NamedTuple):
    """What a report counted by toggle, and how many of its entries cannot be read."""

    counts: list[ReportedUsage]
    malformed: int


class Unchecked(Anything):
    """Any value. Only the schema names the expected shape."""

    def __init__(self, wanted: Shape) -> None:
        super().__init__()
        self.wanted = wanted

    def schema(self) -> Schema:
        """Return the schema of the expected shape."""
        return self.wanted.schema()


class Count(Number):
    """A number that databases and JavaScript can count with. Its whole part counts."""

    def __init__(self) -> None:
        super().__init__(minimum=0, maximum=MAX_COUNT)

    def examined(self, value: object) -> object:
        """Return the whole part of a number within bounds."""
        return int(cast(float, super().examined(value)))


class Report(Record):
    """A record that checks its required properties first, in the order of `required`."""

    def __init__(self, properties: Mapping[str, Shape], *, required: tuple[str, ...] = ()) -> None:
        super().__init__(properties, required=required)
        rows = {row[0]: row for row in self.rows}
        self.rows = tuple([rows.pop(name) for name in required] + list(rows.values()))


class UpperBound(Number):
    """The upper bound of a histogram's bucket."""

    rule = MUST_BE_BOUND

    def coerced(self, value: object) -> object:
        """Return the number; infinity for the last bucket."""
        return math.inf if value == INFINITY else super().coerced(value)

    def schema(self) -> Schema:
        return {"oneOf": [super().schema(), {"type": "string", "enum": [INFINITY]}]}


class ReportedImpact(OneOf):
    """One impact metric: a counter or gauge, or a histogram. Its type decides which shape an error is about."""

    def examined(self, value: object) -> object:
        """Return the metric if all its values fit."""
        metric = cast("dict[str, object]", value)
        return self.shapes[1 if metric.get("type") == HISTOGRAM else 0].take(metric)


def impact_metric(types: Shape, sample: Shape) -> Report:
    """Return the shape of impact metrics of some types, which have such samples."""
    rows = {"name": TEXT, "help": TEXT, "type": types, "samples": Array(sample)}
    return Report(rows, required=("name", "help", "type", "samples"))


def moment(number: Shape) -> AnyOf:
    """Return the shape of a time: a text, or a number of seconds or milliseconds since the epoch."""
    return AnyOf(
        String(format="date-time"),
        number,
        description="A date-time, or a time in seconds or milliseconds since the epoch.",
        example="2026-03-04T12:00:00.000Z",
    )


TEXT: Final = String()
NAME: Final = String(min_length=1)
SDK: Final = OrNull(String(description="Name and version of the SDK.", example="some-sdk:1.2.3"))
INSTANCE: Final = OrNull(String(description="One running instance of it; `default` if absent.", example="shop-1"))
IGNORED: Final = OrNull(TEXT)
ABOUT: Final[dict[str, Shape]] = {
    "environment": IGNORED,
    **dict.fromkeys(("platformName", "platformVersion", "yggdrasilVersion", "specVersion"), IGNORED),
}
"""What nothing depends on: the token has an environment."""

QUANTITY: Final = Number()
LABELS: Final = {"labels": Members(TEXT)}
MEASUREMENT: Final = Report({**LABELS, "value": QUANTITY}, required=("value",))
DISTRIBUTION: Final = Report(
    {
        **LABELS,
        "count": QUANTITY,
        "sum": QUANTITY,
        "buckets": Array(Report({"le": UpperBound(), "count": QUANTITY}, required=("le", "count"))),
    },
    required=("count", "sum", "buckets"),
)
IMPACT_METRIC: Final = Named(
    "ImpactMetric",
    ReportedImpact(
        impact_metric(Enum(COUNTER, GAUGE), MEASUREMENT),
        impact_metric(Enum(HISTOGRAM), DISTRIBUTION),
        base=Record(),
    ),
)
IMPACT: Final[dict[str, Shape]] = {"impactMetrics": Unchecked(Array(IMPACT_METRIC))}
"""Malformed ones do not refuse the report that they are in: SDKs would report nothing any more."""

COUNT: Final = Count()
COUNTED: Final[dict[str, Shape]] = {"yes": COUNT, "no": COUNT, "variants": OrNull(Members(OrNull(COUNT)))}
COUNTS: Final = Named("Counts", Record(COUNTED))
WHOLE_MOMENT: Final = moment(Integer(minimum=-MAX_TIME_MS, maximum=MAX_TIME_MS))
BUCKET: Final = Named(
    "Bucket",
    Report(
        {"start": WHOLE_MOMENT, "stop": WHOLE_MOMENT, "toggles": Members(OrNull(COUNTS))},
        required=("start", "stop", "toggles"),
    ),
)


def metrics(name: str, app_name: Shape) -> Named:
    """Return the shape of the usage metrics of one application."""
    rows: dict[str, Shape] = {"appName": app_name, "instanceId": INSTANCE, "sdkVersion": SDK, **ABOUT}
    return Named(name, Report({**rows, "bucket": Nullable(BUCKET), **IMPACT}, required=("appName",)))


METRICS: Final = metrics("Metrics", TEXT)
"""What the reference takes: an application without a name as well."""
CLIENT_METRICS: Final = metrics("ClientMetrics", NAME)

BULK_COUNTS: Final = Named(
    "BulkCounts",
    Report(
        {
            "featureName": TEXT,
            "appName": NAME,
            "environment": OrNull(TEXT),
            "timestamp": OrNull(WHOLE_MOMENT),
            **COUNTED,
        },
        required=("featureName", "appName"),
    ),
)
INTERVAL: Final = Number(minimum=0, maximum=MAX_COUNT)
STARTED: Final = moment(Number(minimum=-MAX_TIME_MS, maximum=MAX_TIME_MS))
STRATEGIES: Final = Array(OrNull(TEXT))
APPLICATION: Final = Named(
    "Application",
    Report(
        {
            "appName": NAME,
            "instanceId": INSTANCE,
            "environment": OrNull(TEXT),
            "sdkVersion": SDK,
            "sdkType": OrNull(Enum("frontend", "backend")),
            "interval": OrNull(INTERVAL),
            "started": OrNull(STARTED),
            "strategies": OrNull(STRATEGIES),
            "projects": OrNull(Array(OrNull(NAME))),
        },
        required=("appName",),
    ),
)
BULK: Final = Named(
    "BulkMetrics",
    Report(
        {"applications": Array(OrNull(APPLICATION)), "metrics": Array(OrNull(BULK_COUNTS)), **IMPACT},
        required=("applications", "metrics"),
    ),
)


def registration(name: str, app_name: Shape, interval: Shape, started: Shape) -> Named:
    rows: dict[str, Shape] = {
        "appName": app_name,
        "instanceId": INSTANCE,
        "sdkVersion": SDK,
        **ABOUT,
        "interval": interval,
        "started": started,
        "strategies": STRATEGIES,
    }
    return Named(name, Report(rows, required=("appName", "interval", "started", "strategies")))


REGISTRATION: Final = registration("Registration", TEXT, Number(), moment(Number()))
"""What the reference takes: it stores nothing, so numbers have no bounds."""
CLIENT_REGISTRATION: Final = registration("ClientRegistration", NAME, INTERVAL, STARTED)


def read_toggles(body: Mapping[str, Any]) -> ReportedMetrics:
    """Return what checked usage metrics counted. A report without a bucket counts nothing."""
    bucket = cast("dict[str, dict[str, Entry]] | None", body.get("bucket"))
    toggles: dict[str, Entry] = {} if bucket is None else bucket["toggles"]
    counts = [read_usage(name, each) for name, each in toggles.items() if each is not None]
    return ReportedMetrics(counts, count_malformed(toggles.values()))


def read_usage(name: str, counts: Mapping[str, Any]) -> ReportedUsage:
    """Return the counts of one toggle, which are checked."""
    variants = cast("dict[str, int | None]", counts.get("variants") or {})
    read = {variant: times for variant, times in variants.items() if times is not None}
    return ReportedUsage(name, counts.get("yes", 0), counts.get("no", 0), read)


def count_malformed(counts: Iterable[Entry], applications: Iterable[Entry] = ()) -> int:
    """Return how many of some checked entries cannot be read, and how many variants of the counts that can."""
    found = sum(1 for entry in applications if entry is None)
    for entry in counts:
        variants = {"": None} if entry is None else entry.get("variants") or {}
        found += sum(1 for times in variants.values() if times is None)
    return found


def cut(name: str) -> str:
    """Return a name as flag servers can store it: with at most 255 characters, and without NUL."""
    return name[:MAX_NAME_LENGTH].replace(NUL, REPLACEMENT)


def is_name(text: str) -> bool:
    return 0 < len(text) <= MAX_NAME_LENGTH
