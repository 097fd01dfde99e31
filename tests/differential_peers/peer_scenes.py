"""The scenes: how each peer is started, and what it is asked then."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import peer_rows_edge
import peer_rows_edge_more
import peer_rows_reference
from peer_flags import DEVELOPMENT, OWN_NAME, PRODUCTION, Json, document
from peer_meaning import BULK, Record, meaning
from peer_rows import Row

from support.fake_upstream import FakeUpstream, Reply, granted
from support.processes import Answer

CHANGING = "metrics"
"""The beginning of a page that differs from copy to copy."""


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


EDGE, REFERENCE = "Unleash Edge", "@unleash/proxy"
START = f"*:{DEVELOPMENT}.start", f"*:{PRODUCTION}.start"
ONE_PROJECT = f"default:{PRODUCTION}.start"
BOOTSTRAP = "flags.json"


@dataclass(frozen=True, eq=False)
class Scene:
    """One way to start a peer. `variables` may name `{upstream}`, the root of its URL, `{port}` and `{folder}`.

    `tokens` are the proxy's tokens, each with the document that it opens. `ways` are the forms of the configuration that ours is
    migrated from, each with the form that ours is started from.
    """

    name: str
    peer: str
    variables: Mapping[str, str]
    rows: Sequence[Row]
    ways: Sequence[tuple[str, str]]
    tokens: Mapping[str, Json]
    subcommand: str = ""
    header: str = "Authorization"
    base: str = ""
    ready: str = "/internal-backstage/ready"
    environment: str = DEVELOPMENT

    def asker(self, port: int) -> Asker:
        """Return what asks a proxy at a port."""
        return Asker(port, self.header, self.base, self.environment)

    def variables_for(self, upstream: FakeUpstream, port: int, folder: Path) -> dict[str, str]:
        """Return the variables, and write the files that they name."""
        (folder / BOOTSTRAP).write_text(json.dumps(document(self.environment)))
        values = {"upstream": upstream.url.removesuffix("/api"), "port": str(port), "folder": str(folder)}
        return {name: text.format_map(values) for name, text in self.variables.items()}

    def prepare(self, upstream: FakeUpstream) -> None:
        """Give the upstream the tokens of the proxy and of callers, and their documents."""
        callers = {
            token: granted(kind, *projects, environment=environment)
            for token, (kind, projects, environment) in peer_rows_edge.TOKENS.items()
        }
        upstream.tokens = callers | {token: granted("client", environment=named(token)) for token in self.tokens}
        for token, content in self.tokens.items():
            upstream.serve(token, content)
        upstream.replies[BULK] = Reply(202)


def named(token: str) -> str:
    """Return the environment that a token names."""
    return token.partition(":")[2].partition(".")[0]


def of_project(content: Json, project: str) -> Json:
    """Return the part of a document that a token of one project opens."""
    return content | {"features": [each for each in content["features"] if each["project"] == project]}


ENVIRONMENT, ENV_FILE, COMPOSE, COMMAND = "environment", "env file", "compose file", "command line"
TOML, VARIABLES = "toml", "variables"
SECOND = {"FEATURES_REFRESH_INTERVAL_SECONDS": "1", "METRICS_INTERVAL_SECONDS": "1"}
OFTEN = {"UNLEASH_FETCH_INTERVAL": "1000", "UNLEASH_METRICS_INTERVAL": "1000", "UNLEASH_METRICS_JITTER": "0"}
SERVICE = {"EXP_SERVER_SIDE_SDK_CONFIG_TOKENS": peer_rows_reference.SERVICE_KEY}
SCENES = (
    Scene(
        "the reference",
        REFERENCE,
        {
            "UNLEASH_URL": "{upstream}/api",
            "UNLEASH_API_TOKEN": START[0],
            "UNLEASH_PROXY_CLIENT_KEYS": f"{peer_rows_reference.KEY},{peer_rows_reference.OTHER_KEY}",
            "UNLEASH_APP_NAME": OWN_NAME,
            "ENABLE_ALL_ENDPOINT": "true",
            "ENABLE_OAS": "true",
            "PORT": "{port}",
            **OFTEN,
            **SERVICE,
        },
        peer_rows_reference.PLAIN_ROWS,
        ((ENVIRONMENT, TOML), (ENV_FILE, VARIABLES), (COMPOSE, TOML)),
        {START[0]: document(DEVELOPMENT)},
        ready="/proxy/health",
    ),
    Scene(
        "the reference behind a gateway",
        REFERENCE,
        {
            "UNLEASH_URL": "{upstream}/api/",
            "UNLEASH_API_TOKEN": ONE_PROJECT,
            "UNLEASH_PROXY_SECRETS": peer_rows_reference.KEY,
            "UNLEASH_APP_NAME": OWN_NAME,
            "UNLEASH_ENVIRONMENT": PRODUCTION,
            "UNLEASH_PROJECT_NAME": "default",
            "PROXY_BASE_PATH": "/flags",
            "CLIENT_KEY_HEADER_NAME": "x-flag-key",
            "TRUST_PROXY": "loopback, 203.0.113.0/24",
            "CORS_ORIGIN": "https://shop.example.com, https://www.example.com",
            "CORS_MAX_AGE": "600",
            "LOG_LEVEL": "warn",
            "PROXY_PORT": "{port}",
            **OFTEN,
            **SERVICE,
        },
        peer_rows_reference.BEHIND_ROWS,
        ((COMPOSE, VARIABLES), (ENV_FILE, TOML)),
        {ONE_PROJECT: of_project(document(PRODUCTION), "default")},
        header="x-flag-key",
        base="/flags",
        ready="/proxy/health",
        environment=PRODUCTION,
    ),
    Scene(
        "Edge",
        EDGE,
        {
            "UPSTREAM_URL": "{upstream}",
            "TOKENS": ",".join(START),
            "PRETRUSTED_TOKENS": f"{peer_rows_edge.TRUSTED}@{PRODUCTION}",
            "APP_NAME": OWN_NAME,
            "PORT": "{port}",
            "INTERFACE": "127.0.0.1",
            **SECOND,
        },
        (*peer_rows_edge.PAGE_ROWS, *peer_rows_edge_more.SERVICE_ROWS),
        ((COMMAND, TOML), (ENV_FILE, VARIABLES), (COMPOSE, TOML)),
        dict(zip(START, map(document, (DEVELOPMENT, PRODUCTION)), strict=True)),
        subcommand="edge",
    ),
    Scene(
        "Edge behind a gateway",
        EDGE,
        {
            "UPSTREAM_URL": "{upstream}/",
            "TOKENS": START[1],
            "APP_NAME": OWN_NAME,
            "PORT": "{port}",
            "INTERFACE": "127.0.0.1",
            "BASE_PATH": "/flags",
            "EDGE_AUTH_HEADER": "X-Flag-Key",
            "TRUST_PROXY": "true",
            "PROXY_TRUSTED_SERVERS": "127.0.0.1,203.0.113.0/24",
            "DISABLE_ALL_ENDPOINT": "true",
            "CORS_ORIGIN": "https://shop.example.com,https://www.example.com",
            "CORS_METHODS": "GET,POST",
            "CORS_ALLOWED_HEADERS": "x-flag-key,if-none-match",
            "CORS_EXPOSED_HEADERS": "etag",
            "CORS_MAX_AGE": "600",
            "LOG_FORMAT": "json",
            **SECOND,
        },
        peer_rows_edge_more.BEHIND_ROWS,
        ((COMPOSE, VARIABLES), (ENVIRONMENT, TOML)),
        {START[1]: document(PRODUCTION)},
        subcommand="edge",
        header="X-Flag-Key",
        base="/flags",
        environment=PRODUCTION,
    ),
    Scene(
        "Edge offline",
        EDGE,
        {
            "BOOTSTRAP_FILE": f"{{folder}}/{BOOTSTRAP}",
            "FRONTEND_TOKENS": peer_rows_edge.WEB,
            "CLIENT_TOKENS": peer_rows_edge.SERVICE,
            "TRUST_PROXY": "true",
            "PORT": "{port}",
            "INTERFACE": "127.0.0.1",
        },
        peer_rows_edge_more.OFFLINE_ROWS,
        ((ENV_FILE, TOML), (COMMAND, VARIABLES)),
        {},
        subcommand="offline",
    ),
)
