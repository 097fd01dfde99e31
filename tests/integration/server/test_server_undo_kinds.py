"""Undo of every kind of event: afterwards the whole database, and what clients get, is as before; and redo is an undo."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from sqlalchemy import select

from flagsvc.server.store.client_features import read_environment_features
from flagsvc.server.store.documents import DocumentQuery, make_document
from flagsvc.server.store.event_kinds import KINDS, ROWS, EventKind, Undo
from flagsvc.server.store.resources.project_access import give_role
from flagsvc.server.store.schema import METADATA
from flagsvc.server.store.seed.file import parse_seed
from flagsvc.server.store.seed.wanted import make_wanted
from flagsvc.server.store.timestamps import format_time
from support.flagservers import BACKEND_SECRET, VIEWER_SECRET, AppClient, app_client
from support.processes import scratch
from support.server_pair import Step, delete, filled, post, put

PRODUCTION_SECRET = "*:production.backend-secret-of-tests"
P = "/api/admin/projects/default"
F = f"{P}/features"
A = f"{F}/a"
HERE = f"{A}/environments/development"
RULES = f"{HERE}/strategies"
SHOP = "/api/admin/projects/shop"
TAG = {"type": "simple", "value": "blue"}
ROLLOUT = {"rollout": "25", "stickiness": "userId", "groupId": "a"}
RULE = {"name": "flexibleRollout", "parameters": ROLLOUT, "title": "one", "segments": [1]}
VARIANT = {"name": "v", "weight": 1000, "weightType": "variable", "stickiness": "default"}
ONLY_SEVEN = [{"contextName": "userId", "operator": "IN", "values": ["7"]}]
GIVEN: dict[str, Any] = {
    "users": [{"name": "guest", "rootRole": "viewer"}],
    "environments": [{"name": "staging", "type": "test"}],
    "projects": [{"id": "shop", "name": "Shop", "environments": ["development"]}],
    "tokens": [{"type": "backend", "environment": "production", "secret": PRODUCTION_SECRET}],
    "features": [{"name": "a"}, {"name": "parent"}, {"name": "other"}, {"name": "c"}, {"name": "goods", "project": "shop"}],
    "segments": [{"name": name, "constraints": ONLY_SEVEN} for name in ("beta", "idle", "free")],
    "contextFields": [{"name": "plan", "description": "d", "stickiness": True, "legalValues": [{"value": "gold"}]}],
    "strategyTypes": [{"name": "hours", "parameters": [], "description": "d"}, {"name": "days", "parameters": []}],
    "tagTypes": [{"name": "area", "description": "d"}, {"name": "late", "description": "x"}],
}
"""What a server has before the steps of STARTED."""
STARTED: tuple[Step, ...] = (
    post(RULES, RULE, keep="first"),
    post(RULES, RULE | {"title": "two", "segments": []}, keep="second"),
    post(f"{HERE}/on"),
    post(f"{F}/c/environments/development/strategies", RULE | {"segments": [2]}),
    put(f"{A}/variants-batch", {"environments": ["development"], "variants": [VARIANT]}),
    post(f"{A}/dependencies", {"feature": "parent", "variants": []}),
    post("/api/admin/features/a/tags", TAG),
    post("/api/admin/features/a/tags", {"type": "area", "value": "cart"}),
    delete(f"{F}/c"),
)
"""A flag `a` with all that a flag can have, and an archived flag `c` with the segment `idle`."""


def data_set(**given: Any) -> Step:
    """Return the import of a data set into `default`, `development`."""
    names = ("features", "featureStrategies", "featureEnvironments", "contextFields", "featureTags", "segments")
    data = {name: [] for name in (*names, "tagTypes")} | given
    body = {"project": "default", "environment": "development", "data": data}
    return post("/api/admin/features-batch/import", body)


def links(*urls: str) -> Step:
    """Return the import of the links of `a`."""
    return data_set(links=[{"feature": "a", "links": [{"url": each, "title": each} for each in urls]}])


LINKED = links("https://example.com/x", "https://example.com/y")
IMPORT = data_set(
    features=[{"name": "a", "type": "experiment", "description": "brought", "stale": True}, {"name": "new", "type": "release"}],
    featureStrategies=[
        {"name": "default", "featureName": "a", "parameters": {}, "constraints": []},
        {"name": "default", "featureName": "new", "parameters": {}, "constraints": []},
    ],
    featureEnvironments=[
        {"enabled": False, "featureName": "a", "environment": "development", "name": "a", "variants": []},
        {"enabled": True, "featureName": "new", "environment": "development", "name": "new", "variants": [VARIANT]},
    ],
    contextFields=[{"name": "region", "legalValues": [{"value": "eu"}]}],
    featureTags=[{"featureName": "new", "tagType": "fresh", "tagValue": "cart"}],
    tagTypes=[{"name": "fresh", "description": "x", "icon": ""}],
    dependencies=[{"feature": "new", "dependencies": [{"feature": "parent"}]}],
    links=[{"feature": "new", "links": [{"url": "https://example.com/x", "title": "t"}]}],
)
"""It changes a flag, makes another with all that it may have, and what that needs."""


class Trial(NamedTuple):
    """Steps before a change, and the change, whose newest event of a kind is undone."""

    change: Step
    before: tuple[Step, ...] = ()


SEGMENT = {"name": "extra", "constraints": ONLY_SEVEN}
MEMBER = {"roles": [5], "groups": [], "users": [4]}
ROLES = f"{P}/users/4/roles"
TRIALS: Mapping[str, Trial] = {
    "feature-created": Trial(post(F, {"name": "z", "description": "d", "tags": [TAG]})),
    "feature-deleted": Trial(delete("/api/admin/archive/a"), (LINKED, delete(A))),
    "feature-metadata-updated": Trial(put(A, {"name": "a", "type": "experiment", "description": "x", "stale": True})),
    "feature-stale-on": Trial(post(f"{P}/stale", {"features": ["a"], "stale": True})),
    "feature-stale-off": Trial(
        post(f"{P}/stale", {"features": ["a"], "stale": False}), (post(f"{P}/stale", {"features": ["a"], "stale": True}),)
    ),
    "feature-archived": Trial(delete(A), (delete(f"{A}/dependencies"),)),
    "feature-revived": Trial(post("/api/admin/archive/revive/a"), (delete(A),)),
    "feature-environment-enabled": Trial(post(f"{HERE}/on"), (post(f"{HERE}/off"),)),
    "feature-environment-disabled": Trial(post(f"{HERE}/off")),
    "feature-environment-variants-updated": Trial(put(f"{HERE}/variants", [VARIANT | {"name": "w"}])),
    "feature-strategy-add": Trial(post(RULES, RULE | {"title": "three"})),
    "feature-strategy-update": Trial(put(f"{RULES}/{{first}}", RULE | {"title": "changed", "segments": []})),
    "feature-strategy-remove": Trial(delete(f"{RULES}/{{first}}")),
    "strategy-order-changed": Trial(
        post(f"{RULES}/set-sort-order", [{"id": "{second}", "sortOrder": 0}, {"id": "{first}", "sortOrder": 1}])
    ),
    "feature-dependency-added": Trial(post(f"{A}/dependencies", {"feature": "other", "enabled": False})),
    "feature-dependency-removed": Trial(delete(f"{A}/dependencies/parent")),
    "feature-dependencies-removed": Trial(delete(f"{A}/dependencies")),
    "feature-tagged": Trial(post("/api/admin/features/other/tags", TAG)),
    "feature-untagged": Trial(delete("/api/admin/features/a/tags/simple/blue")),
    "feature-link-added": Trial(LINKED),
    "feature-link-updated": Trial(put(f"{A}/link/{{link}}", {"url": "https://example.com/z", "title": "z"}), (LINKED,)),
    "feature-link-removed": Trial(links("https://example.com/y"), (LINKED,)),
    "features-imported": Trial(IMPORT),
    "tag-created": Trial(post("/api/admin/tags", {"type": "simple", "value": "free"})),
    "tag-deleted": Trial(delete("/api/admin/tags/simple/blue")),
    "tag-type-created": Trial(post("/api/admin/tag-types", {"name": "team", "description": "d"})),
    "tag-type-updated": Trial(put("/api/admin/tag-types/area", {"description": "e", "icon": "j"})),
    "tag-type-deleted": Trial(delete("/api/admin/tag-types/area")),
    "context-field-created": Trial(post("/api/admin/context", {"name": "color", "legalValues": [{"value": "a"}]})),
    "context-field-updated": Trial(put("/api/admin/context/plan", {"name": "plan", "stickiness": False})),
    "context-field-deleted": Trial(delete("/api/admin/context/plan")),
    "segment-created": Trial(post("/api/admin/segments", SEGMENT)),
    "segment-updated": Trial(put("/api/admin/segments/1", {"name": "gamma", "description": "e", "constraints": []})),
    "segment-deleted": Trial(delete("/api/admin/segments/2")),
    "strategy-created": Trial(post("/api/admin/strategies", {"name": "weeks", "parameters": []})),
    "strategy-updated": Trial(put("/api/admin/strategies/hours", {"name": "hours", "description": "j", "parameters": []})),
    "strategy-deprecated": Trial(post("/api/admin/strategies/hours/deprecate")),
    "strategy-reactivated": Trial(post("/api/admin/strategies/hours/reactivate"), (post("/api/admin/strategies/hours/deprecate"),)),
    "strategy-deleted": Trial(delete("/api/admin/strategies/hours")),
    "project-created": Trial(post("/api/admin/projects", {"id": "new", "name": "New"})),
    "project-updated": Trial(put(P, {"name": "The default", "description": "d", "featureLimit": 100})),
    "project-deleted": Trial(
        delete(SHOP), (post(f"{SHOP}/access", MEMBER), delete(f"{SHOP}/features/goods"), delete("/api/admin/archive/goods"))
    ),
    "project-environment-added": Trial(post(f"{P}/environments", {"environment": "staging"})),
    "project-environment-removed": Trial(delete(f"{P}/environments/development")),
    "project-access-added": Trial(post(f"{P}/access", MEMBER)),
    "project-access-user-roles-updated": Trial(put(ROLES, {"roles": [4]}), (post(f"{P}/access", MEMBER),)),
    "project-access-user-roles-deleted": Trial(delete(ROLES), (post(f"{P}/access", MEMBER),)),
    "environment-created": Trial(post("/api/admin/environments", {"name": "qa", "type": "test"})),
    "environment-updated": Trial(put("/api/admin/environments/update/staging", {"type": "other", "sortOrder": 7})),
    "environment-deleted": Trial(
        delete("/api/admin/environments/staging"),
        (
            post(f"{P}/environments", {"environment": "staging"}),
            post(f"{A}/environments/staging/strategies", RULE),
            delete(f"{P}/environments/staging"),
        ),
    ),
}
"""Kind of event → its trial."""
TOGETHER: Mapping[str, Trial] = {
    "a patch that marks as stale": Trial(
        Step(
            "PATCH",
            A,
            [{"op": "replace", "path": "/stale", "value": True}, {"op": "replace", "path": "/description", "value": "p"}],
        )
    ),
    "an archived child": Trial(delete(A)),
    "a clone": Trial(post(f"{A}/clone", {"name": "copy"})),
    "a first switch": Trial(post(f"{F}/other/environments/production/on")),
    "a new tag": Trial(post("/api/admin/features/other/tags", {"type": "simple", "value": "new"})),
    "an import over an import": Trial(
        data_set(
            features=[{"name": "new"}],
            featureEnvironments=[
                {"enabled": False, "featureName": "new", "environment": "development", "name": "new", "variants": []}
            ],
            links=[{"feature": "new", "links": []}],
        ),
        (IMPORT,),
    ),
    "a project with all that is its own": Trial(
        delete(SHOP),
        (
            post("/api/admin/segments", {"name": "own", "constraints": [], "project": "shop"}, keep="own"),
            post("/api/admin/context", {"name": "basket", "project": "shop"}),
            post(f"{SHOP}/features/goods/environments/development/strategies", RULE | {"segments": ["{own}"]}),
            delete(f"{SHOP}/features/goods"),
        ),
    ),
    "flags at once": Trial(post(f"{P}/delete", {"features": ["a", "c"]}), (post(f"{P}/archive", {"features": ["a", "other"]}),)),
}
"""Changes of several events → their trial; the whole action is undone."""
IS_RED = {"contextName": "color", "operator": "IN", "values": ["red"]}
USED = RULE | {"segments": [4]}
OBSTACLES: Mapping[str, tuple[str, tuple[Step, ...], str]] = {
    "a flag that has a strategy since": (
        "feature-created",
        (post(F, {"name": "z"}), post(f"{F}/z/environments/development/strategies", RULE)),
        "added",
    ),
    "a flag with a child": (
        "feature-created",
        (post(F, {"name": "z"}), post(f"{F}/other/dependencies", {"feature": "z"})),
        "depend on z",
    ),
    "a segment in use": ("segment-created", (post("/api/admin/segments", SEGMENT), post(RULES, USED)), "added flexibleRollout"),
    "a segment that belongs to all projects since": (
        "segment-created",
        (post("/api/admin/segments", SEGMENT | {"project": "default"}), put("/api/admin/segments/4", SEGMENT)),
        "changed the segment",
    ),
    "a context field in use": (
        "context-field-created",
        (post("/api/admin/context", {"name": "color"}), post(RULES, RULE | {"constraints": [IS_RED]})),
        "added flexibleRollout",
    ),
    "a strategy type in use": (
        "strategy-created",
        (post("/api/admin/strategies", {"name": "weeks", "parameters": []}), post(RULES, {"name": "weeks"})),
        "added weeks",
    ),
    "a tag that another flag has": (
        "tag-created",
        (post("/api/admin/tags", TAG | {"value": "new"}), post("/api/admin/features/a/tags", TAG | {"value": "new"})),
        "tagged a with new",
    ),
    "a deleted segment of a revived flag": (
        "segment-deleted",
        (delete("/api/admin/segments/2"), post("/api/admin/archive/revive/c")),
        "The flag c, which used the segment, is active again",
    ),
    "a project with a member": (
        "project-created",
        (post("/api/admin/projects", {"id": "new", "name": "N"}), post("/api/admin/projects/new/access", MEMBER)),
        "gave roles in new",
    ),
    "an environment that a project has": (
        "environment-created",
        (post("/api/admin/environments", {"name": "qa", "type": "test"}), post(f"{P}/environments", {"environment": "qa"})),
        "added qa to the project default",
    ),
    "an environment of a project, in which a flag is on": (
        "project-environment-added",
        (post(f"{P}/environments", {"environment": "staging"}), post(f"{A}/environments/staging/on")),
        "switched a on in staging",
    ),
    "a switch of a revived flag": (
        "feature-environment-enabled",
        (post(f"{HERE}/off"), post(f"{HERE}/on"), delete(A), post("/api/admin/archive/revive/a")),
        "revived a",
    ),
    "a switch in an environment that the project no longer has": (
        "feature-environment-enabled",
        (post(f"{HERE}/off"), post(f"{HERE}/on"), delete(f"{P}/environments/development")),
        "removed development from the project default",
    ),
    "a parent that is archived": (
        "feature-dependency-removed",
        (delete(f"{A}/dependencies/parent"), delete(f"{F}/parent")),
        "No active feature parent exists",
    ),
}
"""What stands in the way → the kind that is undone, the steps, and what the message says."""


EVENTS = "/api/admin/events"
NOT_COMPARED = {"events", "revision", "tokens", "users"}
"""Tables that say who did what and when."""
OF_THE_MOMENT = {
    "projects": {"updated_at"},
    "feature_tags": {"created_at", "created_by_id"},
    "strategies": {"created_at"},
    "links": {"position"},
}
"""Columns that no client sees: the moment of the last write, who gave a tag, and where links of other flags are."""
BY_A_SEED = "project-user-added"


class Scene:
    """A server in which steps were done; ids that they kept are filled in."""

    def __init__(self, client: AppClient, known: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.client = client
        self.known = dict(known)

    def do(self, steps: Sequence[Step]) -> None:
        """Do steps, each of which succeeds."""
        for step in steps:
            assert self.tries(step), step

    def tries(self, step: Step) -> bool:
        """Do a step, and return whether it succeeded. `{link}` is the first link of the flag `a`."""
        if "{link}" in step.path:
            self.known["link"] = next((each["id"] for each in self.client.get(A).json().get("links", ())), "none")
        answer = self.client.ask(step.method, filled(step.path, self.known), filled(step.body, self.known))
        assert answer.status < 500, (step, answer.text, self.client.log.lines)
        if step.keep and answer.status < 300:
            self.known[step.keep] = answer.json()["id"]
        return answer.status < 300

    def state(self) -> tuple[bytes, ...]:
        """Return what clients get, byte for byte, and the rows of the database as text. What clients get is what a server gives
        them that reads everything, however little this server has read again."""
        documents = [self.client.get("/api/client/features", token=each) for each in (BACKEND_SECRET, PRODUCTION_SECRET)]
        assert all(each.status == 200 for each in documents)
        bodies = [each.body.partition(b'"meta"')[0] for each in documents]
        with self.client.server.store.reading() as tx:
            queries = [DocumentQuery(each, inline=True) for each in ("development", "production")]
            whole = [make_document(each, read_environment_features(tx, each.environment)) for each in queries]
        assert bodies == [each.body.partition(b'"meta"')[0] for each in whole]
        return *bodies, *self.rows()

    def rows(self) -> Iterator[bytes]:
        """Yield the rows of each table that is compared."""
        with self.client.server.store.reading() as tx:
            for table in METADATA.sorted_tables:
                if table.name not in NOT_COMPARED:
                    columns = [each for each in table.c if each.name not in OF_THE_MOMENT.get(table.name, ())]
                    found = tx.db.execute(select(*columns)).all()
                    yield "\n".join([table.name, *sorted(repr([shown(each) for each in row]) for row in found)]).encode()

    def newest(self, kind: str = "") -> dict[str, Any]:
        """Return the newest event, or the newest of a kind."""
        found = self.client.get(f"/api/admin/search/events?limit=100{f'&type=IS:{kind}' if kind else ''}").json()["events"]
        return max(found, key=lambda each: int(each["id"]))

    def undo(self, path: object) -> str:
        """Undo an event or an action, and return the id of what was done."""
        answer = self.client.post(f"{EVENTS}/{path}/undo", None)
        assert answer.status == 200, answer.text
        return str(answer.json()["groupId"])


def shown(value: Any) -> Any:
    """Return a value of a row; a time in milliseconds, which is all that the API shows."""
    return format_time(value) if isinstance(value, datetime) else in_order(value)


def in_order(value: Any) -> Any:
    """Return a JSON value with its members in order: PostgreSQL has an order of its own."""
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    return [in_order(each) for each in value] if isinstance(value, list) else value


@cache
def started() -> tuple[bytes, Mapping[str, Any]]:
    """Return an SQLite database after STARTED, and the ids that the steps kept."""
    with scratch() as folder:
        with app_client(str(folder / "flags.db"), given=GIVEN) as client:
            scene = Scene(client)
            scene.do(STARTED)
        return (folder / "flags.db").read_bytes(), scene.known


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    """Give a server with flags that have all that a flag can have, on each kind of database."""
    is_file = database_url.startswith("sqlite")
    content, known = started() if is_file else (b"", {})
    if is_file:
        Path(database_url.removeprefix("sqlite:///")).write_bytes(content)
    with app_client(database_url, given=GIVEN, seeded=not is_file) as client:
        scene = Scene(client, known)
        scene.do(() if is_file else STARTED)
        yield scene


def by_server(trials: Mapping[str, Trial]) -> list[list[str]]:
    """Return the names of trials by server. A server does for all trials without first steps: every trial leaves it as it was."""
    return [
        [name for name, trial in trials.items() if not trial.before],
        *([name] for name, trial in trials.items() if trial.before),
    ]


def test_back_to_the_beginning(scene: Scene) -> None:
    """After changes of every kind one after the other, the undo of each, the newest first, leads through the same states back.

    Some changes are refused after others, as one of a flag that is deleted.
    """
    passed: list[tuple[str, tuple[bytes, ...]]] = []
    state = scene.state()
    steps = [step for trial in (*TRIALS.values(), *TOGETHER.values()) for step in (*trial.before, trial.change)]
    for step in sorted(steps, key=lambda step: step.method == "DELETE"):
        if not scene.tries(step) or scene.state() == state:
            continue
        passed.append((scene.newest()["groupId"], state))
        state = scene.state()
    assert len(passed) > 50
    for action, before in reversed(passed):
        scene.undo(f"actions/{action}")
        assert scene.state() == before


def test_every_undo_needs_a_permission() -> None:
    """Each kind of event that can be undone needs a permission, but for the import, whose events need their own."""
    for row in ROWS:
        assert not isinstance(row.undo, Undo) or row.undo.permissions or row.type == "features-imported", row.type


def test_every_row_is_tried() -> None:
    """Each kind of event that can be undone has a trial."""
    assert {row.type for row in ROWS if row.subject is not None} == {*TRIALS, BY_A_SEED}


@pytest.mark.one_database
@pytest.mark.parametrize("names", by_server(TRIALS), ids=lambda names: names[0])
def test_undo_and_redo(scene: Scene, names: Sequence[str]) -> None:
    """After a change and its undo all is as before; its redo and the undo of that are as exact.

    Who may not do the opposite may not undo. An undo that would overwrite a later change names it. Both change nothing.
    """
    scene.do(TRIALS[names[0]].before)
    before = scene.state()
    for kind in names:
        scene.do([TRIALS[kind].change])
        after = scene.state()
        assert after != before, kind
        event = scene.newest(kind)["id"]
        assert_viewer_is_refused(scene, event, kind)
        assert scene.state() == after, kind
        action = scene.undo(event)
        assert scene.state() == before, kind
        assert_later_change_is_named(scene, event, action)
        assert scene.state() == before, kind
        back_and_forth(scene, action, before, after)


def assert_viewer_is_refused(scene: Scene, event: object, kind: str) -> None:
    """Check that a viewer may not undo an event, and reads which permission is missing."""
    refused = scene.client.ask("POST", f"{EVENTS}/{event}/undo", None, token=VIEWER_SECRET)
    assert refused.status == 403 and (getattr(KINDS[kind].undo, "permissions", ()) or ("FEATURE",))[0] in refused.text


def assert_later_change_is_named(scene: Scene, event: object, action: str) -> None:
    """Check that an event that was undone cannot be undone again, and that the message names an event of the undo."""
    again = scene.client.post(f"{EVENTS}/{event}/undo", None)
    assert again.status == 409 and "was changed later: boss " in again.text, again.text
    [number] = re.findall(r"\(event (\d+)\)", again.json()["message"])
    found = scene.client.get(f"/api/admin/search/events?groupId=IS:{action}").json()["events"]
    assert int(number) in {each["id"] for each in found}


@pytest.mark.one_database
@pytest.mark.parametrize("names", by_server(TOGETHER), ids=lambda names: names[0])
def test_undo_and_redo_of_an_action(scene: Scene, names: Sequence[str]) -> None:
    """What was done together is undone together, also where several events tell of the same."""
    scene.do(TOGETHER[names[0]].before)
    before = scene.state()
    for name in names:
        scene.do([TOGETHER[name].change])
        after = scene.state()
        assert after != before, name
        action = scene.undo(f"actions/{scene.newest()['groupId']}")
        assert scene.state() == before, name
        back_and_forth(scene, action, before, after)


def back_and_forth(scene: Scene, action: str, before: tuple[bytes, ...], after: tuple[bytes, ...]) -> None:
    """Undo an undo, and undo that."""
    action = scene.undo(f"actions/{action}")
    assert scene.state() == after
    scene.undo(f"actions/{action}")
    assert scene.state() == before


@pytest.mark.parametrize("row", [row for row in ROWS if row.subject is None], ids=lambda row: row.type)
def test_a_kind_without_undo_says_why(row: EventKind) -> None:
    """Each reason is one plain sentence, which the page and the 409 end with."""
    reason = str(row.undo)
    assert reason[0].isupper() and reason[-1].isalnum() and ". " not in reason


@pytest.mark.one_database
def test_the_reason_is_told(scene: Scene) -> None:
    """A user who was made stays: the answer is 409 with the sentence, and the history shows it."""
    scene.do([post("/api/admin/user-admin", {"username": "newcomer", "rootRole": 3})])
    event = scene.newest("user-created")
    answer = scene.client.post(f"{EVENTS}/{event['id']}/undo", None)
    assert (answer.status, answer.json()["message"]) == (409, f"This cannot be undone: {KINDS['user-created'].undo}")


@pytest.mark.one_database
def test_undo_of_an_archived_project(scene: Scene) -> None:
    """A seed can archive a project. The undo revives it with an event, so that the undo can be undone."""
    before = scene.state()
    with scene.client.server.store.writing(None, "seed") as tx:
        make_wanted(tx, parse_seed({"projects": [{"id": "default", "archived": True}]}))
    after = scene.state()
    assert before != after
    action = scene.undo(scene.newest("project-updated")["id"])
    assert scene.state() == before
    scene.undo(f"actions/{action}")
    assert scene.state() == after


@pytest.mark.one_database
def test_undo_of_a_role_that_a_seed_gave(scene: Scene) -> None:
    """A seed gives roles in projects, too; each has its event."""
    before = scene.state()
    with scene.client.server.store.writing(None, "seed") as tx:
        give_role(tx, 3, "somebody", "default", "member")
    after = scene.state()
    action = scene.undo(scene.newest(BY_A_SEED)["id"])
    assert scene.state() == before
    scene.undo(f"actions/{action}")
    assert scene.state() == after


@pytest.mark.one_database
@pytest.mark.parametrize("name", OBSTACLES)
def test_what_stands_in_the_way_is_told(scene: Scene, name: str) -> None:
    """Nothing is taken away that an event does not tell of; the message says what it is."""
    kind, steps, message = OBSTACLES[name]
    scene.do(steps)
    before = scene.state()
    answer = scene.client.post(f"{EVENTS}/{scene.newest(kind)['id']}/undo", None)
    assert answer.status == 409 and message in answer.json()["message"], answer.text
    assert scene.state() == before
