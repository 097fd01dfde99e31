"""Event streams for browsers through nginx and HAProxy as they come, and what balancers do to them (dialects: Event streams)."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from support.balancers import haproxy_as, nginx_as
from support.browser import browser
from support.event_streams import Listener, count, listening, wait_streams
from support.fake_upstream import FakeUpstream
from support.http_servers import serving
from support.pki import Authority, written
from support.processes import KEY, Proxy, free_port, our_proxy
from support.worker_pools import document

pytestmark = pytest.mark.programs
QUICK = {"FLAGSVC_FETCH_INTERVAL": "1000"}
LIMIT_S = 18
"""Seconds of silence after which these balancers end a stream. It is less than two heartbeats apart."""
HAPROXY = """
defaults
  mode http
  timeout connect 2s
  timeout client {limit}s
  timeout server {limit}s
frontend callers
  bind 127.0.0.1:{port}
  default_backend proxies
backend proxies
{servers}
"""
"""As Debian's: it knows modes and limits."""
Balance = Callable[[Proxy], AbstractContextManager[int]]


def nginx(proxy: Proxy, *, location: str = "", limit_s: int = LIMIT_S, http: str = "") -> AbstractContextManager[int]:
    """Run an nginx that passes requests on, and is told nothing else."""
    return nginx_as(f"    server 127.0.0.1:{proxy.port};", "/proxy/health", f"proxy_read_timeout {limit_s}s; {location}", http=http)


def haproxy(proxy: Proxy, limit_s: int = LIMIT_S) -> AbstractContextManager[int]:
    """Run a HAProxy with nothing but time limits."""
    return haproxy_as(HAPROXY.replace("{limit}", str(limit_s)), f"  server one 127.0.0.1:{proxy.port}", "/proxy/health")


BALANCERS: dict[str, Balance] = {
    "nginx": nginx,
    "nginx with HTTP/1.1": lambda proxy: nginx(proxy, http="proxy_http_version 1.1;", location='proxy_set_header Connection "";'),
    "HAProxy": haproxy,
}


def hear(listeners: dict[str, Listener]) -> set[str | None]:
    """Return the next versions that all of them hear."""
    return {listener.version() for listener in listeners.values()}


@pytest.mark.parametrize("beats", [0, pytest.param(2, marks=pytest.mark.long)])
def test_balancers_as_they_come(upstream: FakeUpstream, beats: int) -> None:
    """Events pass at once, and heartbeats keep a stream open in which nothing happens for longer than a balancer waits."""
    with our_proxy(upstream.url, **QUICK) as proxy, ExitStack() as stack:
        ports = {name: stack.enter_context(run(proxy)) for name, run in BALANCERS.items()}
        opened = {
            name: stack.enter_context(listening(f"http://127.0.0.1:{port}/proxy/stream", seconds=LIMIT_S + 2))
            for name, port in ports.items()
        }
        first = hear(opened)
        assert len(first) == 1 and None not in first
        for number in range(2):
            upstream.replace(document("first", f"of-{number}"))
            proxy.program.wait(lambda: f"of-{number}" in proxy.toggles(), "serving the change")  # noqa: B023
            began = time.monotonic()
            told = hear(opened)
            assert len(told) == 1 and not told & {None, *first}
            assert time.monotonic() - began < 1.0
            if number == 0:
                assert all(listener.beats() for listener in opened.values() for _ in range(beats))
        assert count(proxy, "opened_total") == len(opened)


@pytest.mark.parametrize("balance", [haproxy, pytest.param(nginx, marks=pytest.mark.long)])
def test_a_balancer_that_cuts(upstream: FakeUpstream, balance: Callable[..., AbstractContextManager[int]]) -> None:
    """A caller that comes back with the version that it knows misses nothing, and the proxy keeps no stream that was cut."""
    with our_proxy(upstream.url, **QUICK) as proxy, balance(proxy, limit_s=2) as port:
        url = f"http://127.0.0.1:{port}/proxy/stream"
        with listening(url) as listener:
            known = listener.version()
            assert listener.version() is None, "cut"
        wait_streams(proxy, 0)
        with listening(f"{url}?at={known}") as listener:
            assert (listener.version(), listener.next("data: ")) == (known, None), "nothing is new"
        upstream.replace(document("third"))
        proxy.program.wait(lambda: "third" in proxy.toggles(), "serving the change")
        with listening(f"{url}?at={known}") as listener:
            assert listener.version() not in (None, known)
            assert "refetchEvaluation" in (listener.next("data: ") or "")


def test_a_balancer_that_buffers(upstream: FakeUpstream) -> None:
    """nginx that is told to keep answers back passes on nothing: callers are silent, and have to poll."""
    with our_proxy(upstream.url, **QUICK) as proxy, nginx(proxy, location="proxy_ignore_headers X-Accel-Buffering;") as port:
        with pytest.raises(TimeoutError), listening(f"http://127.0.0.1:{port}/proxy/stream", seconds=2) as listener:
            listener.version()
        wait_streams(proxy, 0)


STREAMS = 8
PAGE = """<!doctype html><script type="module">
const { url, key, streams } = PLAN;
const first = async (path) => {
  const answer = await fetch(url + path, { headers: { Authorization: key } });
  const { value } = await answer.body.getReader().read();
  return new TextDecoder().decode(value);
};
window.opened = [];
for (let number = 0; number < streams; number += 1) first("/proxy/stream").then((text) => window.opened.push(text));
window.beside = () => first("/proxy");
</script>"""


def test_http_2_in_front(upstream: FakeUpstream, tmp_path: Path) -> None:
    """Over HTTP/2 a browser opens more streams to a host than the six connections of HTTP/1.1, and asks besides."""
    issued, port = Authority().issue("localhost"), free_port()
    files = [written(tmp_path, name, text) for name, text in (("cert.pem", issued.cert), ("key.pem", issued.key))]
    server = f"listen 127.0.0.1:{port} ssl http2; ssl_certificate {files[0]}; ssl_certificate_key {files[1]};"
    with our_proxy(upstream.url, **QUICK) as proxy, nginx_as(f"    server 127.0.0.1:{proxy.port};", server=server):
        plan = f'{{"url": "https://127.0.0.1:{port}", "key": "{KEY}", "streams": {STREAMS}}}'
        with serving({"/": ("text/html", PAGE.replace("PLAN", plan).encode())}) as site, browser() as chromium:
            chromium.call("Security.setIgnoreCertificateErrors", ignore=True)
            chromium.go(f"{site}/")
            chromium.wait_for(f"window.opened?.length === {STREAMS}")
            assert "toggles" in chromium.run("beside()")
            protocols = {each["response"].get("protocol") for each in chromium.told("Network.responseReceived")}
            assert "h2" in protocols and count(proxy) == STREAMS
