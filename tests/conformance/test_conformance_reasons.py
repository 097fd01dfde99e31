"""Whole explanations agree with the evaluation on every document of the corpus and of the specification for clients."""

from __future__ import annotations

from typing import Any

import corpus_cases
import pytest
import test_client_specification as specification
from corpus_cases import Case

from flagsvc.engine.compile import CompileOptions
from flagsvc.engine.context import Context
from flagsvc.proxy.api.query import read_query
from flagsvc.reasons.unfolded import Unfolded
from support.whole import check_whole

NOW_MS = 1_763_700_000_000.0
SEEDS = (0, 1, 2**61)


def context_of(case: Case) -> Context:
    """Return the context of a case; of a body, only the values that are texts."""
    if "get" in case.content:
        return read_query(case.content["get"].encode())
    given: dict[str, Any] = case.content["post"] if isinstance(case.content["post"], dict) else {}
    texts = {name: value for name, value in given.items() if isinstance(value, str)}
    inside = given.get("properties")
    properties = {name: str(value) for name, value in inside.items()} if isinstance(inside, dict) else {}
    return specification.context_of({**{name: texts.get(name) for name in specification.STANDARD}, "properties": properties})


@pytest.mark.parametrize("group", corpus_cases.groups(), ids=lambda group: str(group[0]))
def test_the_corpus(group: list[Case]) -> None:
    """Every toggle comes out as in the evaluation, for the context of every case of the document."""
    for case in group:
        options = CompileOptions(hostname=corpus_cases.HOST_NAME, **case.content.get("options", {}))
        made = Unfolded(case.document, options)
        for seed in SEEDS:
            check_whole(made, context_of(case).replace(now=NOW_MS, entropy=seed))


def test_the_client_specification() -> None:
    """The same for every context of every suite."""
    count = 0
    for suite in specification.present().values():
        state = suite["state"]
        document = specification.from_events(state["events"]) if "events" in state else state
        made = Unfolded(document, specification.options())
        for case in (*suite.get("tests", ()), *suite.get("variantTests", ())):
            count += check_whole(made, specification.context_of(case["context"]).replace(now=NOW_MS)).toggles
    assert count > 1000
