"""What must hold of every answer of the proxy to any request (behaviour: Order of checks; CORS; Evaluation endpoints)."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass, field
from typing import Any

KEPT_BY_NOBODY = ("no-cache", "private, no-cache")
KEPT_BRIEFLY = ("public, max-age=2", "private, max-age=2")
TEXT_STATUSES = {401, 501, 503}
STATUSES = {200, 204, 304, 400, 401, 403, 404, 405, 413, 414, 415, 431, 501}
EVALUATION = re.compile(r"(/proxy|/proxy/all)/*", re.IGNORECASE)
FRONTEND = re.compile(r"/+api(/.*)?", re.IGNORECASE | re.DOTALL)
FRONTEND_EVALUATION = re.compile(r"/+api/+(frontend|proxy)(/+all)?/*", re.IGNORECASE)
ALWAYS = re.compile(r"(|/proxy/live|/livez|/internal-backstage/health)/*", re.IGNORECASE)
"""What is answered without a configuration, beside OPTIONS: the first page and liveness."""
TOGGLE = {"name": str, "enabled": bool, "variant": dict, "impressionData": bool}
FRONTEND_TOGGLE = TOGGLE | {"impression_data": bool}
VARIANT = {"name": str, "enabled": bool}
REPEATED_STATE = {"feature_enabled", "featureEnabled"}
"""What the option for the feature's state adds to each variant."""


@dataclass(frozen=True)
class Sent:
    """One request as bytes: what an ASGI server hands over. `body` comes in these pieces."""

    method: str = "GET"
    path: bytes = b"/proxy"
    query: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: tuple[bytes, ...] = ()

    def has(self, name: bytes) -> bool:
        return any(each == name for each, _ in self.headers)


@dataclass(frozen=True)
class Got:
    """One answer."""

    status: int
    fields: list[tuple[bytes, bytes]]
    body: bytes
    headers: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        names = [name for name, _ in self.fields]
        assert len(names) == len(set(names)), f"a header is there twice: {self.fields}"
        decoded = {name.decode(): value.decode("latin-1") for name, value in self.fields}
        object.__setattr__(self, "headers", decoded)

    def content(self) -> bytes:
        """Return the body without its content coding."""
        return gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body

    def json(self) -> Any:
        """Return the body read as JSON, strictly."""
        return json.loads(self.content().decode("utf-8"), parse_constant=_no_constant)


def _no_constant(name: str) -> None:
    raise AssertionError(f"the body holds {name}, which is not JSON")


def check(sent: Sent, got: Got, *, origin: str | None, base: str, repeats_state: bool = False) -> None:
    """Check one answer. `origin` is the Access-Control-Allow-Origin of every answer, None where it depends."""
    assert got.status in STATUSES, (got.status, got.body[:300])
    check_head(sent, got)
    if origin is not None:
        assert got.headers.get("access-control-allow-origin") == origin
    if got.status >= 400:
        check_error(sent, got, base)
    elif sent.method == "OPTIONS":
        assert (got.body, got.headers["content-length"]) == (b"", "0")
    elif got.status == 304:
        assert got.body == b"" and "content-length" not in got.headers
        assert sent.method in ("GET", "HEAD") or is_at(FRONTEND, sent, base)
        assert sent.has(b"if-none-match") and got.headers["etag"]
    elif is_at(FRONTEND_EVALUATION, sent, base) and sent.method != "HEAD":
        check_toggles(got.json(), repeats_state=True, toggle_shape=FRONTEND_TOGGLE)
        assert got.headers["cache-control"] in KEPT_BY_NOBODY and got.headers["etag"].startswith('W/"')
    elif is_at(EVALUATION, sent, base) and sent.method != "HEAD":
        check_toggles(got.json(), repeats_state=repeats_state)
        assert got.headers["cache-control"] in KEPT_BRIEFLY and got.headers["etag"].startswith('W/"')


def check_unready(sent: Sent, got: Got) -> None:
    """Check an answer of a proxy that has no configuration yet. At the first page, an SDK gets a 404."""
    check_head(sent, got)
    if got.status >= 400:
        check_error(sent, got, "")
    if sent.method == "OPTIONS":
        assert got.status in {204, 431, 414}
    elif ALWAYS.fullmatch(sent.path.decode("latin-1")):
        assert got.status in {200, 304, 404, 405, 431, 414}
    else:
        assert got.status in {503, 431, 414}


def check_head(sent: Sent, got: Got) -> None:
    """Check what holds of the head of any answer."""
    for name, value in got.fields:
        assert re.fullmatch(rb"[a-z0-9-]+", name), name
        assert not re.search(rb"[\r\n\0]", value), (name, value)
    assert "content-length" in got.headers or got.status == 304
    if sent.method == "HEAD":
        assert got.body == b""
    elif got.status != 304:
        assert int(got.headers["content-length"]) == len(got.body)
    assert got.body == b"" or got.headers["content-type"]


def check_error(sent: Sent, got: Got, base: str) -> None:
    """Check what holds of any error."""
    frontend = is_at(FRONTEND, sent, base)
    assert got.headers["cache-control"] == "no-store"
    assert "etag" not in got.headers
    kind = got.headers["content-type"]
    if got.status in TEXT_STATUSES and not frontend:
        assert kind == "text/plain; charset=utf-8"
    else:
        assert kind == "application/json; charset=utf-8"
    if got.status == 405:
        assert got.headers["allow"]
    if got.status == 503:
        assert got.headers["retry-after"] == "1"
    if sent.method == "HEAD":
        return
    if frontend:
        check_frontend_problem(got)
    elif got.status in TEXT_STATUSES:
        assert got.content().decode("utf-8")
    else:
        check_problem(got)


def check_problem(got: Got) -> None:
    """Check the JSON body of an error: a message, and where it is about the shape, what is wrong at which place."""
    content = got.json()
    assert set(content) - {"validation"} == {"error"} and isinstance(content["error"], str)
    assert "Traceback" not in content["error"] and ".py" not in content["error"]
    for problem in content.get("validation", []):
        assert set(problem) == {"instancePath", "message"}
        assert problem["instancePath"].startswith(("/body", "/query")) and isinstance(problem["message"], str)


def check_frontend_problem(got: Got) -> None:
    """Check the JSON body of an error of the frontend API: a message, and for a 400 what is wrong at which place."""
    content = got.json()
    assert isinstance(content["message"], str) and content["message"]
    assert "Traceback" not in content["message"] and ".py" not in content["message"]
    if set(content) != {"message"}:
        assert got.status == 400 and set(content) == {"message", "name", "details"}
        assert all(each["path"].startswith(("/body", "/query")) for each in content["details"])


def is_at(paths: re.Pattern[str], sent: Sent, base: str) -> bool:
    """Return whether a request is for one of these paths below the base path."""
    path = sent.path.decode("latin-1")
    if not path.lower().startswith(base.lower()):
        return False
    return paths.fullmatch(path[len(base) :]) is not None


def check_toggles(content: Any, *, repeats_state: bool = False, toggle_shape: dict[str, type] = TOGGLE) -> None:
    """Check the shape of an evaluation answer (specification: Toggle; Variant; Toggle list)."""
    assert set(content) == {"toggles"} and isinstance(content["toggles"], list)
    more = REPEATED_STATE if repeats_state else set()
    for toggle in content["toggles"]:
        assert {name: type(value) for name, value in toggle.items()} == toggle_shape, toggle
        variant = dict(toggle["variant"])
        payload = variant.pop("payload", None)
        for name in more & variant.keys():
            assert variant.pop(name) is toggle["enabled"]
        assert {name: type(value) for name, value in variant.items()} == VARIANT, toggle
        assert payload is None or all(isinstance(value, str) for value in payload.values()), toggle
        assert toggle["enabled"] or not variant["enabled"], toggle
