"""What the engine is measured with, apart from HTTP: evaluating, compiling from scratch, compiling what changed."""

from __future__ import annotations

import json
import random
from typing import Any

import documents
from flagsvc.engine.compile import CompileOptions, Compiler
from flagsvc.engine.context import Context
from flagsvc.engine.snapshot import Snapshot

CHANGED = 5
"""Flags that a refresh changes."""
EVERYTHING = 1 << 40


def context(at: int) -> Context:
    """Return the at-th user as the proxy would hand it to the engine."""
    query = documents.context(at)
    prefix = "properties["
    properties = {name[len(prefix) : -1]: value for name, value in query.items() if name.startswith(prefix)}
    return Context(
        user_id=query["userId"],
        session_id=query["sessionId"],
        app_name=query["appName"],
        environment="default",
        remote_address="192.0.2.7",
        properties=properties,
        now=1.8e12,
        entropy=at * 7919,
    )


class Case:
    """One size: its document, the same with some flags changed, and what is made of the first."""

    def __init__(self, flags: int) -> None:
        plain = documents.document(flags)
        self.flags = flags
        self.text = json.dumps(plain).encode()
        self.changed = json.dumps(altered(plain)).encode()
        self.compiler = Compiler(CompileOptions())
        self.snapshot = self.compile()
        self.contexts = [context(at) for at in range(20)]

    def compile(self) -> Snapshot:
        """Compile the document from scratch."""
        return built(self.compiler, self.text, None)

    def refresh(self) -> Snapshot:
        """Compile the changed document after the other one."""
        return built(self.compiler, self.changed, self.snapshot)

    def evaluate(self) -> int:
        """Answer each of the contexts; return the bytes."""
        snapshot = self.snapshot
        return sum([len(snapshot.enabled(each)) for each in self.contexts])


def altered(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with some flags rolled out to others."""
    features = list(document["features"])
    for at in random.Random(3).sample(range(len(features)), min(CHANGED, len(features))):
        parameters = {"rollout": "33", "stickiness": "userId", "groupId": "changed"}
        features[at] = features[at] | {"strategies": [{"name": "flexibleRollout", "parameters": parameters}]}
    return document | {"features": features}


def built(compiler: Compiler, text: bytes, previous: Snapshot | None) -> Snapshot:
    """Compile a document's bytes in one go."""
    building = compiler.begin_text(text, previous)
    if building is None or not building.advance(EVERYTHING):
        raise SystemExit("the document of the benchmark is an unusual one")
    compiled = building.compiled()
    if compiled.problems:
        raise SystemExit(f"the document of the benchmark has problems: {compiled.problems[0]}")
    return compiled.snapshot
