"""A proxy over GitLab's feature flags (decision 0012)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support import fake_upstream, processes
from support.fake_upstream import Reply

PATH = "/api/v4/feature_flags/unleash/42"
INSTANCE = "glffct-instance"
FEATURES = [
    {"name": "everyone", "enabled": True, "strategies": [{"name": "default", "parameters": {}}]},
    {"name": "some", "enabled": True, "strategies": [{"name": "userWithId", "parameters": {"userIds": "7,8"}}]},
]


@contextmanager
def gitlab() -> Iterator[fake_upstream.FakeUpstream]:
    """Run a server with flags as GitLab sends them: no project, no variants."""
    body = json.dumps({"version": 1, "features": FEATURES}).encode()
    with fake_upstream.fake_upstream({"features": []}) as server:
        server.replies[f"{PATH}/client/features"] = Reply(200, body, {"Content-Type": "application/json"})
        for name in ("register", "metrics"):
            server.replies[f"{PATH}/client/{name}"] = Reply(200)
        yield server


def options(**more: str) -> dict[str, str]:
    """Return the environment of a proxy over GitLab, without a token."""
    return {
        "FLAGSVC_API_TOKEN": "",
        "UNLEASH_API_TOKEN": "",
        "FLAGSVC_INSTANCE_ID": INSTANCE,
        "UNLEASH_INSTANCE_ID": "",
        "FLAGSVC_ENVIRONMENT": "production",
        "FLAGSVC_FETCH_INTERVAL": "50",
        "FLAGSVC_METRICS_INTERVAL": "200",
        **more,
    }


def names(proxy: processes.Proxy, user: str) -> list[str]:
    """Return the names of the toggles that are on for a user."""
    answer = processes.ask(f"{proxy.url}?userId={user}", headers={"Authorization": processes.KEY})
    return [toggle["name"] for toggle in json.loads(answer.body)["toggles"]]


def test_a_proxy_over_gitlab() -> None:
    """It needs no token. Every request has the instance id, and the environment where GitLab expects it."""
    with gitlab() as server:
        url = server.url.removesuffix("/api") + PATH
        more = {"FLAGSVC_PROJECT_NAME": "web", "FLAGSVC_UPSTREAM_HEADERS": "X-Gateway-Key: open"}
        with processes.our_proxy(url, **options(**more)) as proxy:
            assert (names(proxy, "7"), names(proxy, "9")) == (["everyone", "some"], ["everyone"])
            body = {"toggles": ["some"], "context": {"userId": "7"}}
            assert processes.ask(proxy.url, method="POST", headers={"Authorization": processes.KEY}, body=body).status == 200
            proxy.program.wait(lambda: len({request.path for request in server.requests}) == 3, "registering and reporting")
        assert {request.path for request in server.requests} == {
            f"{PATH}/client/{what}" for what in ("features", "register", "metrics")
        }
        for request in server.requests:
            found: dict[str, Any] = {name.lower(): value for name, value in request.headers.items()}
            assert (found["unleash-instanceid"], found["unleash-appname"]) == (INSTANCE, "production")
            assert found["x-gateway-key"] == "open" and "authorization" not in found
