"""The parts of a proxy whose configuration is stored on a Redis server."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.proxy.generations.feeds import make_storage
from flagsvc.proxy.redis import RedisStore, make_tls_context
from flagsvc.settings.options import ProxyOptions
from flagsvc.testing import MemoryStore
from support.aio import until
from support.apps_options import options as usual
from support.environments import only
from support.loopback import reply
from support.pki import Authority
from support.processes import free_port
from support.redises import redis_server
from support.scene import scene

SERVER = "redis://127.0.0.1:1/0"
REFRESH_S = 60


def options(**given: Any) -> ProxyOptions:
    """Return options of a proxy that keeps its configuration on a server."""
    return usual(**{"storage": SERVER, **given})


@pytest.mark.parametrize(
    "given",
    [{"storage": "none"}, {"storage_provider": MemoryStore()}, {"flagsvc_url": "file:///nowhere/document.json"}],
    ids=["none", "provider", "file"],
)
def test_another_storage(given: dict[str, Any]) -> None:
    """A provider of the user wins, and a file as upstream needs no storage."""
    assert isinstance(make_storage(options()), RedisStore)
    assert not isinstance(make_storage(options(**given)), RedisStore)


def test_the_password_beside_the_url() -> None:
    """It takes the place of the one in the URL, and no repr shows either."""
    store = make_storage(options(storage="redis://user:first-word@h:1/2", storage_password="second-word"))
    assert isinstance(store, RedisStore)
    given = store.client._pool.connection_kwargs
    assert (given["host"], given["port"], given["db"], given["username"]) == ("h", 1, 2, "user")
    assert given["password"] == "second-word"
    assert "-word" not in repr(store.client) + repr(store.client._redis) + repr(store.client._pool)


@pytest.mark.parametrize("name", ["storage_ca", "storage_cert"])
def test_a_certificate_that_cannot_be_read(name: str) -> None:
    """The error names the option, before anything runs."""
    with pytest.raises(ConfigurationError, match="storageC"):
        make_storage(options(storage="rediss://h", **{name: "/nowhere/file.pem"}))
    assert isinstance(make_storage(options(**{name: "/nowhere/file.pem"})), RedisStore)


def test_tls(tmp_path: Path) -> None:
    """Certificates are read from files."""
    authority = Authority()
    (tmp_path / "ca.pem").write_text(authority.pem)
    (tmp_path / "own.pem").write_text(authority.issue().both)
    files = {"storage_ca": str(tmp_path / "ca.pem"), "storage_cert": str(tmp_path / "own.pem")}
    given = options(storage="rediss://h", **files)
    assert isinstance(make_storage(given), RedisStore)
    trusted = make_tls_context(given).get_ca_certs(binary_form=True)
    assert ssl.PEM_cert_to_DER_cert(authority.pem) in trusted
    assert ssl.PEM_cert_to_DER_cert(authority.pem) not in make_tls_context(options()).get_ca_certs(binary_form=True)


@pytest.mark.programs
async def test_replicas_share_what_they_accept(tmp_path: Path) -> None:
    """A replica that starts while the upstream is away serves what another replica has stored. Each polls for itself."""
    with redis_server() as server:
        async with scene(tmp_path) as around:
            given = around.options(storage=server.url)
            async with around.proxy(given) as first:
                await until(server.names)
                around.replies["features"] = reply(503)
                async with around.proxy(given) as second:
                    assert await second.names() == await first.names() == ["on"]


@pytest.mark.programs
async def test_a_server_that_restarts_empty(tmp_path: Path) -> None:
    """A replica that has the configuration stores it again, although the upstream has no other one."""
    with redis_server() as server:
        async with scene(tmp_path) as around, around.proxy(around.options(storage=server.url)):
            await until(server.names)
            server.ask("FLUSHALL")
            await around.clock.advance(REFRESH_S)
            await until(server.names)


@pytest.mark.programs
async def test_what_a_scrape_says_of_the_server(tmp_path: Path) -> None:
    """How often a request to the server failed; nothing with another storage."""
    async with scene(tmp_path) as around:
        async with around.proxy(around.options(storage=f"redis://127.0.0.1:{free_port()}")) as proxy:
            assert await proxy.names() == ["on"]
            await until(lambda: only(proxy.app).storage_errors())
            assert await proxy.sample("flagsvc_storage_errors_total") > 0
        async with around.proxy(around.options()) as proxy:
            page = (await proxy.ask("GET", "/proxy/internal-backstage/prometheus")).text
            assert "\nflagsvc_storage" not in page
