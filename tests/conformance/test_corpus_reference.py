"""The corpus on the npm reference proxy: it answers every case as the corpus says, but for the rules that are ours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import corpus_cases
import pytest
from corpus_cases import Case

from support import processes
from support.fake_upstream import FakeUpstream, fake_upstream

DRAWS = 80
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
    answers = [reference.ask(case) for _ in range(DRAWS if len(expected) > 1 else 1)]
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
