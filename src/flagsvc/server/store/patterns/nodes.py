"""What a pattern consists of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from flagsvc.server.store.patterns.units import Ranges


@dataclass(frozen=True)
class One:
    """A unit out of a set."""

    ranges: Ranges


@dataclass(frozen=True)
class Edge:
    r"""A place between two units: `^`, `$`, `b` or `B`."""

    kind: str


@dataclass(frozen=True)
class Sequence:
    """Nodes, one after the other."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Alternation:
    """Nodes of which the first that fits is taken."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Group:
    """A group in parentheses; `number` is None for one that is not counted."""

    node: Node
    number: int | None


@dataclass(frozen=True)
class LookAround:
    """A look ahead, or behind: what must be there, or must not."""

    node: Node
    behind: bool
    negated: bool


@dataclass(frozen=True)
class Reference:
    """What a group found, again."""

    number: int


@dataclass(frozen=True)
class Repeat:
    """A node several times; `most` is None without a bound. `groups` are the numbers of the groups in it, from and up to."""

    node: Node
    least: int
    most: int | None
    greedy: bool
    groups: tuple[int, int]


Node: TypeAlias = One | Edge | Sequence | Alternation | Group | LookAround | Reference | Repeat
