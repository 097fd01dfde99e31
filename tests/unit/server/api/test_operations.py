"""Health, readiness and metrics report the state of the server to every caller, and nothing about its data.

The rows of the flag server's metrics.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from flagsvc.core.errors import DatabaseError
from flagsvc.server.api.operations import OWN, text
from support.flagservers import BACKEND_SECRET, USER_SECRET, app_client


def unreachable() -> int:
    """Fail as a store whose database is away."""
    raise DatabaseError("the database failed: OperationalError")


def test_health_and_readiness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are 200 while the database answers. Without it, health stays 200 and readiness is 503."""
    with app_client(str(tmp_path / "flags.db")) as client:
        for path in ("/health", "/ready"):
            answer = client.get(path, token=None)
            assert (answer.status, answer.json()) == (200, {"health": "GOOD"})

        monkeypatch.setattr(client.server.store, "revision", unreachable)
        assert client.get("/health", token=None).status == 200
        answer = client.get("/ready", token=None)
        assert (answer.status, answer.json()) == (503, {"health": "BAD"})
        assert int(answer.headers["retry-after"]) > 0


def test_probes_and_metrics_where_operators_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paths of the proxy's probes answer here too, outside of the base path, with the reason as a word."""
    database = str(tmp_path / "flags.db")
    with app_client(database, base="/base") as client:
        found = {path: client.get(path, token=None) for path in ("/livez", "/readyz", "/metrics")}
        assert {path: answer.status for path, answer in found.items()} == dict.fromkeys(found, 200)
        assert (found["/livez"].body, found["/readyz"].body) == (b"ok", b"ready")
        assert b"flagsvc_build_info" in found["/metrics"].body
        assert {client.get(f"/base{path}", token=None).status for path in found} == {404}
        client.server.process.draining = True
        answer = client.get("/readyz", token=None)
        assert (answer.status, answer.body, client.get("/livez", token=None).status) == (503, b"draining", 200)
    with app_client(str(tmp_path / "other.db")) as client:
        monkeypatch.setattr(client.server.store, "revision", unreachable)
        assert client.get("/readyz", token=None).body == b"database"


def test_metrics(tmp_path: Path) -> None:
    """The metrics have requests by route, method and status, the revision and the number of flags, and no name of a request."""
    given = {"features": [{"name": "one"}, {"name": "two"}, {"name": "gone", "archived": True}]}
    with app_client(str(tmp_path / "flags.db"), given=given) as client:
        client.get("/health", token=None)
        client.get("/nosuch/secret-name")
        client.ask("SECRET-METHOD", "/health")
        client.delete("/api/admin/addons/secret-name")
        answer = client.get("/internal-backstage/prometheus", token=None)
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        text = answer.body.decode()
        assert 'flagsvc_http_requests_total{method="GET",route="/health",status="200"} 1.0' in text
        assert 'flagsvc_http_requests_total{method="GET",route="unmatched",status="404"} 1.0' in text
        assert 'flagsvc_http_requests_total{method="other",route="unmatched",status="405"} 1.0' in text
        assert 'flagsvc_http_requests_total{method="DELETE",route="/api/admin/addons/:id",status="400"} 1.0' in text
        assert "flagsvc_features 2.0" in text
        assert f"flagsvc_revision {client.server.store.revision()}.0" in text
        assert "secret" not in text.lower() and USER_SECRET not in text


@pytest.mark.parametrize("base", ["", "/flags"])
def test_the_first_page(tmp_path: Path, base: str) -> None:
    """The first page names the endpoints, as text or JSON by `Accept`, and needs no token. HEAD, 304 and 405 work on it."""
    with app_client(str(tmp_path / "flags.db"), base=base) as client:
        text = client.get(f"{base}/", token=None)
        assert (text.status, text.headers["content-type"]) == (200, "text/plain; charset=utf-8")
        assert text.body.startswith(b"flagsvc server holds feature flags")
        assert f" {base}/api/client/features " in text.body.decode()
        asked = client.get(f"{base}/", token=None, headers={"accept": "application/json"})
        assert asked.headers["content-type"] == "application/json; charset=utf-8"
        assert asked.json()["name"] == "flagsvc server"
        places = [(place["method"], place["path"]) for place in asked.json()["endpoints"]]
        for method, path in places:
            refused = {"/api/client/features": 403, "/api/frontend": 401, "/ui": 303}
            expected = refused.get(path.removeprefix(base), 200)
            assert client.ask(method, path).status == expected, "each is there"
        assert client.get(f"{base}/", token=None, headers={"if-none-match": text.headers["etag"]}).status == 304
        assert client.ask("HEAD", f"{base}/", token=None).body == b""
        assert client.ask("POST", f"{base}/", token=None).headers["allow"] == "GET,HEAD"
        assert client.server.counts.of("GET", "/").statuses[200] >= 2


def test_every_row_is_written(tmp_path: Path) -> None:
    """A parser of the format reads every row with its help text, and the standard process and Python metrics. Names are unique."""
    assert len({row.name for row in OWN}) == len(OWN)
    assert not [row.name for row in OWN if row.kind == "counter" and row.name.endswith("_total")]
    with app_client(str(tmp_path / "flags.db")) as client:
        found = {each.name: each for each in text_string_to_metric_families(text(client.server).decode())}
    assert {row.name: row.help for row in OWN} == {row.name: found[row.name].documentation for row in OWN}
    assert {"process_cpu_seconds", "python_gc_collections"} <= set(found)


STORED = ("flagsvc_revision", "flagsvc_features", "flagsvc_polling_instances")
"""The rows that need the database."""


def test_the_database_is_asked_once_a_scrape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrape that the database fails reads it once. The rows that need the database are then left out of the text."""
    with app_client(str(tmp_path / "flags.db")) as client:
        asked: list[int] = []

        def gone() -> None:
            asked.append(1)
            raise DatabaseError("the database failed: OperationalError")

        monkeypatch.setattr(client.server.store, "reading", gone)
        found = client.get("/internal-backstage/prometheus", token=None).text
        assert [row.name for row in OWN if row.name not in found] == [*STORED]
        assert len(asked) == 1


def test_instances_that_poll(tmp_path: Path) -> None:
    """An instance has the newest flags from its poll on until a flag of its environment changes."""
    with app_client(str(tmp_path / "flags.db"), given={"features": [{"name": "one"}]}) as client:
        headers = {"unleash-appname": "shop", "unleash-instanceid": "a"}

        def shown() -> list[str]:
            lines = client.get("/metrics", token=None).text.splitlines()
            return [
                line.removeprefix("flagsvc_polling_instances") for line in lines if line.startswith("flagsvc_polling_instances")
            ]

        assert shown() == ['{flags="newest"} 0.0', '{flags="older"} 0.0']
        assert client.get("/api/client/features", token=BACKEND_SECRET, headers=headers).status == 200
        assert shown() == ['{flags="newest"} 1.0', '{flags="older"} 0.0']
        assert client.post("/api/admin/projects/default/features/one/environments/development/on", None).status == 200
        assert shown() == ['{flags="newest"} 0.0', '{flags="older"} 1.0']
