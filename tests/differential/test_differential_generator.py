"""The generator of the differential test: reproducible, and what it makes meets every rule both ways."""

from __future__ import annotations

from collections import Counter
from typing import Any

import diff_documents
import diff_requests
import diff_words
import pytest

from flagsvc.engine.compile import CompileOptions, compile_document
from flagsvc.engine.context import Context
from flagsvc.engine.values import jsdate

STANDARD = {"appName": "app_name", "environment": "environment", "userId": "user_id", "sessionId": "session_id"}
OPERATORS = [operator for family, (names, _, _) in diff_words.FAMILIES.items() if family != "unknown" for operator in names]
STRATEGIES = [name for name in diff_documents.STRATEGIES if name not in ("default", "someUnknownStrategy")]


def sample(number: int, count: int = 12) -> tuple[dict[str, Any], list[diff_requests.Question]]:
    """Return a document and questions about it."""
    document = diff_documents.document("sample", number)
    names = [feature["name"] for feature in document["features"]]
    return document, diff_requests.questions("sample", number, names, count)


def context_of(content: dict[str, Any]) -> Context:
    """Return the engine's context for a generated one."""
    texts: dict[str, Any] = {attribute: str(content.get(name) or "") or None for name, attribute in STANDARD.items()}
    properties = {name: str(value) for name, value in content.get("properties", {}).items() if value is not None}
    time = content.get("currentTime")
    moment = jsdate.parse(time) if isinstance(time, str) and time else None
    address = content.get("remoteAddress")
    return Context(current_time=moment, properties=properties, remote_address=address, now=1.79e12, **texts)


def outcome(strategy: dict[str, Any], content: dict[str, Any]) -> bool:
    """Return whether a toggle with this one strategy is on."""
    document = {"version": 2, "features": [{"name": "x", "enabled": True, "strategies": [strategy]}]}
    snapshot = compile_document(document, CompileOptions(hostname="some-host")).snapshot
    return snapshot.named(context_of(content), ["x"])[1][0]


@pytest.fixture(scope="module")
def outcomes() -> Counter[tuple[str, bool]]:
    """Give how often each operator and each strategy, by itself, came out true and false."""
    count: Counter[tuple[str, bool]] = Counter()
    for number in range(60):
        document, questions = sample(number)
        contexts = [question.context for question in questions if question.context][:6]
        strategies = [strategy for feature in document["features"] for strategy in feature["strategies"]]
        for strategy in strategies:
            bare = {key: value for key, value in strategy.items() if key not in ("constraints", "segments")}
            count.update((strategy["name"], outcome(bare, content)) for content in contexts)
            for constraint in strategy.get("constraints") or []:
                alone = {"name": "default", "constraints": [{**constraint, "inverted": False}]}
                count.update((constraint.get("operator", ""), outcome(alone, content)) for content in contexts)
    return count


@pytest.mark.parametrize("name", [*OPERATORS, *STRATEGIES])
def test_each_rule_comes_out_both_ways(outcomes: Counter[tuple[str, bool]], name: str) -> None:
    """Documents and contexts meet: no operator or strategy is only ever true, or only ever false."""
    assert outcomes[name, True] > 0
    assert outcomes[name, False] > 0


def test_a_document_and_its_questions_follow_from_seed_and_number() -> None:
    """A mismatch can be brought back by the seed and the number of its document."""
    assert sample(3) == sample(3)
    assert sample(3) != sample(4)
