"""Unleash Edge and ours, as `flagsvc migrate` prints it, beside each other on one upstream: an environment for each document."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from diff_documents import with_marker
from diff_pair import Connection, Reply
from diff_requests import Question
from edge_documents import renumbered
from peer_scenes import TOML
from peer_written import Written, migrate, ours

from support import processes
from support.fake_upstream import FakeUpstream, fake_upstream, granted

Json: TypeAlias = dict[str, Any]

FRONTEND = "/api/frontend"
OWN_NAME = "shop-proxy"
HOST_NAME = "Some-Host"
"""What ours takes for the name of its host."""
SECONDS = {"FEATURES_REFRESH_INTERVAL_SECONDS": "1", "METRICS_INTERVAL_SECONDS": "3600"}
LOAD_S = 60.0


def start_token(number: int) -> str:
    """Return the token with which a proxy asks for the document of an environment."""
    return f"*:e{number}.start"


def page_token(number: int) -> str:
    """Return the token with which a page asks about an environment."""
    return f"*:e{number}.page"


@dataclass
class Pair:
    """Both proxies, their upstream, and an open connection to each. Environments have numbers."""

    upstream: FakeUpstream
    edge: processes.Program
    ours: processes.Program
    connections: tuple[Connection, Connection]
    environments: int
    loads: int = 0
    served: dict[int, str] = field(default_factory=dict)

    def serve(self, documents: Sequence[Json]) -> None:
        """Give each environment its document, with a marker at its end."""
        for number, document in enumerate(documents):
            self.loads += 1
            content = with_marker(document, self.loads)
            self.served[number] = content["features"][-1]["name"]
            self.upstream.serve(start_token(number), content)

    def load(self, documents: Sequence[Json]) -> None:
        """Give each environment its document, and return when both proxies answer from all of them."""
        self.serve([renumbered(each, 10 * (self.loads + at)) for at, each in enumerate(documents, 1)])
        for program, connection in zip((self.edge, self.ours), self.connections, strict=True):
            for number in range(len(documents)):
                program.wait(
                    lambda number=number, connection=connection: self.has_loaded(connection, number),  # type: ignore[misc]
                    f"serving the document of environment {number}",
                    LOAD_S,
                )

    def has_loaded(self, connection: Connection, number: int) -> bool:
        """Return whether a proxy answers from the document that an environment has now."""
        question = addressed(Question("GET", f"/features/{self.served[number]}"), number)
        return connection.ask(question).status == 200

    def ask(self, number: int, question: Question) -> tuple[Reply, Reply]:
        """Return Edge's answer and ours to a question about an environment."""
        sent = addressed(question, number)
        edge, mine = (connection.ask(sent) for connection in self.connections)
        return edge, mine

    def ask_all(self, number: int, questions: Sequence[Question]) -> list[tuple[Reply, Reply]]:
        """Return both answers to each question, the questions sent behind each other without waiting."""
        content = b"".join(addressed(question, number).content() for question in questions)
        for connection in self.connections:
            connection.send(content)
        sides = [[connection.receive() for _ in questions] for connection in self.connections]
        return list(zip(*sides, strict=True))


def addressed(question: Question, number: int) -> Question:
    """Return a question as a page of an environment sends it."""
    return replace(question, base=FRONTEND, key=page_token(number))


@contextmanager
def pair(program: str, environments: int) -> Iterator[Pair]:
    with ExitStack() as stack:
        upstream = stack.enter_context(fake_upstream({"version": 2, "features": []}))
        numbers = range(environments)
        upstream.tokens = {start_token(each): granted("client", environment=f"e{each}") for each in numbers}
        upstream.tokens |= {page_token(each): granted("frontend", environment=f"e{each}") for each in numbers}
        yield start(upstream, program, environments, stack)


def start(upstream: FakeUpstream, program: str, environments: int, stack: ExitStack) -> Pair:
    """Start Edge, and ours from what `flagsvc migrate` prints for it."""
    folders = [stack.enter_context(processes.scratch()) for _ in range(2)]
    ports = [processes.free_port() for _ in range(2)]
    given = [variables(upstream, port, environments) for port in ports]
    command: list[object] = [program, "edge"]
    edge = stack.enter_context(
        processes.running("edge", command, env=given[0] | {"RUST_LOG": "error"}, folder=folders[0], stop=signal.SIGKILL)
    )
    mine = stack.enter_context(ours(migrated(given[1], folders[1]), TOML, folders[1]))
    for each, port in zip((edge, mine), ports, strict=True):
        url = f"http://127.0.0.1:{port}/internal-backstage/ready"
        each.wait(lambda url=url: processes.answers(url), "ready")  # type: ignore[misc]
    edge_connection, our_connection = (Connection(port) for port in ports)
    for connection in (edge_connection, our_connection):
        stack.callback(connection.close)
    return Pair(upstream, edge, mine, (edge_connection, our_connection), environments)


def variables(upstream: FakeUpstream, port: int, environments: int) -> dict[str, str]:
    return {
        "UPSTREAM_URL": upstream.url.removesuffix("/api"),
        "TOKENS": ",".join(map(start_token, range(environments))),
        "APP_NAME": OWN_NAME,
        "PORT": str(port),
        "INTERFACE": "127.0.0.1",
        **SECONDS,
    }


def migrated(given: dict[str, str], folder: Path) -> str:
    return migrate(Written([], given), TOML, folder)
