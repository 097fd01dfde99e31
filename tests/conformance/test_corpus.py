"""Our own corpus on our own service: every rule of evaluation has a case, and every case comes out as it says.

The npm reference proxy answers every case as the corpus says, too, but for the rules that are ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import corpus_cases
import pytest
from corpus_cases import Case, Ours

from flagsvc.engine.operators import OPERATORS
from flagsvc.engine.strategies import STRATEGIES
from support import class_ways, processes
from support.fake_upstream import FakeUpstream, fake_upstream

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


DRAWS_OF_REFERENCE = 80
"""The number of requests for a random case: an outcome of one in four then fails to occur about once in 10**10 runs."""

SETTINGS = {"UNLEASH_FETCH_INTERVAL": "20", "UNLEASH_METRICS_INTERVAL": "0", "LOG_LEVEL": "fatal"}


class Reference:
    """The reference proxy, given one document after the other."""

    def __init__(self, upstream: FakeUpstream, proxy: processes.Proxy) -> None:
        self.upstream = upstream
        self.proxy = proxy
        self.numbers = count()
        self.marker = ""

    def load(self, document: dict[str, Any]) -> None:
        """Serve the document and return when the proxy answers from it; a toggle at its end tells."""
        self.marker = f"marker-{next(self.numbers)}"
        marker = {"name": self.marker, "enabled": True, "strategies": []}
        self.upstream.replace({**document, "features": [*document["features"], marker]})
        self.proxy.program.wait(self.is_loaded, f"serving {self.marker}", 20)

    def is_loaded(self) -> bool:
        return bool(self.proxy.post("", {"toggles": [self.marker], "context": {}}).json()["toggles"][0]["enabled"])

    def ask(self, case: Case) -> list[dict[str, Any]]:
        """Return the toggles that are answered, in the shape of the specification."""
        method, target, body = case.request()
        answer = self.proxy.get(target) if method == "GET" else self.proxy.post(target, body)
        assert answer.status == 200, (case, answer)
        return [shape(toggle) for toggle in answer.json()["toggles"] if toggle["name"] != self.marker]


def shape(toggle: dict[str, Any]) -> dict[str, Any]:
    """Return a toggle without the feature's state inside its variant, and with impressionData where it has none."""
    variant = {key: value for key, value in toggle["variant"].items() if key in ("name", "enabled", "payload")}
    return {**toggle, "impressionData": bool(toggle.get("impressionData")), "variant": variant}


@pytest.fixture(scope="module")
def reference() -> Iterator[Reference]:
    with fake_upstream({"version": 2, "features": []}) as upstream, processes.reference_proxy(upstream.url, **SETTINGS) as proxy:
        yield Reference(upstream, proxy)


def agrees(reference: Reference, case: Case) -> bool:
    """Return whether the reference answers a case as the corpus says."""
    expected = case.outcomes
    answers = [reference.ask(case) for _ in range(DRAWS_OF_REFERENCE if len(expected) > 1 else 1)]
    return all(answer in expected for answer in answers) and all(outcome in answers for outcome in expected)


@pytest.mark.programs
def test_the_reference_agrees_but_for_our_rules(reference: Reference) -> None:
    """Every case has the same answer there. A rule of ours has a case that differs, or it is not one of ours."""
    ours = {rule["id"] for rule in corpus_cases.rules() if rule["ours"]}
    wrong, different = [], set()
    for group in corpus_cases.groups():
        reference.load(group[0].document)
        for case in group:
            if not agrees(reference, case):
                different.add(case.content["rule"])
                if case.content["rule"] not in ours:
                    wrong.append(f"{case}: {case.content['says']}: {reference.ask(case)}")
    assert not wrong, "\n".join(wrong)
    assert different == ours
