"""Finds the regular expressions of a package: every call of `re`, with the text of its pattern and how the pattern is called."""

from __future__ import annotations

import ast
import importlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CALLS = {"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
PLACE_OF_FLAGS = {"compile": 1, "sub": 4, "subn": 4, "split": 3}
WORST = "finditer"


class Use(NamedTuple):
    """A call of a pattern. `name` is its file with its name or expression there; `pattern` is None if only run time tells it."""

    name: str
    pattern: str | bytes | None
    flags: int
    call: str


class Source:
    """A module: the names that it takes from other modules, and the calls on each name. Other uses of a name are the worst call."""

    def __init__(self, path: Path, package: Path) -> None:
        self.place = path.relative_to(package).as_posix()
        self.module = ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        self.nodes = list(ast.walk(ast.parse(path.read_text())))
        self.taken = {
            f"{each.module}.{alias.name}"
            for each in self.nodes
            if isinstance(each, ast.ImportFrom)
            for alias in each.names
        }
        self.calls: dict[str, set[str]] = defaultdict(set)
        known = set()
        for each in self.nodes:
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in CALLS:
                again = (
                    each.func.attr in {"match", "fullmatch"} and len(each.args) > 1
                )  # at a position, so perhaps at every position
                self.calls[last_name(each.func.value)].add(WORST if again else each.func.attr)
                known.add(each.func.value)
        for each in self.nodes:
            if isinstance(each, ast.Name | ast.Attribute) and isinstance(each.ctx, ast.Load) and each not in known:
                self.calls[last_name(each)].add(WORST)

    def uses(self, sources: list[Source]) -> Iterator[Use]:
        """Yield the uses of this module's patterns, in all modules."""
        targets = {each.value: target_of(each) for each in self.nodes if isinstance(each, ast.Assign | ast.AnnAssign)}
        for node in self.nodes:
            if not (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and last_name(node.func.value) == "re"
            ):
                continue
            kind = node.func.attr
            if kind in CALLS or kind == "compile":
                pattern, flags = self._pattern(node, kind)
                target = targets.get(node, "")
                ways = {kind} if kind in CALLS else self._ways(target, sources)
                yield from (
                    Use(f"{self.place} {target or ast.unparse(node.args[0])}", pattern, flags, way)
                    for way in sorted(ways)
                )

    def _pattern(self, node: ast.Call, kind: str) -> tuple[str | bytes | None, int]:
        flags = [each.value for each in node.keywords if each.arg == "flags"] + node.args[PLACE_OF_FLAGS.get(kind, 2) :]
        names = vars(importlib.import_module(self.module))
        try:
            pattern, *given = (eval(ast.unparse(each), names) for each in (node.args[0], *flags))
        except NameError:
            return None, 0
        return pattern, sum(given)

    def _ways(self, name: str, sources: list[Source]) -> set[str]:
        readers = [each for each in sources if each is self or each.taken & {self.module, f"{self.module}.{name}"}]
        return {way for each in readers for way in each.calls[name]} if name else {WORST}


def last_name(node: ast.AST) -> str:
    """Return the last part of a dotted name; empty for another expression."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def target_of(node: ast.Assign | ast.AnnAssign) -> str:
    """Return the name that an assignment gives; empty for several names."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return last_name(targets[0]) if len(targets) == 1 else ""


def uses(package: Path) -> list[Use]:
    """Return every use of a pattern in a package."""
    sources = [Source(path, package) for path in sorted(package.rglob("*.py"))]
    return [use for each in sources for use in each.uses(sources)]
