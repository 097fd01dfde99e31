"""The batch operations over the application (import validation 1; 6; 7)."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.core.errors import DatabaseError
from support.batch_scene import HERE, body, depends, feature, strategy
from support.flagservers import ADMIN_SECRET, BACKEND_SECRET, EDITOR_SECRET, VIEWER_SECRET, AppClient

pytestmark = pytest.mark.one_database

PLACE = "/api/admin/features-batch"
OPERATIONS = ("validate", "import", "export")
REQUEST = body(features=[feature("a")], featureStrategies=[strategy("a")])


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


def test_who_may_try_an_import(client: AppClient) -> None:
    """An admin token may make a dry run, though not an import; a user needs the permissions of an import; others are refused."""
    tokens = {ADMIN_SECRET: 200, EDITOR_SECRET: 200, VIEWER_SECRET: 403, BACKEND_SECRET: 403, None: 401}
    asked = {token: client.post(f"{PLACE}/import/dry-run", REQUEST, token=token).status for token in tokens}
    assert asked == tokens
