"""Our own corpus on our own service: every rule of evaluation has a case, and every case comes out as it says."""

from __future__ import annotations

import json

import corpus_cases
import pytest
from corpus_cases import Case, Ours

from flagsvc.engine.operators import OPERATORS
from flagsvc.engine.strategies import STRATEGIES
from support import class_ways

DRAWS = 400
"""The number of requests for a random case: an outcome of one in four then fails to occur about once in 10**50 runs."""


@pytest.mark.parametrize("case", corpus_cases.cases(), ids=str)
def test_case(case: Case) -> None:
    """The answer is the expected one, whatever is kept for classes; if it is random, every expected one occurs and no other."""
    for way, options in class_ways.OPTIONS.items():
        service = Ours(case.document, case.content.get("options", {}) | options)
        expected = case.outcomes
        if len(expected) == 1:
            assert service.ask(case) == expected[0], (case.content["says"], way)
            continue
        seen = []
        for answer in (service.ask(case) for _ in range(DRAWS)):
            if answer not in seen:
                seen.append(answer)
        assert sorted(seen, key=str) == sorted(expected, key=str), (case.content["says"], way)


def test_every_rule_has_a_case() -> None:
    """Each row of the table of rules has a case, and each case names a rule of the table."""
    listed = [rule["id"] for rule in corpus_cases.rules()]
    assert len(listed) == len(set(listed))
    assert set(listed) == {case.content["rule"] for case in corpus_cases.cases()}


def test_every_operator_and_every_strategy_has_a_case() -> None:
    """Both occur in the documents that are asked: a new one needs a case."""
    text = json.dumps([case.document for case in corpus_cases.cases()])
    assert [name for name in (*OPERATORS, *STRATEGIES) if f'"{name}"' not in text] == []


def test_every_rule_says_where_it_comes_from() -> None:
    """A rule names its source and says in a sentence what it demands; only rules of ours may differ from the reference."""
    for rule in corpus_cases.rules():
        assert set(rule) == {"id", "source", "says", "ours"} and rule["says"] and isinstance(rule["ours"], bool), rule
        assert rule["source"].startswith(corpus_cases.SOURCES), rule
