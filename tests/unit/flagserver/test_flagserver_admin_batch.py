"""The batch operations over the application (import validation, 1, 6 and 7)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from batch_scene import HERE, body, feature, strategy
from flagservers import ADMIN_SECRET, BACKEND_SECRET, EDITOR_SECRET, VIEWER_SECRET, AppClient, app_client
from flagsvc.errors import DatabaseError

PLACE = "/api/admin/features-batch"
OPERATIONS = ("validate", "import", "export")
REQUEST = body(features=[feature("a")], featureStrategies=[strategy("a")])


@pytest.fixture
def client(database_url: str) -> Iterator[AppClient]:
    """Give a flag server."""
    with app_client(database_url) as found:
        yield found


def test_an_import_answers_nothing(client: AppClient) -> None:
    """200, no body and no type of one."""
    answer = client.post(f"{PLACE}/import", REQUEST)
    assert (answer.status, answer.body) == (200, b"")
    assert "content-type" not in answer.headers
    assert answer.headers["content-length"] == "0"


def test_import_then_export(client: AppClient) -> None:
    """What an editor imports, a viewer exports, and that is a data set that can be validated again."""
    assert client.post(f"{PLACE}/import", REQUEST, token=EDITOR_SECRET).status == 200
    exported = client.post(f"{PLACE}/export", HERE, token=VIEWER_SECRET)
    assert exported.status == 200
    data = exported.json()
    assert [each["name"] for each in data["features"]] == ["a"]
    validated = client.post(f"{PLACE}/validate", {**HERE, "data": data}, token=ADMIN_SECRET)
    assert validated.json()["errors"] == validated.json()["permissions"] == []
    assert [each["affectedItems"] for each in validated.json()["warnings"]] == [["a"]]


def test_refusals_have_no_id(client: AppClient) -> None:
    """An operation's own error has name, message and details."""
    for operation, request, status in (
        ("import", body(project="nowhere", features=[feature("a")]), 404),
        ("validate", body(project="nowhere"), 404),
    ):
        answer = client.post(f"{PLACE}/{operation}", request)
        assert (answer.status, set(answer.json())) == (status, {"name", "message", "details"})


def test_an_admin_token_validates_and_exports_but_does_not_import(client: AppClient) -> None:
    """The shape is looked at first."""
    statuses = {
        operation: client.post(
            f"{PLACE}/{operation}", {**REQUEST, **({} if operation != "export" else HERE)}, token=ADMIN_SECRET
        )
        for operation in OPERATIONS
    }
    assert {name: answer.status for name, answer in statuses.items()} == {"validate": 200, "import": 400, "export": 200}
    assert "admin token" in statuses["import"].json()["details"][0]["message"]
    assert client.post(f"{PLACE}/import", {}, token=ADMIN_SECRET).json()["details"][0]["path"] == "/body/project"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_who_may_not_ask(client: AppClient, operation: str) -> None:
    """Nobody without a token, and no client's token."""
    assert client.post(f"{PLACE}/{operation}", REQUEST, token=None).status == 401
    assert client.post(f"{PLACE}/{operation}", REQUEST, token=BACKEND_SECRET).status == 403
    assert client.get(f"{PLACE}/{operation}").status == 405


def test_a_nul_is_refused(client: AppClient) -> None:
    """A NUL in a name is a 400, never a 500."""
    for operation in ("validate", "import"):
        answer = client.post(f"{PLACE}/{operation}", body(features=[feature("a\0")]))
        assert (answer.status, answer.json()["details"][0]["path"]) == (400, "/body/data/features/0/name")


def test_half_a_surrogate_pair_is_stored_as_a_replacement(client: AppClient) -> None:
    """Text that has no UTF-8 form does not make the server fail."""
    assert client.post(f"{PLACE}/import", body(features=[feature("a", description="x\ud800")])).status == 200
    assert client.post(f"{PLACE}/export", HERE).json()["features"][0]["description"] == "x\ufffd"


def test_an_export_that_cannot_be_noted(client: AppClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is answered all the same, and the log has the reason."""

    def fail(*given: object) -> None:
        raise DatabaseError("the database failed: OperationalError")

    monkeypatch.setattr("flagsvc.flagserver.admin.batch.note_export", fail)
    assert client.post(f"{PLACE}/export", HERE).status == 200
    assert "an export is not noted" in client.log.at("warn")
