"""The parts of a proxy whose configuration is stored on a Redis server."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.proxy.replicas import FleetSource, ReplicaRole, ServerStore, SharedDocumentStorage
from flagsvc.proxy.replication import make_tls_context
from flagsvc.proxy.runtime import ProxyRuntime
from flagsvc.proxy.setup import make_setup
from flagsvc.proxy.upstream_sync import make_storage
from flagsvc.settings.options import ProxyOptions
from flagsvc.testing import MemoryStore
from support.aio import asynchronous, until
from support.apps_options import options as usual
from support.environments import only
from support.pki import Authority
from support.processes import free_port
from support.redises import redis_server
from support.scene import scene

SERVER = "redis://127.0.0.1:1/0"


def options(**given: Any) -> ProxyOptions:
    """Return options of a proxy that keeps its configuration on a server."""
    return usual(**{"storage": SERVER, **given})


def test_a_fleet() -> None:
    """With a Redis server as storage there is a fleet."""
    world = only(ProxyRuntime(make_setup(options())))
    assert world.fleet is not None and world.restarts() == {"polling": 0, "usage": 0, "fleet": 0}
    assert isinstance(world.poller._source, FleetSource) and isinstance(world.poller._storage, SharedDocumentStorage)
    assert world.service.sources.fleet is world.fleet


@pytest.mark.parametrize(
    "given",
    [
        {"storage": "none"},
        {"storage_provider": MemoryStore()},
        {"flagsvc_url": "file:///nowhere/document.json"},
    ],
    ids=["none", "provider", "file"],
)
def test_no_fleet(given: dict[str, Any]) -> None:
    """With another storage, or with a file as upstream, there is no fleet."""
    world = only(ProxyRuntime(make_setup(options(**given))))
    assert world.fleet is None and not isinstance(world.storage, ServerStore)


def test_the_password_beside_the_url() -> None:
    """It takes the place of the one in the URL, and no repr shows either."""
    store = make_storage(options(storage="redis://user:first-word@h:1/2", storage_password="second-word"))
    assert isinstance(store, ServerStore)
    given = store.client._pool.connection_kwargs
    assert (given["host"], given["port"], given["db"], given["username"]) == ("h", 1, 2, "user")
    assert given["password"] == "second-word"
    assert "-word" not in repr(store.client) + repr(store.client._redis) + repr(store.client._pool)


@pytest.mark.parametrize("name", ["storage_ca", "storage_cert"])
def test_a_certificate_that_cannot_be_read(name: str) -> None:
    """The error names the option, before anything runs."""
    with pytest.raises(ConfigurationError, match="storageC"):
        make_storage(options(storage="rediss://h", **{name: "/nowhere/file.pem"}))
    assert isinstance(make_storage(options(**{name: "/nowhere/file.pem"})), ServerStore)


def test_tls(tmp_path: Path) -> None:
    """Certificates are read from files."""
    authority = Authority()
    (tmp_path / "ca.pem").write_text(authority.pem)
    (tmp_path / "own.pem").write_text(authority.issue().both)
    files = {"storage_ca": str(tmp_path / "ca.pem"), "storage_cert": str(tmp_path / "own.pem")}
    given = options(storage="rediss://h", **files)
    assert isinstance(make_storage(given), ServerStore)
    trusted = make_tls_context(given).get_ca_certs(binary_form=True)
    assert ssl.PEM_cert_to_DER_cert(authority.pem) in trusted
    assert ssl.PEM_cert_to_DER_cert(authority.pem) not in make_tls_context(options()).get_ca_certs(binary_form=True)


@pytest.mark.programs
@asynchronous
async def test_what_a_scrape_says_of_the_fleet(tmp_path: Path) -> None:
    """Who this replica is, when it gave and took configurations, and how often the server failed; nothing without a fleet."""
    with redis_server() as server:
        async with scene(tmp_path) as around, around.proxy(around.options(storage=server.url)) as proxy:
            fleet = only(proxy.app).fleet
            assert fleet is not None
            await until(lambda: fleet.published)
            page = (await proxy.ask("GET", "/proxy/internal-backstage/prometheus")).text
            assert await proxy.sample("flagsvc_fleet_lease_changes_total") == 1.0
            assert await proxy.sample("flagsvc_fleet_published_timestamp_seconds") == around.clock.now()
            assert await proxy.sample("flagsvc_fleet_applied_timestamp_seconds") == 0.0
            assert await proxy.sample("flagsvc_storage_errors_total") == 0.0
            assert 'flagsvc_fleet_role{role="leader"} 1.0' in page and 'flagsvc_fleet_role{role="alone"} 0.0' in page
        async with scene(tmp_path) as around, around.proxy(around.options()) as proxy:
            page = (await proxy.ask("GET", "/proxy/internal-backstage/prometheus")).text
            assert not [line for line in page.splitlines() if line.startswith(("flagsvc_fleet", "flagsvc_storage"))]


@asynchronous
async def test_a_start_without_the_server(tmp_path: Path) -> None:
    """The proxy is ready as soon as the upstream has answered."""
    async with scene(tmp_path) as around:
        storage = f"redis://127.0.0.1:{free_port()}"
        async with around.proxy(around.options(storage=storage)) as proxy:
            assert await proxy.names() == ["on"]
            fleet = only(proxy.app).fleet
            assert fleet is not None and fleet.role is ReplicaRole.ALONE
