"""Requests of an attacker who wants to fill memory, labels or logs, or to get in: none may do harm or cost a connection."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from harness import prepared
from harness.prepared import Headers, Routes, compact, raw

EXPECTED = frozenset({200, 400, 401, 404, 405, 415})
ODD = (
    '"',
    "\\",
    "\n",
    "{",
    "}",
    "=",
    ",",
    " ",
    "\x00",
    "é",
    "🧦",
    "%0d%0a",
    "le=",
    "\u2028",
    "__name__",
    "../",
    "<b>",
    "a" * 300,
)
BUCKET = {"start": "2026-11-01T10:00:00.000Z", "stop": "2026-11-01T10:01:00.000Z"}

Build = Callable[[Routes, Headers, random.Random], bytes]


def word(rng: random.Random) -> str:
    """Return a word that was never used before."""
    return rng.choice(ODD) + f"{rng.getrandbits(64):x}" + rng.choice(ODD)


def strange_path(routes: Routes, headers: Headers, rng: random.Random) -> bytes:
    """Ask for what is not there."""
    return raw(rng.choice(["GET", "POST", "PUT", "DELETE"]), f"{routes.enabled}/{quote(word(rng), safe='')}", headers)


def strange_query(routes: Routes, headers: Headers, rng: random.Random) -> bytes:
    """Evaluate for a context with names that no other context has."""
    pairs = "&".join(f"{quote(word(rng), safe='')}={quote(word(rng), safe='')}" for _ in range(8))
    return raw("GET", f"{routes.enabled}?{pairs}", headers)


def strange_usage(routes: Routes, headers: Headers, rng: random.Random) -> bytes:
    """Report the usage of toggles that do not exist."""
    toggles = {word(rng): {"yes": rng.randrange(9), "no": 1, "variants": {word(rng): 1}} for _ in range(10)}
    given = {"appName": word(rng), "instanceId": word(rng), "bucket": {**BUCKET, "toggles": toggles}}
    return raw("POST", routes.metrics, headers, compact(given))


def strange_sdk(routes: Routes, headers: Headers, rng: random.Random) -> bytes:
    """Register an SDK of an odd name."""
    given = {"appName": word(rng), "instanceId": word(rng), "interval": 1, "started": BUCKET["start"]}
    path = routes.metrics.replace("/metrics", "/register")
    return raw("POST", path, headers, compact({**given, "strategies": [word(rng)]}))


def stranger(routes: Routes, headers: Headers, rng: random.Random) -> bytes:
    """Send a guessed key."""
    return raw("GET", routes.enabled, headers | {"Authorization": f"{rng.getrandbits(256):x}"})


def spoofed(routes: Routes, headers: Headers, rng: random.Random) -> bytes:
    """Send forged identity and address headers."""
    claims = {
        "X-Forwarded-For": ", ".join(str(rng.getrandbits(32)) for _ in range(20)),
        "Origin": f"https://{rng.getrandbits(64):x}.example",
        "If-None-Match": f'W/"{rng.getrandbits(128):x}"',
        "User-Agent": f"{rng.getrandbits(256):x}",
        "Accept-Encoding": f"gzip;q=0.{rng.randrange(1, 999)}, br, *;q=0",
    }
    return raw("GET", routes.enabled, headers | claims)


def broken(routes: Routes, headers: Headers, rng: random.Random) -> bytes:
    """Send a malformed body."""
    body = rng.choice([b"{", b"[1]", b'{"toggles":7}', b"\xff\xfe", b'{"context":{"userId":[]}}', b"[" * 500])
    return raw("POST", rng.choice([routes.enabled, routes.metrics]), headers, body)


def unknown_names(routes: Routes, headers: Headers, rng: random.Random) -> bytes:
    """Look up toggles that do not exist."""
    return raw("POST", routes.enabled, headers, compact({"toggles": [word(rng) for _ in range(20)], "context": {}}))


KINDS: tuple[Build, ...] = (
    strange_path,
    strange_query,
    strange_usage,
    strange_sdk,
    stranger,
    spoofed,
    broken,
    unknown_names,
)


def write(path: Path, routes: Routes, count: int, seed: int = 1) -> Path:
    """Write so many requests and return the file."""
    rng = random.Random(seed)
    headers = prepared.headers_of(routes, prepared.GZIP)
    with path.open("wb") as file:
        for at in range(count):
            file.writelines(prepared.records([(prepared.EVALUATION, KINDS[at % len(KINDS)](routes, headers, rng))]))
    return path
