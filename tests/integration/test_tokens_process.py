"""Processes that look up tokens: restarts, several workers, proxies below proxies.

Floods of random tokens, from one address and from many: the upstream, known callers and new ones do not suffer. In the long run,
FLOOD_SECONDS=60 is the length of each flood, FLOOD_RATE=1000 its requests a second; the figures are printed with `-s`.
"""

from __future__ import annotations

import os
import signal
import statistics
from collections.abc import Iterator

import pytest
from flooded_tokens import BUDGET, flooded

from support.fake_upstream import FakeUpstream
from support.processes import Proxy, ask, our_proxy
from support.token_scene import ADMIN, BACK, BACK_B, DEV, FRONT, FRONT_A, UNKNOWN, UP, knowing_upstream
from support.waiting import wait_until
from support.worker_pools import workers

LOOKING = {"FLAGSVC_TOKEN_VALIDATION": "upstream", "UNLEASH_API_TOKEN": UP, "FLAGSVC_TOKEN_LOOKUP_RATE": "100"}


@pytest.fixture(name="upstream")
def _upstream() -> Iterator[FakeUpstream]:
    """Run a flag server that knows tokens."""
    with knowing_upstream() as upstream:
        yield upstream


def status(proxy: Proxy, token: str, path: str = "") -> int:
    """Return the status of a request with a token, on a connection of its own."""
    return ask(proxy.url + path, headers={"Authorization": token}).status


def flags(proxy: Proxy, token: str, path: str = "/proxy") -> list[str]:
    """Return the names of the flags that a token gets."""
    answer = ask(proxy.url.removesuffix("/proxy") + path, headers={"Authorization": token})
    assert answer.status == 200, (answer.status, answer.body)
    content = answer.json()
    return [each["name"] for each in content.get("toggles") or content["features"]]


def test_workers(upstream: FakeUpstream) -> None:
    """Any worker accepts a token, and the upstream is asked once for all. A revocation reaches all of them."""
    given = {**LOOKING, "FLAGSVC_WORKERS": "2", "FLAGSVC_TOKEN_REVALIDATION_INTERVAL": "1", "LOG_LEVEL": "debug"}
    assert upstream.tokens is not None
    with our_proxy(upstream.url, **given) as proxy:
        proxy.program.wait(lambda: "flagsvc ready" in proxy.program.output(), "ready")
        assert [flags(proxy, FRONT_A) for _ in range(12)] == [["of-a", "free"]] * 12
        assert [status(proxy, UNKNOWN) for _ in range(12)] == [401] * 12
        assert [status(proxy, FRONT, "/client/features") for _ in range(12)] == [401] * 12
        asked = [token for each in upstream.asked_tokens() for token in each]
        assert asked.count(UNKNOWN) == 1, "the parent remembers, and so does each worker"
        del upstream.tokens[FRONT_A]
        wait_until(lambda: [status(proxy, FRONT_A) for _ in range(12)] == [401] * 12)
        assert status(proxy, FRONT) == 200
        os.kill(workers(proxy)[0], signal.SIGKILL)
        assert {status(proxy, token) for token in (FRONT, FRONT) for _ in range(6)} == {200}
        proxy.program.wait(lambda: len(workers(proxy)) == 2, "replacing the worker")
        assert [flags(proxy, FRONT) for _ in range(12)] == [["of-a", "of-b", "free"]] * 12
        assert [status(proxy, FRONT_A) for _ in range(12)] == [401] * 12
        assert "hidden" not in proxy.program.output()
        page = proxy.get("/internal-backstage/prometheus").body
        assert b"flagsvc_tokens_known 1" in page and b"hidden" not in page
        assert b'flagsvc_upstream_request_duration_seconds_count{outcome="ok",request="tokens"}' in page
        assert b'flagsvc_upstream_received_bytes_total{session="tokens"}' in page


def test_a_hangup_ends_revoked_tokens(upstream: FakeUpstream) -> None:
    """SIGHUP has all known tokens asked about again, at once and for all workers. Others go on."""
    assert upstream.tokens is not None
    with our_proxy(upstream.url, **LOOKING, FLAGSVC_WORKERS="2") as proxy:
        proxy.program.wait(lambda: "flagsvc ready" in proxy.program.output(), "ready")
        assert {status(proxy, token) for token in (FRONT, FRONT_A) for _ in range(6)} == {200}
        del upstream.tokens[FRONT_A]
        assert {status(proxy, FRONT_A) for _ in range(6)} == {200}
        os.kill(proxy.program.process.pid, signal.SIGHUP)
        wait_until(lambda: [status(proxy, FRONT_A) for _ in range(6)] == [401] * 6)
        assert {status(proxy, FRONT) for _ in range(6)} == {200}


def test_ours_below_ours(upstream: FakeUpstream) -> None:
    """A proxy asks the proxy above it, which asks the server: each token opens the same at both, also a project's."""
    with our_proxy(upstream.url, **LOOKING) as above:
        base = above.url.removesuffix("/proxy")
        whole = {**LOOKING, "UNLEASH_API_TOKEN": BACK}
        part = {**LOOKING, "UNLEASH_API_TOKEN": BACK_B}
        with our_proxy(f"{base}/api", **whole) as below, our_proxy(f"{base}/proxy", **part) as of_b:
            for proxy in (below, above):
                assert flags(proxy, FRONT) == ["of-a", "of-b", "free"]
                assert flags(proxy, FRONT_A) == flags(proxy, FRONT_A, "/api/frontend") == ["of-a", "free"]
                assert flags(proxy, BACK_B, "/api/client/features") == ["of-b", "free"]
                assert [status(proxy, token) for token in (UNKNOWN, ADMIN, DEV)] == [401] * 3
            assert flags(of_b, BACK_B, "/api/client/features") == ["of-b", "free"]
            assert [status(of_b, token) for token in (FRONT, FRONT_A)] == [401, 401], "it has not all of their flags"
            told = ask(f"{of_b.url.removesuffix('/proxy')}/edge/validate", method="POST", body={"tokens": [BACK_B, FRONT]})
            assert told.json()["tokens"] == [{"token": BACK_B, "type": "client", "projects": ["b"], "environment": "production"}]


SHORT_S = 5.0
TRIES = 20
"""The most tries of a new token until it is let in; each waits as long as it is told."""


@pytest.mark.parametrize(
    ("many", "route", "rate", "refused"),
    [(False, "proxy", 200.0, "401"), (True, "validate", 30.0, "200")],
    ids=["of one address", "of many addresses"],
)
def test_a_flood_of_tokens(many: bool, route: str, rate: float, refused: str) -> None:
    """The upstream gets no more questions than the option allows; known callers are all answered; new tokens get in.

    A request has one token, or asks about a hundred random ones.
    """
    figures = flooded(SHORT_S, rate, many=many, quiet_s=1.0, number=1 if route == "proxy" else 2, route=route)
    assert figures.statuses == {200} and len(figures.during) > 100 and not figures.dead
    assert set(figures.flood["statuses"]) <= {refused, "503"} and not figures.flood["failed"]
    assert sum(figures.flood["statuses"].values()) == figures.flood["sent"] > 0, "every request of the flood is answered"
    assert 0 < figures.questions <= BUDGET * (figures.seconds + 1) and figures.largest <= 100
    assert figures.newcomers and max(tries for tries, _ in figures.newcomers) <= TRIES


SECONDS = float(os.environ.get("FLOOD_SECONDS", "60"))
RATE = float(os.environ.get("FLOOD_RATE", "1000"))
QUIET_S = 10.0
GROWTH = 16 * 1024 * 1024
"""Bytes by which a proxy may grow after the first 20 seconds."""
FACTOR = 50
"""By how much the p99 of known callers may grow. Proxy and flood share the processors."""
NEW_S = 15.0
"""Seconds within which a new token is let in."""


@pytest.mark.long
@pytest.mark.parametrize("number", [1, 2], ids=["one process", "two workers"])
@pytest.mark.parametrize(("route", "share"), [("proxy", 1), ("validate", 10)])
@pytest.mark.parametrize("many", [False, True], ids=["one address", "many addresses"])
def test_a_long_flood_of_tokens(many: bool, number: int, route: str, share: int) -> None:
    """The upstream gets its budget and no more, known callers are answered, memory is flat, no process ends, new tokens get in."""
    figures = flooded(SECONDS, RATE / share, many=many, quiet_s=QUIET_S, number=number, route=route)
    source = "many addresses" if many else "one address"
    print(f"\n{route}, {source}, {number} worker(s), {RATE / share:.0f} a second for {SECONDS:.0f} s\n{figures.lines()}")
    assert figures.statuses == {200} and not figures.dead
    assert set(figures.flood["statuses"]) <= {"200" if route == "validate" else "401", "503"} and not figures.flood["failed"]
    assert figures.questions <= BUDGET * (figures.seconds + 1) and figures.largest <= 100
    before, during = (statistics.quantiles(times, n=100)[98] for times in (figures.before, figures.during))
    assert during < FACTOR * before
    assert figures.newcomers and max(seconds for _, seconds in figures.newcomers) < NEW_S
    assert figures.memory[-1] - figures.memory[min(20, len(figures.memory) - 1)] < GROWTH
