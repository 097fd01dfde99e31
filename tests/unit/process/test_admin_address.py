"""The operators' own address: its answers from start to end, with and without a configuration."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from flagsvc.cli.health import ProbeTarget, probe_status
from flagsvc.core.errors import ListenError
from flagsvc.core.notices import Notice
from flagsvc.core.version import version_text
from flagsvc.process.admin_address import listening_notices, make_admin_address_server
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.application import ProxyRuntime, create_app
from flagsvc.proxy.generations.setup import ProxySetup, make_setup
from support.apps_options import options

HOST = "127.0.0.1"
METRICS = "/proxy/internal-backstage/prometheus"


def proxy_setup(**given: Any) -> ProxySetup:
    """Return the setup of a proxy that will not have a configuration."""
    return make_setup(options(storage="none", **given))


async def asked(port: int, *lines: str) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of an answer."""
    reader, writer = await asyncio.open_connection(HOST, port)
    with closing(writer):
        writer.write("\r\n".join([*lines, "host: a", "connection: close", "", ""]).encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    first, *others = head.decode().split("\r\n")
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in others)}
    return int(first.split()[1]), fields, body


async def test_what_operators_get() -> None:
    """Liveness and metrics answer before there is a configuration, health and readiness say that there is none."""
    made = proxy_setup(admin_address=f"{HOST}:0", proxy_base_path="/base")
    world = ProxyRuntime(made)
    admin_address_server = make_admin_address_server(made.options, lambda: world.generations.operators, ())
    assert admin_address_server is not None
    port = int(admin_address_server.line.rpartition(":")[2])
    assert admin_address_server.line == f"flagsvc admin on http://{HOST}:{port}"
    async with admin_address_server:
        for path, status in {
            "/base/proxy/live": 200,
            "/livez": 200,
            "/base/proxy/health": 503,
            "/base/proxy/ready": 503,
            "/readyz": 503,
            f"/base{METRICS}": 200,
            "/metrics": 200,
            "/base/proxy": 503,
        }.items():
            found, headers, body = await asked(port, f"GET {path} HTTP/1.1", "origin: https://a.example")
            assert found == status, path
            assert "date" in headers and not [name for name in headers if name.startswith("access-control")]
            if "metrics" in path or METRICS in path:
                assert b'flagsvc_config_state{state="cold"} 1.0' in body
    with pytest.raises(ConnectionRefusedError):
        await asked(port, "GET /livez HTTP/1.1")


def service_of(world: ProxyRuntime) -> Service:
    return world.generations.current.service


async def test_the_callers_side_has_no_metrics() -> None:
    """With an own address, operators get no answer elsewhere. Without one, and mounted, they do."""
    apart, together = ProxyRuntime(proxy_setup(admin_address=f"{HOST}:0")), ProxyRuntime(proxy_setup())
    assert METRICS.encode() not in service_of(apart).resources
    assert METRICS.encode() in service_of(together).resources
    mounted = create_app(proxy_setup(admin_address=f"{HOST}:0").options)
    assert METRICS.encode() in service_of(mounted._runtime).resources
    assert b"/proxy" in service_of(apart).resources and b"/proxy" not in apart.generations.operators.resources


async def test_the_end(tmp_path: Path) -> None:
    """A kept connection is closed, a silent connection is cut off; the socket's file is gone."""
    made = proxy_setup(admin_address=f"unix:{tmp_path}/a.sock", socket_mode="600")
    world = ProxyRuntime(made)
    admin_address_server = make_admin_address_server(made.options, lambda: world.generations.operators, ())
    assert admin_address_server is not None
    async with admin_address_server:
        assert admin_address_server.line == f"flagsvc admin on http://unix:{tmp_path}/a.sock:"
        place = ProbeTarget(f"unix:{tmp_path}/a.sock", 0, "/livez")
        assert await asyncio.to_thread(probe_status, place, 5) == 200
        reader, writer = await asyncio.open_unix_connection(f"{tmp_path}/a.sock")
        writer.write(b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n")
        await reader.readuntil(b"ok")
        silent, other = await asyncio.open_unix_connection(f"{tmp_path}/a.sock")
        assert await asyncio.to_thread(probe_status, place, 5) == 200  # so that it has been taken
    assert await asyncio.wait_for(reader.read(), 5) == b"" and await asyncio.wait_for(silent.read(), 5) == b""
    assert os.listdir(tmp_path) == []
    writer.close()
    other.close()


def test_an_address_that_cannot_be_had() -> None:
    """The error names the address, and the callers' sockets are closed."""
    with socket.create_server((HOST, 0)) as taken, socket.create_server((HOST, 0)) as callers:
        made = proxy_setup(admin_address=f"{HOST}:{taken.getsockname()[1]}")
        world = ProxyRuntime(made)
        with pytest.raises(ListenError, match="another program is listening there"):
            make_admin_address_server(made.options, lambda: world.generations.operators, [callers])
        assert callers.fileno() == -1


def test_none_is_the_default() -> None:
    """There are one or two lines to print."""
    made = proxy_setup()
    assert make_admin_address_server(made.options, lambda: ProxyRuntime(made).generations.operators, ()) is None
    first = Notice(f"flagsvc {version_text()} listening on http://a")
    assert listening_notices("http://a", None) == [first]
    assert listening_notices("http://a", Mock(line="flagsvc admin")) == [first, Notice("flagsvc admin")]
