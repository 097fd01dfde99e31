"""The reports of SDKs: the bodies of the metrics and register posts, as shapes. Compiled.

Source: (behaviour: POST /proxy/client/metrics; POST /proxy/client/register).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple, cast

from flagsvc.engine.values import jsnumber
from flagsvc.http.messages import invalid
from flagsvc.http.shapes.alternatives import OneOf
from flagsvc.http.shapes.checking import check, json_schema
from flagsvc.http.shapes.containers import Array, Members, Record
from flagsvc.http.shapes.errors import ShapeError
from flagsvc.http.shapes.exact import Fitting
from flagsvc.http.shapes.scalars import Enum, Integer, Number, String
from flagsvc.http.shapes.shape import MISMATCH, Anything, Named, Nullable, Schema, Shape
from flagsvc.http.shapes.violation import broken
from flagsvc.proxy.api.body import MUST_BE_OBJECT
from flagsvc.proxy.usage.impact import COUNTER, GAUGE, HISTOGRAM

MAX_COUNT: Final = 1_000_000_000
"""The largest count of one toggle in one report."""
LONGEST_COUNT: Final = len(str(MAX_COUNT))
DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d(:?\d\d)?)?")
FRACTION: Final = re.compile(r"\.\d+")
MUST_BE_DATE: Final = 'must match format "date-time"'
MUST_BE_NUMBER: Final = "must be number"
MUST_BE_BOUND: Final = "must be a number or +Inf"
INFINITY: Final = "+Inf"
MUST_BE_COUNT: Final = f"must be an integer from 0 to {MAX_COUNT}"


class ReportedUsage(NamedTuple):
    """The counts of one toggle in an SDK's report."""

    name: str
    yes: int
    no: int
    variants: dict[str, int]


def is_date(value: object) -> bool:
    """Return whether a value is a date and time in the form of RFC 3339. The zone may be missing."""
    if not isinstance(value, str) or not DATE_TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(FRACTION.sub("", value).upper())
    except ValueError:
        return False
    return True


def is_number(value: object) -> bool:
    """Return whether a value is a number, null or a text of digits."""
    if isinstance(value, str):
        return value.isdecimal()
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def is_start(value: object) -> bool:
    """Return whether a value is a number (epoch milliseconds) or a date and time."""
    return (isinstance(value, int | float) and not isinstance(value, bool)) or is_date(value)


class Unchecked(Anything):
    """Any value. Only the schema names the expected shape."""

    def __init__(self, wanted: Shape) -> None:
        super().__init__()
        self.wanted = wanted

    def schema(self) -> Schema:
        """Return the schema of the expected shape."""
        return self.wanted.schema()


class Count(Integer):
    """A whole number within bounds. It may be a text of digits; null counts as 0."""

    rule = MUST_BE_COUNT

    def __init__(self) -> None:
        super().__init__(minimum=0, maximum=MAX_COUNT)

    def coerced(self, value: object) -> object:
        """Return the number."""
        if value is None:
            return 0
        if isinstance(value, str):
            return self.bounded(float(int(value)) if value.isdecimal() and len(value) <= LONGEST_COUNT else -1.0)
        return self.bounded(jsnumber.from_json(value))

    def bounded(self, amount: float) -> object:
        """Return a whole number within bounds as an integer."""
        return int(amount) if 0 <= amount <= MAX_COUNT and amount == int(amount) else MISMATCH


class Report(Record):
    """A record that checks its required properties first, in the order of `required`."""

    def __init__(self, properties: Mapping[str, Shape], *, required: tuple[str, ...] = ()) -> None:
        super().__init__(properties, required=required)
        rows = {row[0]: row for row in self.rows}
        self.rows = tuple([rows.pop(name) for name in required] + list(rows.values()))


class ReportedCounts(Record):
    """The counts of one toggle. The type of its variants is checked before its numbers."""

    def examined(self, value: object) -> object:
        """Return the record if all its values fit."""
        if isinstance(value, dict) and not isinstance(value.get("variants", value), dict):
            error = broken(MUST_BE_OBJECT, value["variants"])
            error.under("variants")
            raise error
        return super().examined(value)


class LaxCount(Count):
    """A number within bounds, of which the whole part counts."""

    rule = f"must be a number from 0 to {MAX_COUNT}"

    def bounded(self, amount: float) -> object:
        """Return the whole part of a number within bounds."""
        return int(amount) if 0 <= amount <= MAX_COUNT else MISMATCH


class UpperBound(Number):
    """The upper bound of a histogram's bucket."""

    rule = MUST_BE_BOUND

    def coerced(self, value: object) -> object:
        """Return the number; infinity for the last bucket."""
        return math.inf if value == INFINITY else super().coerced(value)

    def schema(self) -> Schema:
        """Return the schema."""
        return {"oneOf": [super().schema(), {"type": "string", "enum": [INFINITY]}]}


class ReportedImpact(OneOf):
    """One impact metric: a counter or gauge, or a histogram. Its type decides, so that an error is about the right one."""

    def examined(self, value: object) -> object:
        """Return the metric if all its values fit."""
        metric = cast("dict[str, object]", value)
        return self.shapes[1 if metric.get("type") == HISTOGRAM else 0].take(metric)


def impact_metric(types: Shape, sample: Shape) -> Report:
    """Return the shape of impact metrics of some types, which have such samples."""
    rows = {"name": TEXT, "help": TEXT, "type": types, "samples": Array(sample)}
    return Report(rows, required=("name", "help", "type", "samples"))


TEXT: Final = String()
NAME: Final = String(min_length=1)
DATE: Final = Fitting(MUST_BE_DATE, is_date, {"type": "string", "format": "date-time"})
NUMBER: Final = Fitting(MUST_BE_NUMBER, is_number, {"type": "number"})
START: Final = Fitting(MUST_BE_DATE, is_start, {"oneOf": [json_schema(DATE), json_schema(NUMBER)]})
COUNT: Final = Count()

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
UNCHECKED_IMPACT: Final = {"impactMetrics": Unchecked(Array(IMPACT_METRIC))}
"""Malformed ones do not refuse the report that they are in: SDKs would report nothing any more."""

COUNTS: Final = Named("Counts", ReportedCounts({"yes": COUNT, "no": COUNT, "variants": Members(COUNT)}))
BUCKET: Final = Named(
    "Bucket", Report({"start": DATE, "stop": DATE, "toggles": Members(COUNTS)}, required=("start", "stop", "toggles"))
)
METRICS: Final = Named(
    "Metrics",
    Report(
        {"appName": TEXT, "instanceId": TEXT, "environment": Unchecked(TEXT), "bucket": BUCKET, **UNCHECKED_IMPACT},
        required=("appName", "instanceId", "bucket"),
    ),
)
LAX_COUNT: Final = LaxCount()
LAX_COUNTS: Final = Named(
    "FrontendCounts", ReportedCounts({"yes": LAX_COUNT, "no": LAX_COUNT, "variants": Members(LAX_COUNT)})
)
LAX_BUCKET: Final = Named(
    "FrontendBucket",
    Report({"start": DATE, "stop": DATE, "toggles": Members(LAX_COUNTS)}, required=("start", "stop", "toggles")),
)
LAX_MEMBERS: Final = {"instanceId": Unchecked(TEXT), "environment": Unchecked(TEXT), "bucket": LAX_BUCKET}
LAX_METRICS: Final = Named(
    "FrontendMetrics", Report({"appName": TEXT, **LAX_MEMBERS, **UNCHECKED_IMPACT}, required=("appName",))
)
CLIENT_METRICS: Final = Named(
    "ClientMetrics",
    Report({"appName": NAME, **LAX_MEMBERS, "bucket": Nullable(LAX_BUCKET), **UNCHECKED_IMPACT}, required=("appName",)),
)
BULK_COUNTS: Final = Named(
    "BulkCounts",
    Report(
        {
            "featureName": TEXT,
            "appName": NAME,
            "environment": Unchecked(TEXT),
            "timestamp": Unchecked(DATE),
            "yes": LAX_COUNT,
            "no": LAX_COUNT,
            "variants": Members(LAX_COUNT),
        },
        required=("featureName", "appName"),
    ),
)
APPLICATION: Final = Named(
    "Application",
    Report(
        {
            "appName": NAME,
            "instanceId": TEXT,
            "sdkVersion": Unchecked(TEXT),
            "strategies": Array(TEXT),
            "started": START,
            "interval": NUMBER,
        },
        required=("appName", "instanceId"),
    ),
)
BULK: Final = Named(
    "BulkMetrics",
    Report(
        {"applications": Array(APPLICATION), "metrics": Array(BULK_COUNTS), "impactMetrics": Array(IMPACT_METRIC)},
        required=("applications", "metrics"),
    ),
)
REGISTRATION_MEMBERS: Final = {
    "instanceId": TEXT,
    "sdkVersion": Unchecked(TEXT),
    "interval": NUMBER,
    "started": START,
    "strategies": Array(TEXT),
}
REGISTERED: Final = ("appName", "interval", "started", "strategies")
REGISTRATION: Final = Named("Registration", Report({"appName": TEXT, **REGISTRATION_MEMBERS}, required=REGISTERED))
CLIENT_REGISTRATION: Final = Named(
    "ClientRegistration", Report({"appName": NAME, **REGISTRATION_MEMBERS}, required=REGISTERED)
)


def read(shape: Shape, value: object) -> object:
    """Return a body coerced to its shape. Raises HttpError (400)."""
    try:
        return check(shape, value)
    except ShapeError as error:
        pointer, rule = error.problem
        raise invalid(pointer, None, rule) from None


def read_registration(value: object) -> None:
    """Check the body of a registration. Raises HttpError (400)."""
    read(REGISTRATION, value)


def read_metrics(value: object, shape: Shape = METRICS) -> list[ReportedUsage]:
    """Return the counts of a metrics post by toggle. Raises HttpError (400) before anything is counted."""
    body = cast("dict[str, dict[str, dict[str, dict[str, object]]]]", read(shape, value))
    bucket = body.get("bucket")
    return [] if bucket is None else [read_usage(name, counts) for name, counts in bucket["toggles"].items()]


def read_usage(name: str, counts: dict[str, object]) -> ReportedUsage:
    """Return the counts of one toggle, which have the right shape."""
    yes, no = cast(int, counts.get("yes", 0)), cast(int, counts.get("no", 0))
    return ReportedUsage(name, yes, no, cast("dict[str, int]", counts.get("variants", {})))
