"""Health, readiness and metrics tell how the server is, to whoever asks, and nothing of what it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from flagservers import USER_SECRET, app_client
from flagsvc.errors import DatabaseError


def test_health_and_readiness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are 200 while the database answers; without it the server is healthy, serving from memory, but not ready."""
    with app_client(str(tmp_path / "flags.db")) as client:
        for path in ("/health", "/ready"):
            answer = client.get(path, token=None)
            assert (answer.status, answer.json()) == (200, {"health": "GOOD"})

        def gone() -> int:
            raise DatabaseError("the database failed: OperationalError")

        monkeypatch.setattr(client.server.store, "revision", gone)
        assert client.get("/health", token=None).status == 200
        answer = client.get("/ready", token=None)
        assert (answer.status, answer.json()) == (503, {"health": "BAD"})
        assert int(answer.headers["retry-after"]) > 0


def test_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests by template, method and status, the revision and the number of flags; without the database the first remain."""
    given = {"features": [{"name": "one"}, {"name": "two"}, {"name": "gone", "archived": True}]}
    with app_client(str(tmp_path / "flags.db"), given=given) as client:
        client.get("/health", token=None)
        client.get("/nosuch/secret-name")
        answer = client.get("/internal-backstage/prometheus", token=None)
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        text = answer.body.decode()
        assert 'flagsvc_http_requests_total{method="GET",route="/health",status="200"} 1.0' in text
        assert 'flagsvc_http_requests_total{method="none",route="none",status="404"} 1.0' in text
        assert "flagsvc_features 2.0" in text
        assert f"flagsvc_revision {client.server.store.revision()}.0" in text
        assert "secret" not in text and USER_SECRET not in text

        def gone() -> None:
            raise DatabaseError("the database failed: OperationalError")

        monkeypatch.setattr(client.server.store, "reading", gone)
        text = client.get("/internal-backstage/prometheus", token=None).body.decode()
        assert "flagsvc_http_requests_total" in text
        assert "flagsvc_features" not in text
