"""Requests as bytes, written to a file that the load generator walks through; each for another user."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import documents

POSTS_EVERY = 20
HEALTH_EVERY = 100
FIRST_USER = 1_000_000
NAMED = 20
"""How many flags a request names that asks for some by name."""
EVALUATION, METRICS, HEALTH = 0, 1, 2
"""The classes of requests that the load generator keeps apart."""

BROWSER = {
    "Connection": "keep-alive",
    "sec-ch-ua": '"Chromium";v="142", "Not_A Brand";v="99"',
    "sec-ch-ua-mobile": "?0",
    "sec-ch-ua-platform": '"Linux"',
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Accept": "application/json",
    "Content-Type": "application/json",
    "Origin": "https://shop.example.com",
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Dest": "empty",
    "Referer": "https://shop.example.com/",
    "Accept-Language": "de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7",
    "DNT": "1",
}
"""What a browser sends on top; with Host, Authorization and Accept-Encoding these are 17 headers."""


@dataclass(frozen=True)
class Routes:
    """The paths of a server, and its key. None stands for a missing route."""

    enabled: str
    all: str | None
    metrics: str
    health: str
    key: str
    names: bool = True
    """Whether flags can be asked for by name, several at once."""


@dataclass(frozen=True)
class Form:
    """One way of asking: the name of its cell, and what the requests look like."""

    title: str
    build: Callable[[Routes, Headers, int, list[str]], Request]
    needs: Callable[[Routes], bool] = lambda routes: True


Headers = dict[str, str]
Request = tuple[int, bytes]
"""The class and the bytes."""


def raw(method: str, target: str, headers: Headers, body: bytes | None = None) -> bytes:
    """Return one HTTP/1.1 request."""
    sized = {} if body is None else {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in (headers | sized).items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")


def flat(at: int) -> dict[str, str]:
    """Return the context of the at-th user as a query has it; the number of the user has seven digits, for the load generator."""
    return documents.context(at) | {"userId": str(FIRST_USER + at)}


def query(at: int) -> str:
    """Return the query of the at-th user."""
    return "&".join([f"{name}={value}" for name, value in flat(at).items()])  # nothing in it needs quoting


def wire_context(at: int) -> dict[str, Any]:
    """Return the context of the at-th user as a JSON body has it."""
    fields = flat(at)
    properties = {name[11:-1]: value for name, value in fields.items() if name.startswith("properties[")}
    return {name: value for name, value in fields.items() if "[" not in name} | {"properties": properties}


def compact(value: object) -> bytes:
    """Return JSON without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def get_list(routes: Routes, headers: Headers, at: int, names: list[str]) -> Request:
    """Ask for the enabled flags of a user."""
    return EVALUATION, raw("GET", f"{routes.enabled}?{query(at)}", headers)


def get_all(routes: Routes, headers: Headers, at: int, names: list[str]) -> Request:
    """Ask for every flag."""
    return EVALUATION, raw("GET", f"{routes.all}?{query(at)}", headers)


def post_list(routes: Routes, headers: Headers, at: int, names: list[str]) -> Request:
    """Ask for the enabled flags of the user in the body."""
    return EVALUATION, raw("POST", routes.enabled, headers, compact({"context": wire_context(at)}))


def post_named(routes: Routes, headers: Headers, at: int, names: list[str]) -> Request:
    """Ask for some flags by name."""
    body = compact({"context": wire_context(at), "toggles": names})
    return EVALUATION, raw("POST", routes.enabled, headers, body)


def from_browser(routes: Routes, headers: Headers, at: int, names: list[str]) -> Request:
    """Ask for the enabled flags as a page in a browser does."""
    return EVALUATION, raw("GET", f"{routes.enabled}?{query(at)}", headers | BROWSER)


def metrics(routes: Routes, headers: Headers, at: int, names: list[str]) -> Request:
    """Post the usage metrics of a browser."""
    toggles = {name: {"yes": at % 7 + 1, "no": at % 3, "variants": {}} for name in names}
    bucket = {"start": "2026-11-01T10:00:00.000Z", "stop": "2026-11-01T10:01:00.000Z", "toggles": toggles}
    return METRICS, raw("POST", routes.metrics, headers, compact({"appName": "web-shop", "instanceId": "b", "bucket": bucket}))


def health(routes: Routes, headers: Headers, at: int, names: list[str]) -> Request:
    """Ask whether the server is healthy."""
    return HEALTH, raw("GET", routes.health, headers)


def mixed(routes: Routes, headers: Headers, at: int, names: list[str]) -> Request:
    """Ask as a load balancer does: a post of metrics and a health check now and then among the evaluations."""
    if at % HEALTH_EVERY == HEALTH_EVERY // 2:
        return health(routes, headers, at, names)
    kind = metrics if at % POSTS_EVERY == 0 else get_list
    return kind(routes, headers, at, names)


LIST = Form("GET list", get_list)
POST_LIST = Form("POST list", post_list)
POST_NAMED = Form("POST named", post_named, lambda routes: routes.names)
ALL = Form("GET all", get_all, lambda routes: routes.all is not None)
BROWSERS = Form("GET list, browser", from_browser)
MIXED = Form("mixed", mixed)
METRICS_ONLY = Form("metrics post", metrics)
HEALTH_ONLY = Form("health check", health)

IDENTITY, GZIP = "identity", "gzip"


def headers_of(routes: Routes, encoding: str) -> Headers:
    """Return the headers that every request has."""
    return {"Host": "flags.example.com", "Authorization": routes.key, "Accept-Encoding": encoding}


def spread(names: list[str], wanted: int = NAMED) -> list[str]:
    """Return so many of the names, or all, evenly over the whole list."""
    return [names[at * len(names) // wanted] for at in range(wanted)] if len(names) > wanted else names


def records(requests: Iterable[Request]) -> Iterator[bytes]:
    """Return the records of the load generator's file."""
    for kind, content in requests:
        yield b"%d %d\n" % (kind, len(content))
        yield content


def write(path: Path, form: Form, routes: Routes, encoding: str, users: int, names: list[str]) -> Path:
    """Write the requests of so many users and return the file."""
    headers = headers_of(routes, encoding)
    chosen = spread(names)
    with path.open("wb") as file:
        file.writelines(records(form.build(routes, headers, at, chosen) for at in range(users)))
    return path
