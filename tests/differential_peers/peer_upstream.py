"""What a flag server got of a report, from either peer or from ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from peer_meaning import Record
from peer_rows import Row

from support.fake_upstream import METRICS, REGISTER, FakeUpstream, Recorded

BULK = f"{METRICS}/bulk"


def arrived(upstream: FakeUpstream, row: Row) -> Record:
    """Return what the upstream got of a report so far."""
    looks: tuple[tuple[str, str, Callable[[FakeUpstream, str], Any]], ...] = (
        ("counted", row.counts, counted),
        ("registered", row.registers, registered),
        ("measured", row.measures, measured),
    )
    found = {field: look(upstream, name) for field, name, look in looks if name}
    return {field: value for field, value in found.items() if value}


def counted(upstream: FakeUpstream, flag: str) -> dict[str, str]:
    """Return the counts of a flag, by the application and the environment for which they were sent."""
    sums: dict[str, list[dict[str, Any]]] = {}
    for app, name, counts in all_counts(upstream):
        if name == flag:
            sums.setdefault(app, []).append(counts)
    return {app: total(each) for app, each in sums.items()}


def all_counts(upstream: FakeUpstream) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield application and environment, flag, and counts of all that was sent."""
    for sent in upstream.received(METRICS):
        report = sent.json()
        for name, counts in report["bucket"]["toggles"].items():
            yield of(report["appName"], sent), name, counts
    for sent in upstream.received(BULK):
        for each in sent.json()["metrics"]:
            yield of(each["appName"], sent, each["environment"]), each["featureName"], each


def of(app: str, sent: Recorded, environment: str = "") -> str:
    """Return an application with the environment for which something was sent: by default that of the token."""
    token = sent.headers.get("authorization", "")
    return f"{app} in {environment or token.partition(':')[2].partition('.')[0]}"


def total(counts: Iterable[dict[str, Any]]) -> str:
    """Return a sum as text: on, off, and variants."""
    yes = no = 0
    variants: dict[str, int] = {}
    for each in counts:
        yes, no = yes + each["yes"], no + each["no"]
        for name, number in (each.get("variants") or {}).items():
            variants[name] = variants.get(name, 0) + number
    return " ".join([f"{yes} yes {no} no", *(f"{name}={number}" for name, number in sorted(variants.items()))])


def registered(upstream: FakeUpstream, app: str) -> list[str]:
    """Return how an application was registered: by which SDK, in which environment."""
    alone = [(sent.json(), sent, "") for sent in upstream.received(REGISTER)]
    together = [(each, sent, each["environment"]) for sent in upstream.received(BULK) for each in sent.json()["applications"]]
    return sorted({
        of(each.get("sdkVersion") or "an SDK", sent, environment)
        for each, sent, environment in alone + together
        if each["appName"] == app
    })  # fmt: skip


def measured(upstream: FakeUpstream, metric: str) -> list[str]:
    """Return the samples of an impact metric: value and labels."""
    sent = [*upstream.received(METRICS), *upstream.received(BULK)]
    metrics = [each for one in sent for each in one.json().get("impactMetrics") or () if each["name"] == metric]
    samples = [sample for each in metrics for sample in each["samples"]]
    return sorted({f"{each['value']:g} {json.dumps(each['labels'], sort_keys=True)}" for each in samples})
