"""The flag server that all proxies of the benchmark ask: documents of every size, registrations, metrics, Edge's validation.

`python upstream.py PORT`. The first part of the path says which document: a number of flags (`/350/api/client/features`), with
`-one` or `-all` behind it where one flag or every one is another each second. These are written beforehand, all of them when the
first is asked for: a server that writes 5,000 flags while another is measured takes the processor away from it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from isal import igzip

import documents
from harness import prepared

VERSIONS = 30
"""Seconds after which a changing document begins again."""
PATH = re.compile(r"/(\d+)(-one|-all)?(/.*)")


@functools.lru_cache(maxsize=8)
def base(flags: int) -> tuple[dict[str, Any], list[bytes]]:
    """Return a document and the bytes of each of its flags: what does not change is not written again every second."""
    document = documents.document(flags)
    return document, [prepared.compact(feature) for feature in document["features"]]


@functools.cache
def versions(flags: int, change: str) -> list[tuple[bytes, bytes, str]]:
    """Return a changing document as it is in each second."""
    return [body(flags, change, version) for version in range(VERSIONS)]


@functools.lru_cache(maxsize=16)
def body(flags: int, change: str | None, version: int) -> tuple[bytes, bytes, str]:
    """Return the bytes of a document, their gzip form and their tag."""
    document, features = base(flags)
    touched = {None: [], "-one": [version % flags] if flags else [], "-all": range(flags)}[change]
    current = list(features)
    for at in touched:
        current[at] = prepared.compact(documents.changed(document["features"][at], version))
    segments = prepared.compact(document["segments"])
    content = b'{"version":2,"features":[%b],"segments":%b}' % (b",".join(current), segments)
    return content, igzip.compress(content, 1), f'"{hashlib.sha256(content).hexdigest()[:16]}"'


def validated(tokens: list[str]) -> dict[str, Any]:
    """Return what Edge hears about tokens: whose secret begins with `frontend` is one."""
    kinds = {token: "frontend" if ".frontend" in token else "client" for token in tokens}
    known = [{"token": token, "type": kind, "environment": "development", "projects": ["*"]} for token, kind in kinds.items()]
    return {"tokens": known}


class Handler(BaseHTTPRequestHandler):
    """Answers as a flag server would; of what is reported, nothing is kept."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer with a document, or 304."""
        found = PATH.match(self.path)
        if not found or not found[3].startswith("/api/client/features"):
            return self.answer(404)
        flags, change = int(found[1]), found[2]
        now = int(time.time()) % VERSIONS
        content, packed, tag = versions(flags, change)[now] if change else body(flags, None, 0)
        if self.headers.get("If-None-Match", "").removeprefix("W/") == tag:
            return self.answer(304, tag=tag)
        zipped = "gzip" in self.headers.get("Accept-Encoding", "")
        return self.answer(200, packed if zipped else content, tag=tag, zipped=zipped)

    def do_POST(self) -> None:
        """Take what is posted; answer Edge's question about tokens."""
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.endswith("/edge/validate"):
            return self.answer(200, json.dumps(validated(json.loads(content)["tokens"])).encode())
        return self.answer(202)

    def answer(self, status: int, content: bytes = b"", tag: str = "", zipped: bool = False) -> None:
        """Send one answer."""
        self.send_response(status)
        if status != 304:
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Content-Type", "application/json")
        if tag:
            self.send_header("ETag", tag)
        if zipped:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Write no log."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.daemon_threads = True
    server.serve_forever()
