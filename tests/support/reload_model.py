"""What each key of a configuration file may open while the file changes and changes again.

The flags of an environment tell which upstream, which token, and which options they come from. So each answer shows whose flags it
has, and of which configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from support.worker_pools import toggle

Answer = tuple[str, ...] | int
"""The names of the flags in an answer, or the status of a refusal."""

UNAUTHORIZED, NOT_READY = 401, 503
PROJECTS = {"one": "p1", "two": "p2", "three": "p1"}
"""The flags of each document, each with its project."""
SERVER_TOKEN = "sdk-token"
"""How the keys begin that are tokens of server-side SDKs."""
OFF = "off"
"""How the names of flags begin that are off."""
DISABLED = 200
"""Flags of each document that are off: a configuration that stays behind shows in the memory."""


@dataclass(frozen=True)
class Side:
    """What decides which flags an environment has: an upstream, the environment that the token names, and options."""

    upstream: int
    scope: str
    prefix: str = ""
    project: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of the flags that callers see."""
        return tuple(
            f"{name}-{self.upstream}-{self.scope}"
            for name, project in PROJECTS.items()
            if name.startswith(self.prefix) and self.project in ("", project)
        )

    def document(self) -> dict[str, Any]:
        """Return the document of the upstream for this scope."""
        on = [
            {**toggle(f"{name}-{self.upstream}-{self.scope}"), "project": project} for name, project in PROJECTS.items()
        ]
        off = [
            {**toggle(f"{OFF}-{number}-{self.scope}"), "project": "p1", "enabled": False} for number in range(DISABLED)
        ]
        return {"version": 2, "features": on + off}


@dataclass(frozen=True)
class Table:
    """An environment as the file says it. `secret` and `options` do not change its flags."""

    side: Side
    keys: tuple[str, ...]
    secret: int = 0
    options: tuple[tuple[str, object], ...] = ()

    @property
    def token(self) -> str:
        """The token for the upstream."""
        return f"*:{self.side.scope}.api-token-{self.secret}"

    @property
    def origin(self) -> str:
        """The only origin of browsers that the environment allows."""
        return str(dict(self.options).get("cors.origin", "https://first.example"))

    def text(self, url: str) -> dict[str, object]:
        """Return the options of the file."""
        tokens = [key for key in self.keys if key.startswith(SERVER_TOKEN)]
        given: dict[str, object] = {"flagsvcUrl": url, "flagsvcApiToken": self.token}
        given["clientKeys"] = [key for key in self.keys if key not in tokens]
        given["expServerSideSdkConfig.tokens"] = tokens
        chosen = {"namePrefix": self.side.prefix, "projectName": self.side.project}
        rest = {"refreshInterval": 1000, "cors.origin": self.origin, **dict(self.options)}
        return given | {name: value for name, value in chosen.items() if value} | rest


@dataclass(frozen=True)
class Former:
    """What may still answer for an environment, and the keys that open it. Without a side it has no configuration."""

    side: Side | None
    keys: frozenset[str]

    def after(self, table: Table) -> Former:
        """Return it after a change of the file: no new key opens former flags, and no key that was taken away."""
        wanted = frozenset(table.keys)
        return Former(self.side, wanted if self.side == table.side else self.keys & wanted)

    def answer(self, key: str) -> Answer:
        """Return the answer to a key while this answers."""
        return self.side.flags if self.side is not None and key in self.keys else NOT_READY


@dataclass(frozen=True)
class Expected:
    """What an environment may answer: with the options of the file, or as one of those before, until those of the file answer."""

    table: Table
    formers: tuple[Former, ...] = ()

    def after(self, table: Table) -> Expected:
        """Return what it may answer after a change of the file."""
        is_replaced = (table.side, table.options) != (self.table.side, self.table.options)
        now = (Former(self.table.side, frozenset(self.table.keys)),) if is_replaced else ()
        return Expected(table, tuple(each.after(table) for each in (*self.formers, *now)))

    def answers(self, key: str) -> frozenset[Answer]:
        """Return the answers that a key of it may get."""
        return frozenset([self.table.side.flags, *(each.answer(key) for each in self.formers)])


def added(table: Table) -> Expected:
    """Return what an environment may answer that was not there before."""
    return Expected(table, (Former(None, frozenset()),))


@dataclass
class Model:
    """What each environment may answer. `published` has for each lasting key all that it could be answered so far, in order."""

    environments: dict[str, Expected]
    published: dict[str, list[frozenset[Answer]]] = field(default_factory=dict)

    def publish(self) -> None:
        """Publish what the lasting keys may be answered from now on."""
        for key, answers in self.published.items():
            now = self.answers(key)
            if not answers or answers[-1] != now:
                answers.append(now)

    def answers(self, key: str) -> frozenset[Answer]:
        """Return the answers that a key may get from now on."""
        for each in self.environments.values():
            if key in each.table.keys:
                return each.answers(key)
        return frozenset([UNAUTHORIZED])

    @property
    def tables(self) -> dict[str, Table]:
        """The environments as the file says them."""
        return {name: each.table for name, each in self.environments.items()}

    def change(self, tables: Mapping[str, Table]) -> None:
        """Take other environments, as the file says them now."""
        known = self.environments
        self.environments = {
            name: known[name].after(table) if name in known else added(table) for name, table in tables.items()
        }
        self.publish()

    def settle(self, names: Iterable[str]) -> None:
        """Take it that these environments answer with the options of the file."""
        for name in names:
            self.environments[name] = Expected(self.environments[name].table)
        self.publish()
