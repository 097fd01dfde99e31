"""What browsers report: it is in the usage of the flag, and nothing that a page makes up or that tells users apart is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from flagsvc.core.errors import DatabaseError
from flagsvc.server.store.schema import METADATA, application_instances
from support.flagservers import FRONTEND_SECRET, AppClient, app_client

SHOP_SECRET = "shop:development.secret-of-a-page"
STRATEGY = {"environment": "development", "name": "default"}
VARIANT = {"name": "green", "weight": 1000, "weightType": "variable", "stickiness": "default"}
GIVEN: dict[str, Any] = {
    "projects": [{"id": "shop", "name": "Shop"}],
    "tokens": [{"type": "frontend", "secret": SHOP_SECRET, "projects": ["shop"]}],
    "features": [
        {"name": "on", "enabled": ["development"]},
        {"name": "basket", "project": "shop", "enabled": ["development"]},
    ],
    "strategies": [
        {
            **STRATEGY,
            "feature": "on",
            "name": "flexibleRollout",
            "parameters": {"rollout": "100"},
            "variants": [VARIANT],
        },
        {**STRATEGY, "feature": "basket"},
    ],
}
MARK = "marked-user-4711"


def report(client: AppClient, toggles: Any, token: str = FRONTEND_SECRET, **more: Any) -> int:
    """Send a report that has just ended, and return the status."""
    bucket = {"start": "2020-01-01T00:00:00Z", "stop": "2099-01-01T00:00:00Z", "toggles": toggles}
    body = {"appName": "web", "instanceId": MARK, "bucket": bucket, **more}
    headers = {"unleash-sdk": "unleash-client-js:3.8.2"}
    return client.post("/api/frontend/client/metrics", body, token=token, headers=headers).status


def usage(client: AppClient, name: str) -> list[tuple[str, int, int, Any]]:
    """Return the stored usage of a flag: application, on, off and variants."""
    rows = client.get(f"/api/admin/client-metrics/features/{name}/raw").json()["data"]
    return [(row["appName"], row["yes"], row["no"], row["variants"]) for row in rows if row["yes"] or row["no"]]


def test_counts_are_those_of_the_flag(tmp_path: Path) -> None:
    """Counts of several reports are added up under the application's name; flags of other projects are left out."""
    with app_client(str(tmp_path / "flags.db"), given=GIVEN) as client:
        counted = {"on": {"yes": 5, "no": 1, "variants": {"green": 5}}, "basket": {"yes": 1, "no": 0}}
        assert report(client, counted) == report(client, counted) == 200
        assert report(client, counted, SHOP_SECRET) == 200
        assert usage(client, "on") == [("web", 10, 2, {"green": 10})]
        assert usage(client, "basket") == [("web", 3, 0, {})]


def test_nothing_that_a_page_makes_up_is_stored(tmp_path: Path) -> None:
    """Unknown flags and variants are left out. The application has one instance, with its SDK and without an address."""
    database = tmp_path / "flags.db"
    with app_client(str(database), given=GIVEN) as client:
        assert report(client, {MARK: {"yes": 1, "no": 0}, "on": {"yes": 1, "variants": {MARK: 1}}}) == 200
        assert usage(client, "on") == [("web", 1, 0, {})]
        with client.server.store.reading() as tx:
            [row] = tx.db.execute(select(application_instances)).mappings().all()
            stored = [str(each) for table in METADATA.tables.values() for each in tx.db.execute(select(table))]
    found = (row["instance_id"], row["sdk_type"], row["sdk_version"], row["client_ip"])
    assert found == ("default", "frontend", "unleash-client-js:3.8.2", None)
    assert not [each for each in stored if MARK in each or "203.0.113.7" in each]


def lose() -> NoReturn:
    """Fail as a database that cannot be reached."""
    raise DatabaseError("the database failed: OperationalError") from OperationalError("", {}, Exception())


def test_without_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the database is away flags are evaluated as before, and reports are a 503 that says when to come back."""
    with app_client(str(tmp_path / "flags.db"), given=GIVEN) as client:
        assert client.get("/api/frontend", token=FRONTEND_SECRET).status == 200
        for method in ("reading", "recording"):
            monkeypatch.setattr(client.server.store, method, lose)
        assert client.get("/api/frontend", token=FRONTEND_SECRET).status == 200
        assert report(client, {}) == 503
        assert client.log.at("error") == []
