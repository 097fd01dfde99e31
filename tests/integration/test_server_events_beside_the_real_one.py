"""Events: the same changes on our server and the real one, event by event, and the same questions about them, answer by answer."""

from __future__ import annotations

from collections.abc import Callable
from http.client import RemoteDisconnected
from typing import Any

import pytest

from support.admin_call_rows import STRATEGIES, filled, get
from support.databases import KINDS
from support.event_rows import (
    ADDED,
    ASKERS,
    CHANGES,
    FULLER,
    IDLE,
    ODD,
    OTHER_TAGS,
    QUESTIONS,
    REFUSED_HERE,
    SEARCH,
)
from support.processes import Answer
from support.server_pair import OurServer, RealServer, identity_of, our_twin, real_twin

Json = dict[str, Any]
FIRST = "a flag"
"""The history after which the questions are asked."""
PLACE = ("type", "createdBy", "featureName", "project", "environment")
"""Members of events that are compared as they are."""
OWN = ("id", "strategyIds", "userId", "createdAt", "archivedAt", "secret")
"""Members of data whose values each server has for itself, or not at all."""
OURS = {"tokenName", "way", "before", "after"}
GROUP = {"groupType", "groupId"}


class Told:
    """A server, and how it tells what happens."""

    def __init__(self, twin: OurServer | RealServer) -> None:
        self.twin = twin

    def ask(self, path: str, who: str = "admin") -> Answer:
        """Ask for what is at a path."""
        return self.twin.ask(get(path, who), path, None)

    def events(self, after: int) -> list[Json]:
        """Return the events with a higher number, the oldest first."""
        found = self.ask(f"{SEARCH}?limit=1000").json()["events"]
        return [each for each in reversed(found) if each["id"] > after]

    def tell(self, history: str) -> list[list[Json]]:
        """Make the changes of a history, and return the events of each step."""
        known: dict[str, Any] = dict(STRATEGIES)
        last = max([each["id"] for each in self.events(0)], default=0)
        steps = []
        for step in CHANGES[history]:
            answer = self.twin.ask(step, filled(step.path, known), filled(step.body, known))
            assert answer.status < 300, (step, answer.status, answer.body)
            if step.keep:
                known[step.keep] = identity_of(answer.json())
            steps.append(self.events(last))
            last = max([last, *(each["id"] for each in steps[-1])])
        return steps

    def answers(self) -> dict[str, Answer]:
        """Return the answers to the questions, by who asks for what."""
        return {f"{who} {path}": self.ask(path, who) for who in ASKERS for path in QUESTIONS}


@pytest.fixture(scope="module")
def real() -> tuple[dict[str, list[list[Json]]], dict[str, Answer]]:
    """Return the real server's events of each history, and its answers to the questions.

    The real server sometimes drops a connection without an answer. Then it is started and asked once more.
    """
    try:
        return tell_all()
    except RemoteDisconnected:
        return tell_all()


def tell_all() -> tuple[dict[str, list[list[Json]]], dict[str, Answer]]:
    """Return what a new real server tells."""
    with real_twin() as twin:
        told, events = Told(twin), {}
        twin.reset()
        twin.database.execute("DELETE FROM events")
        for history in CHANGES:
            twin.reset()
            events[history] = told.tell(history)
            if history == FIRST:
                answers = told.answers()
                answers |= {path: told.ask(f"{SEARCH}?{path}", "boss") for path in REFUSED_HERE}
        return events, answers


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("history", CHANGES)
def test_each_change_tells_the_same(real: Any, new_database: Callable[[str], str], history: str, kind: str) -> None:
    """Each step writes the real server's events, except for the named differences. Every difference named is one."""
    with our_twin(new_database(kind)) as twin:
        ours = Told(twin).tell(history)
    found: set[tuple[str, str]] = set()
    for step, mine, theirs in zip(CHANGES[history], ours, real[0][history], strict=True):
        added = [each for each in mine if (history, each["type"]) in ADDED and is_alone(each, theirs)]
        idle = [each for each in theirs if each["type"] in IDLE and is_alone(each, mine)]
        found |= {(history, each["type"]) for each in added}
        compare(
            [each for each in mine if each not in added], [each for each in theirs if each not in idle], step, history
        )
    assert found == {each for each in ADDED if each[0] == history}


def is_alone(event: Json, others: list[Json]) -> bool:
    """Return whether no other event says the same."""
    about = [event[name] for name in ("type", "featureName")] + [plain(event["data"]), plain(event["preData"])]
    return all(
        about != [each["type"], each["featureName"], plain(each["data"]), plain(each["preData"])] for each in others
    )


def compare(mine: list[Json], theirs: list[Json], step: Any, history: str) -> None:
    """Fail unless the events of a step are alike."""
    ours = [shown(each, history) for each in in_order(mine)]
    assert ours == [shown(each, history) for each in in_order(theirs)], step
    for our, their in zip(in_order(mine), in_order(theirs), strict=True):
        assert set(our) - OURS - GROUP == set(their) - GROUP
        assert set(our) >= OURS | GROUP
        if our["type"] in FULLER:
            assert has_all(our["data"], their["data"]), step
            assert has_all(our["preData"], their["preData"]), step


def in_order(events: list[Json]) -> list[Json]:
    """Return the events of a step in an order that both servers have."""
    return sorted(events, key=lambda each: (each["type"], each["featureName"] or "", each["environment"] or ""))


def shown(event: Json, history: str) -> Json:
    """Return an event as it is compared."""
    if event["type"] in ODD:
        return {"type": event["type"]}
    found = {name: event[name] for name in PLACE}
    if event["type"] not in FULLER:
        found |= {"data": plain(event["data"]), "preData": plain(event["preData"])}
    if event["type"] not in OTHER_TAGS and history != "imports":
        found["tags"] = sorted((each["type"], each["value"]) for each in event["tags"])
    return found


def plain(value: Any) -> Any:
    """Return data without what each server has for itself."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if name not in OWN}
    return [plain(each) for each in value] if isinstance(value, list) else value


def has_all(ours: Any, theirs: Any) -> bool:
    """Return whether our data has every member of theirs, with the same value."""
    wanted, found = plain(theirs or {}), plain(ours or {})
    return all(name in found and found[name] == value for name, value in wanted.items())


@pytest.mark.parametrize("kind", KINDS)
def test_each_question_is_answered_alike(real: Any, new_database: Callable[[str], str], kind: str) -> None:
    """Status, totals, events and errors are the real server's, for every role."""
    with our_twin(new_database(kind)) as twin:
        told = Told(twin)
        told.tell(FIRST)
        ours = told.answers()
        refused = {path: told.ask(f"{SEARCH}?{path}", "boss").status for path in REFUSED_HERE}
    different = {asked: (outline(ours[asked]), outline(real[1][asked])) for asked in ours}
    assert [(asked, *pair) for asked, pair in different.items() if pair[0] != pair[1]] == []
    assert refused == dict.fromkeys(REFUSED_HERE, 400)
    assert [real[1][path].status for path in REFUSED_HERE] == [500] * len(REFUSED_HERE)


def outline(answer: Answer) -> Any:
    """Return an answer as it is compared: its status, and its body without what each server has for itself."""
    body = answer.json()
    if "events" not in body:
        return answer.status, {name: each for name, each in body.items() if name != "id"}
    events = [(each["type"], each["featureName"], each["environment"]) for each in body["events"]]
    return answer.status, {name: each for name, each in body.items() if name != "events"} | {"listed": events}
