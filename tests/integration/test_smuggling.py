"""Behind a load balancer that shares one connection among callers, one caller's bytes never begin another's request."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest

from support.balancers import haproxy_as
from support.frontframing import HIDDEN, LAST, REFUSED, TAKEN
from support.processes import Proxy, ask, our_proxy
from support.smuggling import HAPROXY
from support.worker_pools import samples

SECONDS = 10.0


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Proxy]]:
    """Run a proxy for the key of the odd heads, and HAProxy before it with one connection to it; give HAProxy's port."""
    document = tmp_path_factory.mktemp("haproxy") / "flags.json"
    document.write_text(json.dumps({"version": 2, "features": []}))
    with (
        our_proxy(document.as_uri(), UNLEASH_PROXY_CLIENT_KEYS="client-key") as proxy,
        haproxy_as(HAPROXY, f"    server one 127.0.0.1:{proxy.port} maxconn 1") as port,
    ):
        yield port, proxy


def sent(port: int, data: bytes) -> bytes:
    """Return the answer to these bytes, until the other side closes or is silent."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as caller, contextlib.suppress(OSError):
        caller.sendall(data)
        caller.shutdown(socket.SHUT_WR)
        while part := caller.recv(65_536):
            found += part
    return found


def hidden_requests(proxy: Proxy) -> float:
    """Return how many hidden requests have reached the proxy."""
    mark = 'route="unmatched",status="404"}'
    return sum(value for name, value in samples(proxy).items() if name.endswith(mark))


def labels_are_sorted(proxy: Proxy) -> bool:
    """Return whether the sample that is looked for has this very form."""
    ask(f"http://127.0.0.1:{proxy.port}/nowhere")
    return hidden_requests(proxy) > 0


@pytest.mark.parametrize("name", [*REFUSED, *TAKEN, *LAST])
def test_no_caller_gets_the_answer_of_another(both: tuple[int, Proxy], name: str) -> None:
    """Only its sender gets the answer to a hidden request, and the next caller gets its own answer."""
    port, proxy = both
    assert labels_are_sorted(proxy)
    before = hidden_requests(proxy)
    own = sent(port, (REFUSED | TAKEN | LAST)[name] + HIDDEN)
    for _ in range(3):
        answer = ask(f"http://127.0.0.1:{port}/proxy/health")
        assert (answer.status, answer.body) == (200, b"ok")
    assert hidden_requests(proxy) - before <= own.count(b"HTTP/1.1 404")
