"""Questions that every run asks once: those whose answer is a status, and forms that random questions do not take."""

from __future__ import annotations

import gzip
import json
from typing import Any

from diff_requests import Question

from support import processes


def question(method: str, target: str, body: Any = None, **more: Any) -> Question:
    """Return a question that is sent alone; a body that is not bytes is sent as JSON."""
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    return Question(method, target, content, alone=True, **more)


def with_key(key: str, method: str = "GET", target: str = "", body: Any = None, **more: Any) -> Question:
    """Return a question that carries this key."""
    return question(method, target, body, key=key, **more)


def with_type(content_type: str | None, body: bytes = b"{}", *headers: str) -> Question:
    """Return a POST whose body is declared to be of a type."""
    return question("POST", "", body, content_type=content_type, headers=headers)


BUCKET = {"start": "2026-01-01T00:00:00.000Z", "stop": "2026-01-01T00:01:00.000Z"}
USAGE = {
    "appName": "a",
    "instanceId": "b",
    "bucket": {**BUCKET, "toggles": {"x": {"yes": 1, "no": 2, "variants": {"v": 1}}}},
}
REGISTRATION = {"appName": "a", "interval": 1000, "started": BUCKET["start"], "strategies": ["default"]}


def usage(**changes: Any) -> dict[str, Any]:
    """Return a report of usage with some fields changed, or left out where they are None."""
    return {name: value for name, value in {**USAGE, **changes}.items() if value is not None}


def registration(**changes: Any) -> dict[str, Any]:
    """Return a registration with some fields changed, or left out where they are None."""
    return {name: value for name, value in {**REGISTRATION, **changes}.items() if value is not None}


KEYS = [
    *(with_key(key) for key in ("", "wrong", f" {processes.KEY} ", processes.KEY.upper(), processes.SERVER_SIDE_TOKEN)),
    *(with_key("wrong", "POST", target) for target in ("", "/all")),
    with_key("wrong", "POST", "/client/metrics", body=USAGE),
    with_key("wrong", "POST", "/client/register", body=REGISTRATION),
    *(with_key(key, target="/client/features") for key in ("", processes.KEY, processes.SERVER_SIDE_TOKEN)),
    *(with_key("", target=target) for target in ("/health", "/internal-backstage/prometheus", "/all")),
    with_key("", headers=("If-None-Match: *",)),
]
METHODS = [
    *(
        question(method, target)
        for method in ("HEAD", "OPTIONS")
        for target in ("", "/all", "/health", "/client/features")
    ),
    *(question("OPTIONS", target, key="") for target in ("", "/unknown")),
    *(question("GET", target) for target in ("/", "/?userId=1", "/all/", "/health/", "/ALL", "/Health")),
    *(question("GET", "", base=base) for base in ("/PROXY", "/Proxy", "/proxy/")),
    question("GET", "", headers=("If-None-Match: *",)),
    question("GET", "?userId=1", headers=('If-None-Match: "other", W/"more"',)),
]
BODIES = [
    *(
        with_type(kind)
        for kind in (None, "application/json; charset=utf-8", "APPLICATION/JSON", "application/json;charset=UTF-8")
    ),
    *(
        with_type(kind)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x", "*/*")
    ),
    *(
        with_type(kind)
        for kind in ("application/vnd.api+json", "application/json-patch+json", "text/json", "application/jsonx")
    ),
    *(with_type(f"application/json; charset={charset}") for charset in ("utf-16", "")),
    with_type("application/json", gzip.compress(b"{}"), "Content-Encoding: gzip"),
    with_type("application/json", b"{}", "Content-Encoding: identity"),
    with_type("application/json", "{}".encode("utf-16"), "Content-Encoding: identity"),
    question("POST", ""),
    question("POST", "/all"),
]
REPORTS = [
    *(question("POST", target, usage()) for target in ("/client/metrics", "/all/client/metrics")),
    question("POST", "/client/metrics", usage(appName=None)),
    *(  # type: ignore[var-annotated]
        question("POST", "/client/metrics", usage(bucket=bucket))
        for bucket in ({}, [], "x", BUCKET, {**BUCKET, "toggles": []})
    ),
    question("POST", "/client/metrics", usage(bucket={**BUCKET, "start": "yesterday", "toggles": {}})),
    question("POST", "/client/metrics", usage(extra=1, environment="x")),
    question("POST", "/client/register", registration()),
    *(question("POST", "/client/register", registration(**{name: None})) for name in REGISTRATION),
    *(  # type: ignore[var-annotated]
        question("POST", "/client/register", body)
        for body in ({}, [], registration(strategies="x"), registration(interval="x"))
    ),
]
QUESTIONS: tuple[Question, ...] = (*KEYS, *METHODS, *BODIES, *REPORTS)
