"""Values that are valid but probably a mistake: a warning for each combination of values, value in quotes and odd address."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from flagsvc.settings.network import is_gitlab, safe_url
from flagsvc.settings.normalise import QUOTES, Given, in_quotes, label
from flagsvc.settings.option import Option

ADVICE: tuple[tuple[Callable[[Mapping[str, Any]], bool], str], ...] = (
    (
        lambda values: values["cors.credentials"] and values["cors.origin"] == "*",
        "cors.credentials with cors.origin `*`: browsers refuse that, name the origins",
    ),
    (
        lambda values: 0 < values["metricsInterval"] < values["metricsJitter"],
        "metricsJitter is longer than metricsInterval: posts may follow each other without a pause",
    ),
    (
        lambda values: 0 < 1000 * values["maxStaleness"] < 2 * values["refreshInterval"],
        "maxStaleness is shorter than two refreshIntervals: a single failure makes the proxy say that it is not ready",
    ),
    (
        lambda values: values["refreshInterval"] == 0 < values["maxStaleness"],
        "maxStaleness with refreshInterval 0: upstream is asked once only, so the proxy will say that it is not ready",
    ),
    (
        lambda values: values["upstreamMode"] == "streaming" and values["refreshInterval"] == 0,
        "upstreamMode streaming with refreshInterval 0: upstream is asked once only, so there is no stream",
    ),
    (
        lambda values: is_gitlab(values["flagsvcUrl"]) and not values["environment"],
        "GitLab answers for one environment: set environment (FLAGSVC_ENVIRONMENT) to its name, otherwise flagsvcAppName is taken",
    ),
    (
        lambda values: "," in (values["environment"] or ""),
        "environment with a comma is the name of one environment; for several, set FLAGSVC_ENVIRONMENTS=a,b or write a table "
        "[environments.NAME] for each (docs/how-to/serve-several-environments.md)",
    ),
    (
        lambda values: "@" in urlsplit(values["flagsvcUrl"] or "").netloc,
        "flagsvcUrl holds a user name or password, which are not sent: upstream is asked with flagsvcApiToken alone",
    ),
)

SHORTEST_PLAUSIBLE_MS = {
    "refreshInterval": 1000,
    "metricsInterval": 1000,
    "upstreamTimeout": 100,
    "storageTimeout": 100,
}
"""Option in milliseconds → the shortest plausible value. A smaller number was probably meant as seconds."""

LIKELY_SECONDS = 300
"""A too short number of milliseconds up to this was probably meant as seconds."""

API_SEGMENTS = ("api", "proxy")
"""The last path segments of the API of a flag server or of another proxy."""

ENDPOINT_SEGMENTS = ("client", "admin", "frontend")
"""The path segments that follow one of API_SEGMENTS in the path of a single endpoint."""


def advice_on(values: Mapping[str, Any]) -> list[str]:
    """Return a warning for each value and each combination of values that is valid but probably a mistake (behaviour: CORS)."""
    return [*(text for applies, text in ADVICE if applies(values)), *_warn_of_short_times(values), *_address(values)]


def _warn_of_short_times(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning for each number of milliseconds that is so short that the user probably meant seconds."""
    for name, least in SHORTEST_PLAUSIBLE_MS.items():
        number = values[name]
        if 0 < number < least:
            meant = f"; write {number * 1000} for {number} s" if number <= LIKELY_SECONDS else ""
            yield f"{name}: {number} is milliseconds{meant}"


def _address(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning for an upstream address that is not that of an API."""
    url = values["flagsvcUrl"] or ""
    right = api_url(url)
    if right != url:
        yield f"flagsvcUrl `{safe_url(url)}`: its path does not end in `/api`; write `{safe_url(right)}`"


def api_url(url: str) -> str:
    """Return the address of the API that a URL most likely means: an endpoint is cut off, to any other path `/api` is added."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or is_gitlab(url):
        return url
    steps = parts.path.rstrip("/").split("/")
    if steps[-1] in API_SEGMENTS:
        return url
    cuts = [place for place in range(1, len(steps)) if steps[place - 1] in API_SEGMENTS and steps[place] in ENDPOINT_SEGMENTS]
    path = "/".join(steps[: cuts[-1]] if cuts else [*steps, "api"])
    return urlunsplit(parts._replace(path=path))


def quotation(rows: Mapping[str, Option], given: Mapping[str, Given], problems: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each accepted value that has quotes around it. The value is shown unless it is secret."""
    for name, entry in given.items():
        if name not in problems and in_quotes(entry.value):
            shown = rows[name].kind.echo(str(entry.value).strip())
            yield f"{label(rows[name], entry.source)}: {f'{shown} is taken as it is; ' if shown else ''}{QUOTES}"
