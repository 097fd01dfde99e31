"""Processes that look up tokens: restarts, several workers, proxies below proxies, several environments.

A short flood of random tokens, from one address and from many; the long one is `tests/long/test_long_tokens.py`.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.environment_samples import write_toml
from support.fake_upstream import FEATURES as DOCUMENT
from support.fake_upstream import FakeUpstream, Reply, fake_upstream, granted
from support.flooded_tokens import BUDGET, flooded
from support.processes import Proxy, ask, our_proxy
from support.scene import document, toggle
from support.token_scene import ADMIN, BACK, BACK_B, DEV, FRONT, FRONT_A, UNKNOWN, UP, knowing_upstream
from support.waiting import wait_until
from support.worker_pools import workers

LOOKING = {"FLAGSVC_TOKEN_VALIDATION": "upstream", "UNLEASH_API_TOKEN": UP, "FLAGSVC_TOKEN_LOOKUP_RATE": "100"}
UP_A = "*:production.hidden-up-of-a"
NOT_GIVEN = {"UNLEASH_API_TOKEN": "", "UNLEASH_PROXY_CLIENT_KEYS": "", "EXP_SERVER_SIDE_SDK_CONFIG_TOKENS": ""}
FEATURES = [toggle("of-a", project="a"), toggle("of-b", project="b"), toggle("free")]


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
            told = ask(
                f"{of_b.url.removesuffix('/proxy')}/edge/validate", method="POST", body={"tokens": [BACK_B, FRONT]}
            )
            assert told.json()["tokens"] == [
                {"token": BACK_B, "type": "client", "projects": ["b"], "environment": "production"}
            ]


def test_two_environments_of_one_upstream(upstream: FakeUpstream) -> None:
    """Without a list of keys, as with Edge: each token opens the flags of its environment, for any worker."""
    of_a = "a:development.hidden-dev-a"
    assert upstream.tokens is not None
    upstream.tokens[of_a] = granted("frontend", "a", environment="development")
    tables = {
        "production": {"flagsvcApiToken": UP},
        "development": {"flagsvcApiToken": "*:development.hidden-up", "namePrefix": "of"},
    }
    given = {**LOOKING, **NOT_GIVEN, "FLAGSVC_ENVIRONMENTS": json.dumps(tables), "FLAGSVC_WORKERS": "2"}
    with our_proxy(upstream.url, **given) as proxy:
        proxy.program.wait(lambda: proxy.program.output().count("flagsvc ready") == 2, "ready")
        for _ in range(4):
            assert flags(proxy, FRONT) == ["of-a", "of-b", "free"]
            assert flags(proxy, FRONT_A) == ["of-a", "free"]
            assert flags(proxy, BACK_B, "/api/client/features") == ["of-b", "free"]
            assert flags(proxy, DEV) == ["of-a", "of-b"]
            assert flags(proxy, of_a) == ["of-a"]
            assert [status(proxy, token) for token in (UNKNOWN, "*:test.hidden", "hidden-unknown")] == [401] * 3
        asked = [token for each in upstream.asked_tokens() for token in each]
        assert "*:test.hidden" not in asked and len(asked) == len(set(asked))
        assert "hidden" not in proxy.program.output()


def test_no_secret_reaches_another_upstream(upstream: FakeUpstream, tmp_path: Path) -> None:
    """An upstream that is asked about tokens sees no key and no token of another environment, not even a former key."""
    file = tmp_path / "flagsvc.toml"

    def write(key: str) -> None:
        of_a = {"flagsvcUrl": other.url, "flagsvcApiToken": UP_A, "clientKeys": [key]}
        of_b = {
            "flagsvcUrl": upstream.url,
            "flagsvcApiToken": UP,
            "clientKeys": ["key-of-b"],
            "tokenValidation": "upstream",
        }
        write_toml(file.with_suffix(".new"), {"a": of_a, "b": of_b}).rename(file)

    with fake_upstream(document(*FEATURES)) as other:
        write("former-key")
        given = {**NOT_GIVEN, "FLAGSVC_CONFIG": str(file), "FLAGSVC_WORKERS": "2", "FLAGSVC_KEY_OVERLAP": "0"}
        with our_proxy("http://127.0.0.1:1/api", **given) as proxy:
            wait_until(lambda: {status(proxy, key) for key in ("former-key", "key-of-b") for _ in range(6)} == {200})
            write("new-key")
            os.kill(proxy.program.process.pid, signal.SIGHUP)
            wait_until(lambda: [status(proxy, "former-key") for _ in range(6)] == [401] * 6)
            assert {status(proxy, key) for key in ("former-key", "new-kex", UP_A) for _ in range(6)} == {401}
            assert {status(proxy, UP_A, "/client/features") for _ in range(6)} == {401}
            assert status(proxy, FRONT) == 200
            assert {token for each in upstream.asked_tokens() for token in each} == {FRONT}


def test_an_environment_that_is_replaced_while_its_upstream_is_away(upstream: FakeUpstream, tmp_path: Path) -> None:
    """Until it is ready, keys of both go on, and no token that it may open is refused: an SDK that is refused may stop for ever."""
    file = tmp_path / "flagsvc.toml"
    away = "*:test.hidden"

    def write(token: str) -> None:
        table = {
            "flagsvcUrl": upstream.url,
            "flagsvcApiToken": token,
            "clientKeys": ["key"],
            "tokenValidation": "upstream",
        }
        write_toml(file.with_suffix(".new"), {"web": table}).rename(file)

    def statuses(token: str) -> set[int]:
        return {status(proxy, token) for _ in range(6)}

    write("*:development.hidden-up")
    given = {**NOT_GIVEN, "FLAGSVC_CONFIG": str(file), "FLAGSVC_WORKERS": "2", "FLAGSVC_TOKEN_LOOKUP_RATE": "100"}
    with our_proxy("http://127.0.0.1:1/api", **given) as proxy:
        wait_until(lambda: statuses("key") == {200})
        assert [statuses(token) for token in (DEV, FRONT, away)] == [{200}, {401}, {401}]
        upstream.replies[DOCUMENT] = Reply(500)
        write(UP)
        os.kill(proxy.program.process.pid, signal.SIGHUP)
        wait_until(lambda: statuses(FRONT) == {503})
        assert [statuses(token) for token in ("key", DEV, FRONT_A, away)] == [{200}, {200}, {503}, {401}]
        upstream.replies.clear()
        wait_until(lambda: statuses(FRONT) == {200})
        assert flags(proxy, FRONT_A) == ["of-a", "free"]
        assert [statuses(token) for token in ("key", DEV, away)] == [{200}, {401}, {401}]


SECONDS, RATE = 5.0, 200.0
QUESTIONS_RATE = 30.0
TRIES = 20
"""The most tries of a new token until it is let in; each waits as long as it is told."""


@pytest.mark.parametrize("many", [False, True], ids=["one address", "many addresses"])
def test_a_flood_of_tokens(many: bool) -> None:
    """The upstream gets no more questions than the option allows; known callers are all answered; new tokens get in."""
    figures = flooded(SECONDS, RATE, many=many, quiet_s=0.5)
    assert figures.statuses == {200} and len(figures.during) > 100
    assert set(figures.flood["statuses"]) <= {"401", "503"} and not figures.flood["failed"]
    assert sum(figures.flood["statuses"].values()) == figures.flood["sent"] > 0, (
        "every request of the flood is answered"
    )
    assert 0 < figures.questions <= BUDGET * (figures.seconds + 1) and figures.largest <= 100
    assert figures.newcomers and max(tries for tries, _ in figures.newcomers) <= TRIES


@pytest.mark.parametrize("many", [False, True], ids=["one address", "many addresses"])
def test_a_flood_of_questions_about_tokens(many: bool) -> None:
    """Upstream and workers do not suffer from callers who ask about a hundred random tokens at once; known ones are answered."""
    figures = flooded(SECONDS, QUESTIONS_RATE, many=many, quiet_s=1.0, number=2, route="validate")
    assert figures.statuses == {200} and len(figures.during) > 100 and not figures.dead
    assert set(figures.flood["statuses"]) <= {"200", "503"} and not figures.flood["failed"]
    assert 0 < figures.questions <= BUDGET * (figures.seconds + 1) and figures.largest <= 100
    assert figures.newcomers and max(tries for tries, _ in figures.newcomers) <= TRIES
