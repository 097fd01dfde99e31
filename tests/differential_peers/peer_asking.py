"""Asks a running proxy all rows of a scene."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Sequence
from dataclasses import dataclass

from peer_flags import DEVELOPMENT, PRODUCTION, document
from peer_meaning import Record, meaning
from peer_rows import Row

from support.processes import Answer

CHANGING = "metrics"
"""The beginning of a page whose next copy is another one."""


@dataclass(frozen=True)
class Asker:
    """Where a proxy listens, in which header it wants its keys, and of which environment it is where a key does not say it."""

    port: int
    header: str = "Authorization"
    base: str = ""
    environment: str = DEVELOPMENT

    def ask(self, row: Row, condition: str = "") -> Answer:
        """Send the request of a row and return the answer; status 0 if the connection ends without one."""
        headers = {**({self.header: row.key} if row.key else {}), **({"If-None-Match": condition} if condition else {})}
        content = row.body if row.body is None or isinstance(row.body, bytes) else json.dumps(row.body).encode()
        if content is not None and row.type:
            headers["Content-Type"] = row.type
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # answered before the whole body was sent
                connection.request(row.method, self.base + row.path, content, {**headers, **row.headers})
            try:
                response = connection.getresponse()
            except ConnectionError:
                return Answer(0, {}, b"")
            fields = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, fields, response.read())

    def record(self, row: Row) -> Record:
        """Return what the answer to a row means, and how the same request with its entity tag is answered."""
        answer = self.ask(row)
        if row.again:
            answer = self.ask(row, row.again.replace("TAG", answer.headers["etag"].removeprefix("W/")))
        environment = row.environment or (PRODUCTION if f":{PRODUCTION}." in row.key else self.environment)
        found = meaning(answer, document(environment), is_foreign="Origin" in row.headers)
        if answer.status == 200 and "etag" in answer.headers and (row.method in ("GET", "HEAD") or "toggles" in found):
            found["etag"] = True
            if not (row.again or row.reaches_upstream or str(found.get("body", "")).startswith(CHANGING)):
                found["again"] = self.ask(row, answer.headers["etag"]).status
        return found

    def record_all(self, rows: Sequence[Row]) -> dict[str, Record]:
        """Return the records of rows by title."""
        return {row.title: self.record(row) for row in rows}
