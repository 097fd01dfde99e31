"""A process with several environments in memory, whose every part carries a mark of its environment.

Each environment of each upstream has a mark: in the names and payloads of its flags, in its tokens, in what its callers report. So
all that leaves the process can be searched for marks that do not belong there.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.upstream import Fetched, UpstreamSettings
from flagsvc.settings.options import ProxyOptions
from flagsvc.testing import MemoryStore

UPSTREAMS = 2
SIDES = 3
"""Environments of each upstream."""
MARK = re.compile(r"mark\d\dx")
PROJECT = re.compile(r"mark\d\dx-p\d")
PROJECTS = ("p0", "p1")


@dataclass
class Side:
    """One environment as its upstream knows it: its document, its tokens, and whether it can be asked."""

    url: str
    name: str
    mark: str
    version: int = 0
    fault: str = ""
    is_empty: bool = False

    @property
    def api_token(self) -> str:
        return f"*:{self.name}.{self.mark}-up"

    def tokens(self) -> dict[str, tuple[str, list[str]]]:
        """Return the callers' tokens, each with its type and projects."""
        return {
            f"*:{self.name}.{self.mark}-front": ("frontend", ["*"]),
            f"p0:{self.name}.{self.mark}-front0": ("frontend", [f"{self.mark}-p0"]),
            f"[]:{self.name}.{self.mark}-front01": ("frontend", [f"{self.mark}-p0", f"{self.mark}-p1"]),
            f"*:{self.name}.{self.mark}-back": ("client", ["*"]),
            f"p1:{self.name}.{self.mark}-back1": ("backend", [f"{self.mark}-p1"]),
            f"*:{self.name}.{self.mark}-admin": ("admin", ["*"]),
            self.api_token: ("client", ["*"]),
        }

    def document(self) -> bytes:
        features = [self._feature(at) for at in range(0 if self.is_empty else 6)]
        return json.dumps({"version": 2, "features": features, "note": f"{self.mark} {self.version}"}).encode()

    def _feature(self, at: int) -> dict[str, object]:
        payload = {"type": "string", "value": f"{self.mark} {self.version}"}
        constraint = {"contextName": "region", "operator": "IN", "values": ["eu", f"{self.mark}-region"]}
        return {
            "name": f"{self.mark}-flag-{at}",
            "enabled": at != 5,
            "project": f"{self.mark}-{PROJECTS[at % 2]}",
            "strategies": [{"name": "default", "constraints": [constraint] if at == 3 else []}],
            "variants": [{"name": f"{self.mark}-v", "weight": 1000, "payload": payload}] if at % 2 else [],
        }


@dataclass
class Universe:
    """All upstreams with their environments, and what was sent to them."""

    sides: list[Side] = field(default_factory=list)
    sent: list[tuple[str, str]] = field(default_factory=list)
    """What each upstream was sent: the mark of the environment that asked, and the text."""
    is_validating: bool = True

    def __post_init__(self) -> None:
        """Make the sides. The upstreams have environments of the same names."""
        self.sides = [
            Side(f"http://upstream{u}.invalid/api", f"e{e}", f"mark{u}{e}x") for u in range(UPSTREAMS) for e in range(SIDES)
        ]

    def side_of(self, url: str, token: str) -> Side:
        """Return the environment that a token opens at an upstream."""
        return next(side for side in self.sides if side.url == url and side.api_token == token)

    def tokens(self) -> Iterator[tuple[str, Side]]:
        """Yield every token of callers with its environment."""
        for side in self.sides:
            for token in side.tokens():
                yield token, side


class MarkedUpstream:
    """Replaces `Upstream`: one environment of the universe."""

    def __init__(self, universe: Universe, given: UpstreamSettings) -> None:
        self._universe = universe
        self._side = universe.side_of(given.url, given.token)
        self._note(given.identity.app_name, given.identity.instance_id, given.project or "", given.name_prefix or "")

    async def get_features(self, etag: str | None) -> Fetched:
        await asyncio.sleep(0)  # as a request does, it lets other tasks run
        self._note(etag or "")
        self._refuse()
        body = self._side.document()
        tag = f'"{self._side.mark}-{hashlib.sha256(body).hexdigest()[:8]}"'
        return Fetched(None, tag) if etag == tag else Fetched(body, tag)

    async def register(self, payload: Mapping[str, object]) -> None:
        self._note(json.dumps(payload, default=str))
        self._refuse()

    send_metrics = register

    async def aclose(self) -> None:
        """Do nothing."""

    def renew(self, token: str) -> bool:
        """Use another token. It is of the same environment."""
        return False

    def _note(self, *texts: str) -> None:
        self._universe.sent.extend((self._side.mark, text) for text in texts)

    def _refuse(self) -> None:
        if self._side.fault:
            raise UpstreamError(self._side.fault, "no answer")


class MarkedSession:
    """Replaces the session for questions about tokens: one upstream of the universe."""

    def __init__(self, universe: Universe, url: str) -> None:
        self._universe = universe
        self._url = url

    async def validate(self, tokens: Sequence[str]) -> list[object]:
        """Return those tokens that any environment of this upstream has."""
        await asyncio.sleep(0)  # as a request does, it lets other tasks run
        for token in tokens:
            self._universe.sent.append((f"url {self._url}", token))
        if not self._universe.is_validating:
            raise UpstreamError("throttled", "no", status=429)
        known = {
            token: {"token": token, "type": kind, "projects": projects, "environment": side.name}
            for side in self._universe.sides
            if side.url == self._url
            for token, (kind, projects) in side.tokens().items()
        }
        return [known[token] for token in tokens if token in known]

    async def aclose(self) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Table:
    """An environment of the process: which side it serves, with which keys and options."""

    side: Side
    keys: tuple[str, ...]
    tokens: tuple[str, ...]
    looks_up: bool
    interval: int = 20

    def options(self) -> dict[str, Any]:
        return {
            "flagsvc_url": self.side.url,
            "flagsvc_api_token": self.side.api_token,
            "client_keys": list(self.keys),
            "exp_server_side_sdk_config_tokens": list(self.tokens),
            "token_validation": "upstream" if self.looks_up else "static",
            "refresh_interval": self.interval,
            "cors_origin": [f"https://{self.side.mark}.example"],
        }


def options_of(tables: Mapping[str, Table], store: MemoryStore, **more: Any) -> ProxyOptions:
    """Return the options of a process with these environments."""
    return ProxyOptions(
        flagsvc_url="http://nothing.invalid/api",
        environments={name: table.options() for name, table in tables.items()},
        storage_provider=store,
        metrics_interval=50,
        enable_all_endpoint=True,
        token_lookup_rate=1000,
        answer_cache_bytes=20_000,
        port=0,
        **more,
    )


def random_tables(random: Random, universe: Universe, former: Mapping[str, Table]) -> dict[str, Table]:
    """Return environments that differ from the former ones in a few places. Every key opens one of them."""
    tables = dict(former)
    for _ in range(random.randint(1, 3)):
        name = f"t{random.randrange(4)}"
        if name in tables and random.random() < 0.3 and len(tables) > 1:
            del tables[name]
        else:
            tables[name] = Table(random.choice(universe.sides), (), (), random.random() < 0.5, random.choice((20, 21, 22)))
    pool = [f"neutral-key-{at}" for at in range(8)]
    random.shuffle(pool)
    names = list(tables)
    shares = {name: pool[at :: len(names)] for at, name in enumerate(names)}
    return {
        name: Table(table.side, tuple(shares[name][:1]), tuple(shares[name][1:2]), table.looks_up, table.interval)
        for name, table in tables.items()
    }
