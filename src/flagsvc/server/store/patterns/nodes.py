"""The nodes of a pattern's syntax tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from flagsvc.server.store.patterns.characters import Ranges


@dataclass(frozen=True)
class UnitSet:
    """Any one unit of a set."""

    ranges: Ranges


@dataclass(frozen=True)
class Assertion:
    r"""An assertion about a position: `^`, `$`, `b` or `B`."""

    kind: str


@dataclass(frozen=True)
class Sequence:
    """Nodes that match one after the other."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Alternation:
    """Nodes of which one matches; earlier ones are tried first."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Group:
    """A group in parentheses; `number` is None for a non-capturing one."""

    node: Node
    number: int | None


@dataclass(frozen=True)
class LookAround:
    """A look-ahead or look-behind; `negated` means that the node must not match."""

    node: Node
    behind: bool
    negated: bool


@dataclass(frozen=True)
class Reference:
    """A reference to the text that a group matched."""

    number: int


@dataclass(frozen=True)
class Repeat:
    """A repeated node; `most` is None for no limit. `groups` is the range of group numbers in it, without the end."""

    node: Node
    least: int
    most: int | None
    greedy: bool
    groups: tuple[int, int]


Node: TypeAlias = UnitSet | Assertion | Sequence | Alternation | Group | LookAround | Reference | Repeat
