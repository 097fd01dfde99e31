"""An engine of a few lines for tests of what surrounds the engine: it compiles, leaves out, refuses, and evaluates nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from flagsvc.core.errors import DocumentError
from flagsvc.engine.lists import Lists
from flagsvc.engine.run import Memory

NO_LISTS = Lists(Memory(0, 0, False))


@dataclass(frozen=True)
class TinyProblem:
    """Something that was left out."""

    path: str
    toggle: str | None
    message: str
    served: bool = False


@dataclass(frozen=True)
class TinySnapshot:
    """The names of a document's toggles."""

    revision: str
    names: dict[str, frozenset[str]]
    lists: Lists = field(default=NO_LISTS, compare=False)


@dataclass(frozen=True)
class TinyCompiled:
    """What compiling gives."""

    snapshot: TinySnapshot
    problems: list[TinyProblem] = field(default_factory=list)


def tiny_compile(document: object, previous: TinySnapshot | None) -> TinyCompiled:
    """Return the names in a document; a feature that is no object is left out, one with `odd` is odd.

    A document without features is an error.
    """
    if not isinstance(document, dict) or not isinstance(document.get("features"), list):
        raise DocumentError("features", "must be a list")
    names: dict[str, frozenset[str]] = {}
    problems = []
    for at, feature in enumerate(document["features"]):
        if isinstance(feature, dict):
            if "odd" in feature:
                problems.append(
                    TinyProblem(f"features[{at}].odd", feature["name"], f"is `{feature['odd']}`", served=True)
                )
            names[feature["name"]] = frozenset(feature.get("variants", []))
        else:
            problems.append(TinyProblem(f"features[{at}]", None, f"must be an object, is `{feature}`"))
    return TinyCompiled(TinySnapshot(json.dumps(document, sort_keys=True), names), problems)


def document(*names: str, **more: object) -> bytes:
    """Return a document with toggles of these names."""
    return json.dumps({"version": 2, "features": [{"name": name} for name in names], **more}).encode()
