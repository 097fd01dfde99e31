"""Events: the same changes on our server and the real one, event by event, and the same questions about them, answer by answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http.client import RemoteDisconnected
from typing import Any

import pytest

from support.databases import KINDS
from support.processes import Answer
from support.server_pair import (
    ADMIN,
    STRATEGIES,
    OurServer,
    RealServer,
    Step,
    delete,
    filled,
    get,
    identity_of,
    our_twin,
    post,
    put,
    real_twin,
)

P = "/api/admin/projects/default"
F = f"{P}/features"
HERE = f"{F}/fresh/environments/development"
ROLLOUT = {"rollout": "50", "stickiness": "default", "groupId": "fresh"}
VARIANT = {"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "default"}
LATER = "2099-01-01T00:00:00.000Z"
SET: dict[str, Any] = {
    "features": [{"name": "brought", "type": "release", "description": "d", "stale": False}],
    "featureStrategies": [{"name": "default", "featureName": "brought", "parameters": {}, "constraints": []}],
    "featureEnvironments": [
        {"enabled": True, "featureName": "brought", "environment": "development", "name": "brought", "variants": [VARIANT]}
    ],
    "contextFields": [{"name": "region", "legalValues": [{"value": "eu"}]}],
    "featureTags": [{"featureName": "brought", "tagType": "area", "tagValue": "cart"}],
    "segments": [],
    "tagTypes": [{"name": "area", "description": "x", "icon": ""}],
    "dependencies": [{"feature": "brought", "dependencies": [{"feature": "app"}]}],
    "links": [{"feature": "brought", "links": [{"url": "https://example.com/x", "title": "t"}]}],
}
OTHER = {"features": [SET["features"][0] | {"description": "other", "stale": True}], "featureStrategies": []}
CHANGED = (
    SET
    | OTHER
    | {"featureEnvironments": [SET["featureEnvironments"][0] | {"enabled": False, "variants": [VARIANT | {"name": "b"}]}]}
    | {"featureTags": [SET["featureTags"][0] | {"tagValue": "other"}], "links": [{"feature": "brought", "links": []}]}
)


def imported(data: Mapping[str, Any]) -> Step:
    """Return an import into `default`."""
    body = {"project": "default", "environment": "development", "data": data}
    return post("/api/admin/features-batch/import", body)


CHANGES: dict[str, tuple[Step, ...]] = {
    "a flag": (
        post(F, {"name": "fresh"}),
        put(f"{F}/fresh", {"name": "fresh", "type": "experiment", "description": "x"}),
        put(f"{F}/fresh", {"name": "fresh", "type": "experiment", "description": "x"}),
        Step("PATCH", f"{F}/fresh", [{"op": "replace", "path": "/stale", "value": True}]),
        post(f"{P}/stale", {"features": ["fresh"], "stale": False}),
        post(f"{P}/stale", {"features": ["fresh"], "stale": False}),
        post(f"{F}/fresh/clone", {"name": "copy"}),
        delete(f"{F}/fresh"),
        post("/api/admin/archive/revive/fresh"),
        post(f"{P}/archive", {"features": ["fresh"]}),
        post(f"{P}/archive", {"features": ["copy"]}),
        post(f"{P}/revive", {"features": ["fresh"]}),
        delete(f"{F}/fresh"),
        delete("/api/admin/archive/fresh"),
        post(f"{P}/delete", {"features": ["copy"]}),
    ),
    "strategies": (
        post(F, {"name": "fresh"}),
        post(f"{HERE}/strategies", {"name": "flexibleRollout", "parameters": ROLLOUT}, keep="first"),
        put(f"{HERE}/strategies/{{first}}", {"name": "flexibleRollout", "parameters": ROLLOUT, "title": "T"}),
        put(f"{HERE}/strategies/{{first}}", {"name": "flexibleRollout", "parameters": ROLLOUT, "title": "T"}),
        Step("PATCH", f"{HERE}/strategies/{{first}}", [{"op": "replace", "path": "/title", "value": "TT"}]),
        post(f"{HERE}/strategies", {"name": "default"}, who=ADMIN, keep="second"),
        post(f"{HERE}/strategies/set-sort-order", [{"id": "{second}", "sortOrder": 0}, {"id": "{first}", "sortOrder": 1}]),
        post(f"{HERE}/on"),
        post(f"{HERE}/on"),
        post(f"{F}/fresh/environments/production/on"),
        put(f"{HERE}/strategies/{{first}}", {"name": "flexibleRollout", "parameters": ROLLOUT, "disabled": True}),
        put(f"{HERE}/strategies/{{second}}", {"name": "default", "disabled": True}),
        post(f"{HERE}/on?shouldActivateDisabledStrategies=true"),
        delete(f"{HERE}/strategies/{{second}}"),
        delete(f"{HERE}/strategies/{{first}}"),
        put(f"{F}/fresh/variants-batch", {"environments": ["development"], "variants": [VARIANT]}),
        put(f"{HERE}/variants", [VARIANT | {"name": "b"}]),
        Step("PATCH", f"{HERE}/variants", [{"op": "replace", "path": "/0/name", "value": "c"}]),
        post(f"{F}/fresh/environments/production/off"),
    ),
    "parents and tags": (
        post(F, {"name": "fresh"}),
        post(f"{F}/fresh/dependencies", {"feature": "web"}),
        post(f"{F}/fresh/dependencies", {"feature": "app", "enabled": False}),
        delete(f"{F}/fresh/dependencies/app"),
        post(f"{F}/fresh/dependencies", {"feature": "web", "variants": ["a"]}),
        delete(f"{F}/fresh/dependencies"),
        post("/api/admin/tags", {"type": "simple", "value": "free"}),
        delete("/api/admin/tags/simple/free"),
        delete("/api/admin/tags/simple/free"),
        post("/api/admin/features/fresh/tags", {"type": "simple", "value": "one"}),
        post("/api/admin/features/fresh/tags", {"type": "simple", "value": "one"}),
        put(
            "/api/admin/features/fresh/tags",
            {"addedTags": [{"type": "simple", "value": "two"}], "removedTags": [{"type": "simple", "value": "one"}]},
        ),
        put(
            f"{P}/tags",
            {
                "features": ["fresh"],
                "tags": {
                    "addedTags": [{"type": "simple", "value": "three"}],
                    "removedTags": [{"type": "simple", "value": "never"}],
                },
            },
        ),
        delete("/api/admin/features/fresh/tags/simple/two"),
        post("/api/admin/tag-types", {"name": "area", "description": "d", "icon": "i"}),
        put("/api/admin/tag-types/area", {"description": "e", "icon": "j"}),
        delete("/api/admin/tag-types/area"),
    ),
    "links": (
        post(F, {"name": "fresh"}),
        post(f"{F}/fresh/link", {"url": "https://example.com/a/"}),
        post(f"{F}/fresh/link", {"url": "https://example.com/b", "title": "B"}),
        get(f"{F}/fresh", keep="first"),
        put(f"{F}/fresh/link/{{first}}", {"url": "https://example.com/c"}),
        put(f"{F}/fresh/link/{{first}}", {"url": "https://example.com/c", "title": "C"}),
        put(f"{F}/fresh/link/{{first}}", {"url": "https://example.com/c", "title": "C"}),
        delete(f"{F}/fresh/link/{{first}}"),
    ),
    "segments and fields": (
        post("/api/admin/segments", {"name": "all", "constraints": []}, keep="all"),
        post("/api/admin/segments", {"name": "here", "constraints": [], "project": "default"}, keep="here"),
        post(F, {"name": "fresh"}),
        post(f"{HERE}/strategies", {"name": "default"}, keep="rule"),
        post(
            "/api/admin/segments/strategies",
            {"projectId": "default", "strategyId": "{rule}", "environmentId": "development", "segmentIds": ["{here}"]},
        ),
        post(
            "/api/admin/segments/strategies",
            {"projectId": "default", "strategyId": "{rule}", "environmentId": "development", "segmentIds": []},
        ),
        delete(f"{HERE}/strategies/{{rule}}"),
        put("/api/admin/segments/{all}", {"name": "everybody", "constraints": []}),
        delete("/api/admin/segments/{all}"),
        delete("/api/admin/segments/{here}"),
        post("/api/admin/context", {"name": "color", "legalValues": [{"value": "a"}]}),
        put("/api/admin/context/color", {"name": "color", "description": "k", "legalValues": [{"value": "a"}]}),
        post("/api/admin/context/color/legal-values", {"value": "q"}),
        delete("/api/admin/context/color/legal-values/q"),
        delete("/api/admin/context/color"),
    ),
    "types and environments": (
        post("/api/admin/strategies", {"name": "hours", "parameters": []}),
        put("/api/admin/strategies/hours", {"name": "hours", "description": "j", "parameters": []}),
        post("/api/admin/strategies/hours/deprecate"),
        post("/api/admin/strategies/hours/reactivate"),
        delete("/api/admin/strategies/hours"),
        delete(f"{P}/environments/production"),
        post(f"{P}/environments", {"environment": "production"}),
        post("/api/admin/environments/production/off"),
        post("/api/admin/environments/production/on"),
        post("/api/admin/maintenance", {"enabled": True}),
        post("/api/admin/maintenance", {"enabled": False}),
    ),
    "tokens and users": (
        post("/api/admin/api-tokens", {"tokenName": "t", "type": "backend", "projects": ["default", "other"]}, keep="token"),
        put("/api/admin/api-tokens/{token}", {"expiresAt": LATER}),
        delete("/api/admin/api-tokens/{token}"),
        post("/api/admin/user/tokens", {"description": "mine", "expiresAt": LATER}, keep="pat"),
        delete("/api/admin/user/tokens/{pat}"),
        post("/api/admin/user-admin", {"username": "newcomer", "rootRole": 3}),
    ),
    "imports": (imported(SET), imported(CHANGED)),
}
"""Each history begins in the state of `server_pair`."""

IDLE = {
    "feature-tagged": "the tag is there already",
    "feature-untagged": "the tag is not there",
    "tag-deleted": "the tag is not there",
    "feature-link-added": "the link is there already",
    "feature-link-updated": "the link says the same already",
}
"""Types that the real server also writes where nothing changes."""
ADDED: dict[tuple[str, str], str] = {
    ("segments and fields", "feature-strategy-update"): "the segments of a strategy change",
    ("types and environments", "environment-updated"): "an environment is switched",
    ("imports", "feature-strategy-remove"): "an import replaces a strategy",
    ("imports", "feature-untagged"): "an import removes a tag",
    ("imports", "feature-link-removed"): "an import removes a link",
}
"""History and type of the events that only ours writes."""
FULLER = {
    "context-field-created": "the real server has the request",
    "context-field-updated": "the real server has the request",
    "tag-type-updated": "the real server has the request",
    "strategy-created": "the real server has the request",
    "strategy-updated": "the real server has the request",
    "pat-created": "the real server has the request",
    "pat-deleted": "the real server has a masked secret",
}
"""Types whose data and preData have more members here."""
ODD = {"api-token-updated": "the real server says `*` for the projects of the token"}
"""Types of which only the type is compared."""
OTHER_TAGS = {
    "feature-untagged": "the real server has the tags before or after, by the request",
    "feature-tagged": "the real server has the tags before others are removed",
    "feature-deleted": "the real server has the tags before",
}
"""Types whose tags are not compared. Those of imports are not either: the real server has the tags of the moment of each step."""

SEARCH = "/api/admin/search/events"
QUESTIONS = (
    *("/api/admin/events", "/api/admin/events?project=default", "/api/admin/events?project=", "/api/admin/events?limit=2"),
    *("/api/admin/events?project=nowhere", "/api/admin/events?project=default&project=other", "/api/admin/events/"),
    *("/api/admin/events/fresh", "/api/admin/events/FRESH", "/api/admin/events/nowhere"),
    *(
        f"{SEARCH}?{query}"
        for query in (
            *("", "limit=3", "limit=0", "limit=-1", "limit=1000", "limit=1001", "limit=abc", "limit=2.5", "limit=5x"),
            *("limit=", "offset=2&limit=2", "offset=-2&limit=2", "offset=x&limit=2"),
            *("offset=1.5&limit=2", "offset=100000", "type=IS:feature-created", "type=feature-created", "type="),
            *("type=IS_ANY_OF:feature-created,feature-archived",),
            *("type=IS_NOT:feature-created", "type=IS:", "type=IS:a&type=IS:b", "feature=IS:fresh", "feature=fresh"),
            *("feature=IS_ANY_OF:,fresh", "project=IS:default", "project=IS:nowhere", "project=IS_ANY_OF:other,default"),
            *("project=INCLUDE:default", "environment=IS:development", "environment=IS_ANY_OF:development,production"),
            *("createdBy=IS:-42", "createdBy=IS:424242", "createdBy=boss", "createdBy=IS:", "id=IS:", "id=40"),
            *("groupId=IS:nothing", "groupId=x", "query=experiment", "query=EXPERIMENT", "query=x,y", "query="),
            *("from=IS:2020-01-01", "to=IS:2020-01-01", "from=IS:2020-01-01&to=IS:2100-01-01", "from=2020-01-01"),
            *("from=", "to=IS_BEFORE:2020-01-01", "nonsense=3", "sortOrder=asc"),
        )
    ),
)
"""What is asked after the history of a flag, and answered alike."""
REFUSED_HERE = ("createdBy=IS:boss", "id=IS:abc", "from=IS:2026-13-45", "id=IS:99999999999999999999")
"""Searches that are 400 here, and 500 there."""
ASKERS = ("boss", "writer", "reader", "owner", "member", "admin")


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
        compare([each for each in mine if each not in added], [each for each in theirs if each not in idle], step, history)
    assert found == {each for each in ADDED if each[0] == history}


def is_alone(event: Json, others: list[Json]) -> bool:
    """Return whether no other event says the same."""
    about = [event[name] for name in ("type", "featureName")] + [plain(event["data"]), plain(event["preData"])]
    return all(about != [each["type"], each["featureName"], plain(each["data"]), plain(each["preData"])] for each in others)


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
