"""The batch operations over the application (import validation 1; 6; 7)."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from flagsvc.core.errors import DatabaseError
from flagsvc.server.store import schema
from support.batch_scene import HERE, body, depends, feature, place, strategy
from support.flagservers import ADMIN_SECRET, BACKEND_SECRET, EDITOR_SECRET, VIEWER_SECRET, AppClient

pytestmark = pytest.mark.one_database

PLACE = "/api/admin/features-batch"
OPERATIONS = ("validate", "import", "export")
REQUEST = body(features=[feature("a")], featureStrategies=[strategy("a")])


def test_an_import_answers_nothing(client: AppClient) -> None:
    """An import answers 200 without a body and without a media type."""
    answer = client.post(f"{PLACE}/import", REQUEST)
    assert (answer.status, answer.body) == (200, b"")
    assert "content-type" not in answer.headers
    assert answer.headers["content-length"] == "0"


def test_import_then_export(client: AppClient) -> None:
    """An editor imports a data set; what a viewer then exports can be validated again."""
    assert client.post(f"{PLACE}/import", REQUEST, token=EDITOR_SECRET).status == 200
    exported = client.post(f"{PLACE}/export", HERE, token=VIEWER_SECRET)
    assert exported.status == 200
    data = exported.json()
    assert [each["name"] for each in data["features"]] == ["a"]
    validated = client.post(f"{PLACE}/validate", {**HERE, "data": data}, token=ADMIN_SECRET)
    assert validated.json()["errors"] == validated.json()["permissions"] == []
    assert [each["affectedItems"] for each in validated.json()["warnings"]] == [["a"]]


def test_refusals_have_no_id(client: AppClient) -> None:
    """An error of the operation itself has name, message and details."""
    for operation, request, status in (
        ("import", body(project="nowhere", features=[feature("a")]), 404),
        ("validate", body(project="nowhere"), 404),
    ):
        answer = client.post(f"{PLACE}/{operation}", request)
        assert (answer.status, set(answer.json())) == (status, {"name", "message", "details"})


def test_an_admin_token_validates_and_exports_but_does_not_import(client: AppClient) -> None:
    """An admin token may validate and export; an import is refused after the check of the body's shape."""
    statuses = {
        operation: client.post(f"{PLACE}/{operation}", {**REQUEST, **({} if operation != "export" else HERE)}, token=ADMIN_SECRET)
        for operation in OPERATIONS
    }
    assert {name: answer.status for name, answer in statuses.items()} == {"validate": 200, "import": 400, "export": 200}
    assert "admin token" in statuses["import"].json()["details"][0]["message"]
    assert client.post(f"{PLACE}/import", {}, token=ADMIN_SECRET).json()["details"][0]["path"] == "/body/project"


def test_a_nul_is_refused(client: AppClient) -> None:
    """A NUL in a name is a 400, never a 500."""
    for operation in ("validate", "import"):
        answer = client.post(f"{PLACE}/{operation}", body(features=[feature("a\0")]))
        assert (answer.status, answer.json()["details"][0]["path"]) == (400, "/body/data/features/0/name")


HALVES: dict[str, dict[str, Any]] = {
    "strategies": {"featureStrategies": [strategy("a", "x\ud800y")]},
    "segments": {"segments": [{"id": 1, "name": "x\ud800y"}]},
    "parents": {"dependencies": [depends("a", "x\ud800y")]},
}


def test_half_a_surrogate_pair_is_told_as_it_was_sent(client: AppClient) -> None:
    """The items of a validation and the refusal of an import show half a surrogate pair as an escape, as the real server does."""
    for kind in HALVES:
        request = body(features=[feature("a", project="default")], **HALVES[kind])
        validated = client.post(f"{PLACE}/validate", request)
        assert [each["affectedItems"] for each in validated.json()["errors"]] == [["x\ud800y"]]
        assert b'["x\\ud800y"]' in validated.body
        refused = client.post(f"{PLACE}/import", request)
        assert refused.status == 400
        assert "x\ud800y" in refused.json()["details"][0]["message"]


def test_names_with_different_halves_are_different(client: AppClient) -> None:
    """Two names that differ only in half a surrogate pair are not duplicates."""
    names = ("x\ud800", "x\ud801", "x\ud800")
    validated = client.post(f"{PLACE}/validate", body(features=[feature(name) for name in names]))
    assert [each["affectedItems"] for each in validated.json()["errors"]] == [["x\ud800"]]


def test_no_project_and_no_environment_with_half_a_pair_is_found(client: AppClient) -> None:
    """The 404 shows the name that was sent."""
    for member in ("project", "environment"):
        answer = client.post(f"{PLACE}/validate", body(features=[feature("a")]) | {member: "x\ud800"})
        assert answer.status == 404
        assert answer.json()["message"].endswith(" x\ud800")


def test_half_a_surrogate_pair_is_stored_as_a_replacement(client: AppClient) -> None:
    """Text without a UTF-8 form does not make the server fail."""
    assert client.post(f"{PLACE}/import", body(features=[feature("a", description="x\ud800")])).status == 200
    assert client.post(f"{PLACE}/export", HERE).json()["features"][0]["description"] == "x\ufffd"


def test_an_export_that_cannot_be_noted(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the event cannot be stored, the export is still answered, and the log has the reason."""

    def fail(*given: object) -> None:
        raise DatabaseError("the database failed: OperationalError")

    monkeypatch.setattr("flagsvc.server.api.admin.batch.record_export", fail)
    assert client.post(f"{PLACE}/export", HERE).status == 200
    assert "the event of an export could not be stored" in client.log.at("warn")


def changes(client: AppClient) -> tuple[int, int, list[Any]]:
    """Return what an import changes: the revision, the number of events, and the document for proxies."""
    with client.server.store.reading() as tx:
        events = len(tx.db.execute(select(schema.events.c.id)).all())
    served = client.get("/api/client/features", token=BACKEND_SECRET).json()
    return client.server.store.revision(), events, served["features"]


TRIED = (
    (body(features=[feature("has space")]), 400),
    (body(featureEnvironments=[place("gone", enabled=True)]), 404),
    (body(features=[feature("a", project="default")], dependencies=[depends("a", "a")]), 403),
)
"""Requests in which a validation finds nothing wrong, and that the first or the last steps of an import refuse; and the status."""


def test_a_dry_run_answers_as_the_import_does(client: AppClient) -> None:
    """A validation passes, and the dry run has the import's status and error."""
    for request, status in TRIED:
        assert client.post(f"{PLACE}/validate", request).json()["errors"] == []
        tried, imported = (client.post(f"{PLACE}/{operation}", request) for operation in ("import/dry-run", "import"))
        assert (tried.status, tried.body) == (imported.status, imported.body)
        assert imported.status == status


def test_a_dry_run_changes_nothing(client: AppClient) -> None:
    """A dry run is a 200 without a body, and changes no revision, event or document. The import that follows changes them."""
    before = changes(client)
    tried = client.post(f"{PLACE}/import/dry-run", REQUEST, token=EDITOR_SECRET)
    assert (tried.status, tried.body, changes(client)) == (200, b"", before)
    assert client.post(f"{PLACE}/import", REQUEST, token=EDITOR_SECRET).status == 200
    assert changes(client) != before


def test_who_may_try_an_import(client: AppClient) -> None:
    """An admin token may make a dry run, though not an import; a user needs the permissions of an import; others are refused."""
    tokens = {ADMIN_SECRET: 200, EDITOR_SECRET: 200, VIEWER_SECRET: 403, BACKEND_SECRET: 403, None: 401}
    asked = {token: client.post(f"{PLACE}/import/dry-run", REQUEST, token=token).status for token in tokens}
    assert asked == tokens
