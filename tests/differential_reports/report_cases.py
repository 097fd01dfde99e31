"""Odd reports: a whole report of each kind, in which one or two values are replaced. Each seed makes the same ones."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

Path = tuple[str | int, ...]
"""Where a value is: the names and numbers of what holds it."""


class Raw(NamedTuple):
    """A value by its JSON, which Python does not write by itself."""

    text: str


MISSING: Final = Raw("missing")
FLAG, SECOND, VARIANT = "reported", "other", "blue"
"""Names in each report: the flag whose counts are odd, a flag beside it, and a variant."""
START, STOP = "2026-01-01T00:00:00.000Z", "2026-01-01T00:01:00.000Z"
TIMES = {"started": START, "interval": 60_000}
ABOUT = {"sdkVersion": "some-sdk:1.2.3", "platformName": "some", "platformVersion": "1"}
NAMES = {"appName": "shop", "instanceId": "one", "environment": "development"}

ODD: Final[tuple[object, ...]] = (
    *(MISSING, None, True, False, [], {}, [1], [None], {"a": 1}, {"a": None}),
    *("", " ", "text", "5", "5.5", "-5", "1e3", "NaN", "Infinity", "true", "x" * 300, "a\0b"),
    *(0, 5, -5, 1.5, 5.0, 10**9, 10**9 + 1, 2**53 - 1, 2**53, 2**63, 10**30, -(10**30), Raw("1e400"), Raw("-0")),
    *("2026-01-01T00:00:00Z", "2026-01-01T00:00:00+02:00", "2026-01-01t00:00:00", "2026-01-01", "2026-13-01T00:00:00Z"),
    *(1_767_225_600, 1_767_225_600_000, 1_767_225_600_000.5, "1767225600000"),
)
"""The odd values."""


def metrics() -> dict[str, Any]:
    """Return the counts of one instance."""
    counts = {"yes": 3, "no": 1, "variants": {VARIANT: 2, "red": 1}}
    toggles = {FLAG: counts, SECOND: {"yes": 7, "no": 0}}
    return {**NAMES, **ABOUT, "bucket": {"start": START, "stop": STOP, "toggles": toggles}}


def impact() -> dict[str, Any]:
    """Return impact metrics, a counter and a histogram, without counts of flags."""
    counter = {"name": "orders", "help": "h", "type": "counter", "samples": [{"labels": {"a": "b"}, "value": 3}]}
    sample = {"labels": {"a": "b"}, "count": 2, "sum": 3.5, "buckets": [{"le": 1, "count": 1}, {"le": "+Inf", "count": 2}]}
    histogram = {"name": "seconds", "help": "h", "type": "histogram", "samples": [sample]}
    bucket = {"start": START, "stop": STOP, "toggles": {}}
    return {**NAMES, "bucket": bucket, "impactMetrics": [counter, histogram]}


def registration() -> dict[str, Any]:
    """Return the registration of an instance."""
    return {**NAMES, **ABOUT, **TIMES, "strategies": ["default", "flexibleRollout"]}


def bulk() -> dict[str, Any]:
    """Return the report of a server in between: one application and the counts of two flags."""
    counts = {"appName": "shop", "environment": "development", "timestamp": STOP, "yes": 3, "no": 1}
    application = {
        **registration(),
        "projects": ["default"],
        "sdkType": "backend",
        "connectVia": [{"appName": "between", "instanceId": "b"}],
    }
    listed = [{**counts, "featureName": FLAG, "variants": {VARIANT: 2}}, {**counts, "featureName": SECOND}]
    return {"applications": [application], "metrics": listed, "impactMetrics": impact()["impactMetrics"]}


KINDS: Final = {"metrics": metrics, "impact": impact, "registration": registration, "bulk": bulk}
"""Kind of a report → what makes a whole one."""


class Case(NamedTuple):
    """A report of a kind. `changes` are the places and what stands there."""

    kind: str
    changes: tuple[tuple[Path, object], ...]

    @property
    def is_huge(self) -> bool:
        """Whether a count is so large that the reference, which counts up to it one by one, does not answer in time."""
        return any("toggles" in path and size(value) > 1_000_000 for path, value in self.changes)

    @property
    def name(self) -> str:
        """What the report is called: its places with their values."""
        told = (f"{'.'.join(map(str, path)) or 'body'} = {short(value)}" for path, value in self.changes)
        return f"{self.kind}: {', '.join(told)}"

    def body(self) -> bytes:
        """Return the report as it is sent."""
        value: Any = KINDS[self.kind]()
        raw: dict[str, str] = {}
        for number, (path, new) in enumerate(self.changes):
            if isinstance(new, Raw) and new is not MISSING:
                mark = f"raw-{number}"
                raw[f'"{mark}"'] = new.text
                new = mark
            value = replaced(value, path, new)
        text = json.dumps(value)
        for mark, written in raw.items():
            text = text.replace(mark, written)
        return text.encode()


def size(value: object) -> float:
    """Return a value as a number; 0 for anything else."""
    try:
        return float(value.text if isinstance(value, Raw) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 0.0


def short(value: object) -> str:
    """Return a value as its case is called."""
    if isinstance(value, Raw):
        return value.text
    text = json.dumps(value)
    return text if len(text) < 40 else f"a text of {len(text) - 2}"


def replaced(value: Any, path: Path, new: object) -> Any:
    """Return a value in which another stands at a place. A place that is gone is left as it is."""
    if not path:
        return new
    first, *rest = path
    if first not in (range(len(value)) if isinstance(value, list) else value):
        return value
    if rest:
        value[first] = replaced(value[first], tuple(rest), new)
    elif new is MISSING:
        del value[first]
    else:
        value[first] = new
    return value


def places(value: object, path: Path = ()) -> Iterator[Path]:
    """Yield every place of a report but the report itself."""
    members: Mapping[Any, object] = {}
    if isinstance(value, dict):
        members = value
    elif isinstance(value, list):
        members = dict(enumerate(value))
    for key, member in members.items():
        yield (*path, key)
        yield from places(member, (*path, key))


def single() -> list[Case]:
    """Return every report in which one value is odd."""
    return [
        Case(kind, ((path, value),))
        for kind, make in KINDS.items()
        for path in places(make())
        if kind != "impact" or path[0] == "impactMetrics"
        for value in ODD
    ]


def doubled(seed: str, many: int) -> list[Case]:
    """Return so many reports in which two values are odd, the same ones for each seed."""
    rng = random.Random(seed)
    found = []
    for _ in range(many):
        kind = rng.choice(list(KINDS))
        first, second = sorted(rng.sample(list(places(KINDS[kind]())), 2), key=len, reverse=True)
        values = rng.choice(ODD), rng.choice(ODD)
        if second == first[: len(second)]:
            continue  # the second would replace what holds the first
        found.append(Case(kind, ((first, values[0]), (second, values[1]))))
    return found


def sample(seed: str, many: int) -> list[Case]:
    """Return so many reports of both kinds, a fifth of them with two odd values."""
    return [*random.Random(seed).sample(single(), many - many // 5), *doubled(seed, many // 5)]
