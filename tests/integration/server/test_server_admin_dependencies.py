"""Dependencies on the admin API (the real server's …/dependencies; import validation 6.3, step 9)."""

from __future__ import annotations

from typing import Any

from support.flagservers import AppClient

FEATURES = "/api/admin/projects/default/features"
GIVEN: dict[str, Any] = {
    "projects": [{"id": "other", "name": "O"}],
    "features": [
        *({"name": name} for name in ("child", "parent", "third", "fourth")),
        {"name": "elsewhere", "project": "other"},
        {"name": "old", "archived": True},
    ],
}


def prepare(client: AppClient) -> None:
    """Let `child` depend on `parent`."""
    assert client.post(f"{FEATURES}/child/dependencies", {"feature": "parent"}).status == 200


def of(client: AppClient, name: str) -> Any:
    """Return the dependencies of a feature."""
    return client.get(f"{FEATURES}/{name}").json()["dependencies"]


def test_a_child_has_one_parent(client: AppClient) -> None:
    """A new dependency replaces the old one; it has variants only if the parent must be on."""
    assert of(client, "child") == [{"feature": "parent", "enabled": True, "variants": []}]
    assert client.get(f"{FEATURES}/parent").json()["children"] == ["child"]
    url = f"{FEATURES}/child/dependencies"
    client.post(url, {"feature": "third", "variants": ["v"]})
    assert of(client, "child") == [{"feature": "third", "enabled": True, "variants": ["v"]}]
    client.post(url, {"feature": "third", "enabled": False, "variants": ["v"]})
    assert of(client, "child") == [{"feature": "third", "enabled": False, "variants": []}]


def test_removing(client: AppClient) -> None:
    """One dependency or all are removed; it is no error if there was none, and a feature of another project does not change."""
    one, every = f"{FEATURES}/child/dependencies/parent", f"{FEATURES}/child/dependencies"
    assert client.delete(f"{FEATURES}/child/dependencies/third").status == 200
    assert of(client, "child") != []
    for url in (one, every):
        assert client.delete(url.replace("default", "other")).status == 404
    assert client.get("/api/admin/projects/default/dependencies").json() is True
    for url in (one, one, every, f"{FEATURES}/nosuch/dependencies"):
        assert client.delete(url).status == 200
    assert of(client, "child") == []
    client.post(every, {"feature": "parent"})
    assert client.delete(every).status == 200
    assert client.get("/api/admin/projects/default/dependencies").json() is False


def test_what_could_be_the_parent(client: AppClient) -> None:
    """Candidates are active features of the same project without a parent, except the feature itself."""
    assert client.get(f"{FEATURES}/third/parents").json() == ["fourth", "parent"]
    assert client.get(f"{FEATURES}/nosuch/parents").json() == []
    variant = {"weight": 1, "weightType": "variable", "stickiness": "default"}
    strategy = {"name": "default", "variants": [variant | {"name": "z"}]}
    client.post(f"{FEATURES}/parent/environments/development/strategies", strategy)
    pushed = {"variants": [variant | {"name": "a"}], "environments": ["production"]}
    client.put(f"{FEATURES}/parent/variants-batch", pushed)
    assert client.get(f"{FEATURES}/parent/parent-variants").json() == ["a", "z"]
    assert client.get(f"{FEATURES}/nosuch/parent-variants").json() == []
