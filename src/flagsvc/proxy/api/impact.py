"""Impact metrics that applications report, and impact metrics that browsers may report. Compiled.

Source: (dialects: Impact metrics; decision 0016).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, cast

from flagsvc.http.reports import HISTOGRAM, IMPACT_METRIC
from flagsvc.http.shapes.checking import check
from flagsvc.http.shapes.violation import ShapeError
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.configuration.holder import ConfigurationHolder
from flagsvc.proxy.usage import ImpactKey, ImpactSample, UsageCounters, UsageSource

REPORTED: Final = "impactMetrics"
"""The member of a report that has them."""
MAX_HELP: Final = 255
STATES: Final = frozenset({"enabled", "disabled"})
"""What SDKs give as the value of a flag's label, if it is not the name of a variant."""


def add_reported(usage: UsageCounters, value: object, source: UsageSource | None) -> None:
    """Add the impact metrics in a report, to the proxy's own without a source. Malformed ones are left out."""
    for metric in list_reported(value):
        try:
            found = check(IMPACT_METRIC, metric)
        except ShapeError:
            usage.leave_out(1)
            continue
        for sample in read_samples(cast("dict[str, Any]", found)):
            usage.add_impact(sample, source)


def list_reported(value: object) -> list[object]:
    """Return the impact metrics in a report, unchecked. A value that is no list counts as one malformed metric."""
    reported = value.get(REPORTED) if isinstance(value, dict) else None
    if reported is None:
        return []
    return reported if isinstance(reported, list) else [None]


def read_samples(metric: Mapping[str, Any]) -> list[ImpactSample]:
    """Return the samples of an impact metric, which has the right shape."""
    name, kind, help = str(metric["name"]), str(metric["type"]), str(metric["help"])[:MAX_HELP]
    found: list[ImpactSample] = []
    for sample in metric["samples"]:
        labels = tuple(sorted([(label, text) for label, text in sample.get("labels", {}).items() if label and text]))
        bounds: tuple[float, ...] = ()
        if kind == HISTOGRAM:
            counts = read_buckets(sample["buckets"])
            bounds = tuple(sorted(counts))
            values = [float(sample["sum"]), float(sample["count"]), *[counts[bound] for bound in bounds]]
        else:
            values = [float(sample["value"])]
        found.append(ImpactSample(ImpactKey(name, kind, bounds), help, labels, values))
    return found


def read_buckets(buckets: list[dict[str, float]]) -> dict[float, float]:
    """Return the counts of buckets by their upper bounds, without the last one, which counts everything."""
    counts: dict[float, float] = {}
    for bucket in buckets:
        bound = float(bucket["le"])
        counts[bound] = counts.get(bound, 0.0) + float(bucket["count"])
    counts.pop(math.inf, None)
    return counts


class BrowserImpact:
    """Takes the impact metrics that browsers may report, by name.

    A page could put anything into a label. So only labels with the name of a flag and one of its states are kept, and the proxy
    adds its own application and environment.
    """

    def __init__(self, settings: ServiceSettings, holder: ConfigurationHolder) -> None:
        self.allowed = frozenset(settings.impact_metrics)
        self.own = {"appName": settings.app_name, "environment": settings.upstream_environment}
        self.holder = holder

    def add_reported(self, usage: UsageCounters, value: object) -> None:
        """Add the allowed metrics in the report of a browser. All others are left out."""
        snapshot = self.holder.current
        names: Mapping[str, frozenset[str]] = {} if snapshot is None else snapshot.names
        for metric in list_reported(value):
            if not isinstance(metric, dict) or str(metric.get("name")) not in self.allowed:
                continue
            try:
                found = check(IMPACT_METRIC, metric)
            except ShapeError:
                continue
            for key, help, labels, values in read_samples(cast("dict[str, Any]", found)):
                kept = {flag: state for flag, state in labels if is_state(state, names.get(flag))}
                usage.add_impact(ImpactSample(key, help, tuple(sorted((kept | self.own).items())), values))


def is_state(text: str, variants: frozenset[str] | None) -> bool:
    """Return whether a text is a state of a flag with these variants. None has none: the configuration does not know the flag."""
    return variants is not None and (text in STATES or text in variants)


def make_browser_impact(settings: ServiceSettings, holder: ConfigurationHolder) -> BrowserImpact | None:
    """Return what takes the impact metrics of browsers; None if they may report none."""
    return BrowserImpact(settings, holder) if settings.impact_metrics else None
