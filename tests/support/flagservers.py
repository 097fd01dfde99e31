"""Flag servers of ours for tests: `our_flag_server` as a process, `app_client` in this one, without a socket."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from flagsvc.core.clock import Clock, SystemClock
from flagsvc.frontend.contract import make_frontend
from flagsvc.http.server.asgi import AsgiApp
from flagsvc.server.api.asgi import FlagServerContract
from flagsvc.server.api.call import ApiContext
from flagsvc.server.api.pipeline import Pipeline
from flagsvc.server.api.route import Route
from flagsvc.server.api.routes import ROUTES
from flagsvc.server.application import PAGE_ROUTES, announce_news, load_keyring
from flagsvc.server.pages.page import error_page
from flagsvc.server.sign_in.ways import SignInWays
from flagsvc.server.store.documents import Documents
from flagsvc.server.store.seed.once import FirstSecrets
from flagsvc.server.store.store import open_store
from flagsvc.settings.server import ServerOptions
from flagsvc.testing import RecordingLog
from support import processes
from support.databases import new_file
from support.planting import plant

ADMIN_SECRET = "*:*.admin-secret-of-tests"
BACKEND_SECRET = "*:development.backend-secret-of-tests"
FRONTEND_SECRET = "*:development.frontend-secret-of-tests"
USER_SECRET = "user:secret-of-the-admin-user"
EDITOR_SECRET = "user:secret-of-the-editor"
VIEWER_SECRET = "user:secret-of-the-viewer"
BODY_LIMIT = 512_000
SECONDS = 30.0
FILE = "flags.db"

GIVEN: dict[str, Any] = {
    "users": [
        {"name": "boss", "rootRole": "admin"},
        {"name": "writer", "rootRole": "editor"},
        {"name": "reader", "rootRole": "viewer"},
    ],
    "tokens": [
        {"type": "admin", "secret": ADMIN_SECRET},
        {"type": "backend", "secret": BACKEND_SECRET},
        {"type": "frontend", "secret": FRONTEND_SECRET},
        {"type": "personal", "user": "boss", "secret": USER_SECRET},
        {"type": "personal", "user": "writer", "secret": EDITOR_SECRET},
        {"type": "personal", "user": "reader", "secret": VIEWER_SECRET},
    ],
}
"""The state that a server of tests starts with: a token of each kind, a user of each root role."""


@dataclass(frozen=True)
class AppClient:
    """A flag server in this process. `server` has the parts that its handlers use; `log` has its log lines; `peer` asks.

    `scheme` is that of the connection.
    """

    app: AsgiApp
    server: ApiContext
    log: RecordingLog
    peer: str = "203.0.113.7"
    scheme: str = "http"

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = USER_SECRET,
        headers: Mapping[str, str | None] | None = None,
        chunks: Sequence[bytes] | None = None,
        more: Sequence[tuple[str, str]] = (),
    ) -> processes.Answer:
        """Send one request and return its answer. `body` goes as JSON unless it is bytes; `chunks` come without a length.

        `token` is the secret of the request, None for none. `headers` win over it, and a header with the value None is not sent.
        `more` are further lines.
        """
        sent: dict[str, str | None] = {} if token is None else {"authorization": token}
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        if body is not None:
            sent |= {"content-type": "application/json", "content-length": str(len(content))}
        if chunks is not None:
            sent |= {"content-type": "application/json", "transfer-encoding": "chunked"}
        sent |= {name.lower(): value for name, value in (headers or {}).items()}
        pieces = [content] if chunks is None else list(chunks)
        whole = [*((name, value) for name, value in sent.items() if value is not None), *more]
        connection = {"client": (self.peer, 4711), "scheme": self.scheme}
        return asyncio.run(asyncio.wait_for(_exchange(self.app, method, path, whole, pieces, connection), SECONDS))

    def get(self, path: str, **given: Any) -> processes.Answer:
        return self.ask("GET", path, **given)

    def post(self, path: str, body: object = None, **given: Any) -> processes.Answer:
        return self.ask("POST", path, body, **given)

    def put(self, path: str, body: object = None, **given: Any) -> processes.Answer:
        return self.ask("PUT", path, body, **given)

    def delete(self, path: str, **given: Any) -> processes.Answer:
        return self.ask("DELETE", path, **given)


async def _exchange(
    app: AsgiApp,
    method: str,
    path: str,
    headers: Sequence[tuple[str, str]],
    chunks: Sequence[bytes],
    connection: Mapping[str, object],
) -> processes.Answer:
    """Play an ASGI server for one request. `connection` are the keys of the scope that tell of it."""
    place, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": place,
        "raw_path": quote(place, safe="/%:@!$&'()*+,;=~-._").encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        **connection,
    }
    left = list(chunks)
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        body = left.pop(0) if left else b""
        return {"type": "http.request", "body": body, "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *parts = sent
    names: dict[str, str] = {}
    for name, value in ((name.decode(), value.decode("latin-1")) for name, value in start["headers"]):
        names[name] = f"{names[name]}\n{value}" if name in names else value
    return processes.Answer(start["status"], names, b"".join(part["body"] for part in parts))


@lru_cache(8)
def planted(state: str) -> bytes:
    """Return an SQLite database with a state that is written as JSON. A copy of it takes a third of the time of planting."""
    with processes.scratch() as folder:
        path = folder / FILE
        path.write_bytes(new_file())
        store = open_store(str(path), SystemClock(), RecordingLog())
        try:
            with store.writing(None) as tx:
                plant(tx, json.loads(state))
        finally:
            store.close()
        return path.read_bytes()


def is_new(database: str) -> bool:
    """Return whether a database is an SQLite file that is up to date and otherwise new."""
    path = Path(database.removeprefix("sqlite:///"))
    return path.exists() and path.read_bytes() == new_file()


@contextmanager
def app_client(
    database: str,
    *,
    given: Mapping[str, Any] | None = None,
    routes: Sequence[Route] = (*ROUTES, *PAGE_ROUTES),
    clock: Clock | None = None,
    body_limit: int = BODY_LIMIT,
    base: str = "",
    url: str = "",
    ways: SignInWays | None = None,
    seeded: bool = True,
    **options: Any,
) -> Iterator[AppClient]:
    """Give a flag server on a database in this process: GIVEN, and what of `given` comes on top (lists are joined).

    A file that does not exist is made up to date. With `seeded` false the database stays as it is. `options` are for the frontend
    API.
    """
    log, time = RecordingLog(), clock or SystemClock()
    state = merged(GIVEN, given or {}) if seeded else None
    if seeded:
        prepare(database)
        if clock is None and is_new(database):
            Path(database.removeprefix("sqlite:///")).write_bytes(planted(json.dumps(state)))
            state = None
    with ExitStack() as parts:
        store = open_store(database, time, log)
        parts.callback(store.close)
        if state is not None:
            with store.writing(None) as tx:
                plant(tx, state)
        keyring = load_keyring(store, time, log)
        server = ApiContext(store, Documents(store, time, log), keyring, time, log, url, base, ways=ways or SignInWays())
        parts.callback(server.renewal.close)
        announce_news(server)
        frontend = partial(make_frontend, server, ServerOptions(base_path=base, **options))
        pipeline = Pipeline(routes, server, body_limit=body_limit, error_page=partial(error_page, base))
        contract = FlagServerContract(pipeline, frontend)
        parts.callback(contract.close)
        yield AppClient(AsgiApp(contract, _nothing, _nothing), server, log)


def what_changed(row: Any) -> Any:
    """Return the content of an event's row: both sides of a change, or its only side."""
    if row.before is None or row.data is None:
        return row.data if row.before is None else row.before
    return {"before": row.before, "after": row.data}


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return one state of two: lists are joined, of anything else the second wins."""
    both = {**first, **second}
    return both | {name: [*first[name], *second[name]] for name in first.keys() & second.keys() if isinstance(first[name], list)}


async def _nothing() -> None:
    """Do nothing: the parts run already."""


@dataclass(frozen=True)
class OurFlagServer:
    """A running flag server of ours: `url` ends in `/api`, like the real one's."""

    url: str
    program: processes.Program

    @property
    def root(self) -> str:
        """The address without `/api`."""
        return self.url.removesuffix("/api")

    def first_secrets(self, database: str | Path) -> FirstSecrets:
        """Return a link and a token, from the commands that a first start prints."""
        pattern = r"flagsvc (server (?:sign-in-link|token create) [\w :/.-]+)"
        commands = re.findall(pattern, self.program.output())
        env = {"FLAGSVC_DATABASE_URL": str(database)}
        link, token = (processes.call(*each.split(), folder=Path(database).parent, env=env).out.strip() for each in commands)
        assert self.ask("GET", "/admin/user", token=token).status == 200, "the server does not know the token"
        return FirstSecrets(token, link, "admin")

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Have the server answer nothing until the block ends."""
        self.program.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.program.process.send_signal(signal.SIGCONT)

    def ask(self, method: str, path: str, body: object = None, *, token: str | None = USER_SECRET) -> processes.Answer:
        headers = {} if token is None else {"Authorization": token}
        return processes.ask(self.url + path, method=method, headers=headers, body=body)

    def admin(self, path: str, body: object = None, method: str = "") -> Any:
        """Call the admin API as an administrator, with POST if there is a body, and return the answer.

        Other statuses than success fail.
        """
        answer = self.ask(method or ("GET" if body is None else "POST"), f"/admin{path}", body)
        assert answer.status < 300, (path, answer.status, answer.body, self.program.output()[-2000:])
        return answer.json() if answer.body else None


def prepare(database: str) -> None:
    """Make an SQLite file up to date if it does not exist yet. An existing file, or a database with a URL, stays as it is."""
    if "://" not in database and not Path(database).exists():
        Path(database).write_bytes(new_file())


@contextmanager
def our_flag_server(
    *arguments: str,
    database: str | None = None,
    given: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    seeded: bool = True,
    base: str = "",
    before: Sequence[object] = (),
    **env: str,
) -> Iterator[OurFlagServer]:
    """Run our flag server as a process until the block ends; it is ready when the block begins.

    Its database is `database`, else an SQLite file in `folder`, else one of its own that is thrown away. It starts with GIVEN, and
    what of `given` comes on top, on a new file that is up to date; unless `seeded` is false, then it makes the file. `base` is its
    base path, with a slash before it. `before` are the words before its command.
    """
    port = processes.free_port()
    with ExitStack() as made:
        place = folder or made.enter_context(processes.scratch())
        command = [*before, *processes.flagsvc(), "server", "--port", str(port), "--host", "127.0.0.1", *arguments]
        root = f"http://127.0.0.1:{port}{base}"
        if base:
            command += ["--base-path", base]
        if seeded:
            seed = place / "seed.json"
            seed.write_text(json.dumps(merged(GIVEN, given or {})))
            command += ["--seed", str(seed)]
            prepare(database or str(place / FILE))
        variables = {"FLAGSVC_DATABASE_URL": database or str(place / FILE), **env}
        program = made.enter_context(processes.running("flagsvc-server", command, env=variables, folder=place))
        program.wait(lambda: processes.answers(f"{root}/health"), "ready", 60)
        yield OurFlagServer(f"{root}/api", program)
