"""Keys and tokens that change while `flagsvc proxy` runs: from files, at SIGHUP, with one process and with several.

Reloads while callers ask: no request of a lasting key fails, no answer has foreign flags, revoked keys open nothing after the log
line of the reload, and processes do not grow. In the long run, RELOADS=100 is the number of reloads, RELOAD_SEED=1 the seed of the
walk; the figures are printed with `-s`.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from reload_callers import Size
from reload_walk import ReloadWalk, walking

from support.fake_upstream import FEATURES, METRICS, FakeUpstream, Reply
from support.processes import SERVER_SIDE_TOKEN, Proxy, ask, our_proxy
from support.worker_pools import HEADERS

QUICK = {"FLAGSVC_WATCH_INTERVAL": "1", "LOG_LEVEL": "info"}


def put(path: Path, text: str) -> str:
    """Replace a file, as a cluster replaces secrets, and return its path."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.rename(path)
    return str(path)


def opens(proxy: Proxy, key: str, path: str = "") -> set[int]:
    """Return the statuses that a key gets; of several workers each is asked, most likely."""
    return {ask(proxy.url + path, headers={"Authorization": key}).status for _ in range(8)}


def test_keys_that_are_exchanged_and_taken_away(upstream: FakeUpstream, tmp_path: Path) -> None:
    """In every process a replaced key is still accepted, and a removed key is revoked at once; no log has a key."""
    keys = tmp_path / "keys"
    env = {"UNLEASH_PROXY_CLIENT_KEYS": "", "FLAGSVC_PROXY_CLIENT_KEYS_FILE": put(keys, "former-client-key\n")}
    with our_proxy(upstream.url, FLAGSVC_WORKERS="2", FLAGSVC_KEY_OVERLAP="600", **env, **QUICK) as proxy:
        assert opens(proxy, "former-client-key") == {200} and opens(proxy, "present-client-key") == {401}
        put(keys, "present-client-key,another-client-key\n")
        proxy.program.wait(lambda: "keys and tokens have changed" in proxy.program.output(), "reading the keys")
        assert opens(proxy, "present-client-key") == opens(proxy, "another-client-key") == {200}
        assert opens(proxy, "former-client-key") == {200}
        put(keys, "present-client-key\n")
        proxy.program.wait(lambda: opens(proxy, "another-client-key") == {401}, "taking a key away at once")
        assert opens(proxy, "present-client-key") == opens(proxy, "former-client-key") == {200}
        assert "client-key" not in proxy.program.output()


@pytest.mark.parametrize("number", [pytest.param("1", marks=pytest.mark.long), "2"])
def test_sighup(upstream: FakeUpstream, tmp_path: Path, number: str) -> None:
    """SIGHUP to all processes reloads unwatched files, and ends no process. Tokens of server-side SDKs are no client keys."""
    file = tmp_path / "flagsvc.toml"
    file.write_text(f'expServerSideSdkConfig.tokens = ["{SERVER_SIDE_TOKEN}"]\n')
    env = {"FLAGSVC_WORKERS": number, "FLAGSVC_WATCH_INTERVAL": "0", "FLAGSVC_CONFIG": str(file), "LOG_LEVEL": "info"}
    with our_proxy(upstream.url, EXP_SERVER_SIDE_SDK_CONFIG_TOKENS="", **env) as proxy:
        file.write_text(f'expServerSideSdkConfig.tokens = ["{SERVER_SIDE_TOKEN}", "other-sdk-token"]\n')
        assert opens(proxy, "other-sdk-token", "/client/features") == {401}
        os.killpg(proxy.program.process.pid, signal.SIGHUP)
        proxy.program.wait(lambda: opens(proxy, "other-sdk-token", "/client/features") == {200}, "taking the token")
        assert "replaced worker" not in proxy.program.output()
        assert opens(proxy, SERVER_SIDE_TOKEN, "/client/features") == {200}
        assert opens(proxy, "other-sdk-token") == {401} and opens(proxy, HEADERS["Authorization"]) == {200}
        assert proxy.program.stop() == 0


def test_another_token_for_the_upstream(upstream: FakeUpstream, tmp_path: Path) -> None:
    """It is used at once, without an ETag, also for usage metrics. The document is stored under its key for the next start."""
    token = tmp_path / "token"
    stored = tmp_path / "stored"
    former, present = (f"*:development.{each}-api-token" for each in ("former", "present"))
    env = {"UNLEASH_API_TOKEN": "", "FLAGSVC_API_TOKEN_FILE": put(token, former), "FLAGSVC_WORKERS": "2"}
    env |= {"FLAGSVC_FETCH_INTERVAL": "600000", "FLAGSVC_STORAGE": stored.as_uri()}
    with our_proxy(upstream.url, **env, **QUICK) as proxy:
        upstream.wait(lambda: upstream.received(FEATURES))
        proxy.program.wait(lambda: len(list(stored.glob("*.flags"))) == 1, "storing the configuration")
        assert proxy.post("", {"toggles": ["first"]}).status == 200
        put(token, present)
        upstream.wait(lambda: len(upstream.received(FEATURES)) == 2)
        proxy.program.wait(lambda: len(list(stored.glob("*.flags"))) == 2, "storing it under the new token's name")
        assert proxy.get().status == 200 and proxy.program.stop() == 0
    first, second = upstream.received(FEATURES)
    assert (first.headers["authorization"], second.headers["authorization"]) == (former, present)
    assert "if-none-match" not in second.headers
    assert {seen.headers["authorization"] for seen in upstream.received(METRICS)} == {present}
    upstream.replies[FEATURES] = Reply(503)
    fresh = {**env, "UNLEASH_API_TOKEN": present}
    with our_proxy(upstream.url, **fresh) as proxy:
        assert list(proxy.toggles()) == ["first", "second"], "a restart begins with what the new token got"


@pytest.mark.parametrize("number", [pytest.param("1", marks=pytest.mark.long), "2"])
def test_sighup_asks_the_upstream(upstream: FakeUpstream, number: str) -> None:
    """SIGHUP polls at once, even if the upstream asked for an hour's pause, or the next poll is in ten minutes."""
    env = {"FLAGSVC_WORKERS": number, "FLAGSVC_FETCH_INTERVAL": "600000"}
    upstream.replies[FEATURES] = Reply(503, headers={"Retry-After": "3600"})
    with our_proxy(upstream.url, wait_ready=False, **env) as proxy:
        upstream.wait(lambda: upstream.received(FEATURES))
        proxy.program.wait(lambda: "could not be fetched" in proxy.program.output(), "the first answer")
        del upstream.replies[FEATURES]
        proxy.program.process.send_signal(signal.SIGHUP)
        upstream.wait(lambda: len(upstream.received(FEATURES)) == 2)
        proxy.program.wait(lambda: proxy.get().status == 200, "taking the configuration")
        proxy.program.process.send_signal(signal.SIGHUP)
        upstream.wait(lambda: len(upstream.received(FEATURES)) == 3)
        assert proxy.program.stop() == 0


def test_several_environments_under_load(tmp_path: Path) -> None:
    """Two workers with ten environments."""
    with walking(tmp_path, seed=1, number=2) as walk:
        walk.steps(5)


def test_a_single_environment_under_load(tmp_path: Path) -> None:
    """Two workers with one environment: the last change is of its upstream, and of a key with it."""
    with walking(tmp_path, seed=1, number=2, single=True) as walk:
        walk.steps(4)
        walk.step("another upstream")
        walk.settle()


RELOADS = int(os.environ.get("RELOADS", "100"))
SEED = int(os.environ.get("RELOAD_SEED", "1"))
POOL = 1 + min(32, (os.cpu_count() or 1) + 4)
"""The most threads of a process: the thread of the loop, and the pool for files and compiling."""
SCAN_S = float(os.environ.get("SCAN_S", "5"))
"""After so many seconds a process scans all objects for garbage; 0 leaves it at ten minutes.

Environments that have ended are garbage in cycles: the processes of the long run scan soon, and show what is not garbage.
"""
WARM_UP, GROWTH = 1.25, 1.05
"""By how much the memory of a process may grow from the end of the first quarter to the end, and from the half to the end.

In the first half, the threads start that a process has for files and compiling, and each takes memory of its own.
"""


@pytest.mark.long
@pytest.mark.parametrize("single", [False, True], ids=["several environments", "a single environment"])
@pytest.mark.parametrize("number", [1, 2, 4], ids=["one process", "two workers", "four workers"])
def test_reloads(number: int, single: bool, tmp_path: Path) -> None:
    """Keys, options, tokens, upstreams, files that are refused: of ten environments that come and go, or of one without a name."""
    with walking(tmp_path, seed=SEED, number=number, single=single, scan_s=SCAN_S) as walk:
        walk_far(walk)


def walk_far(walk: ReloadWalk) -> None:
    """Reload so often, print the figures, and compare the processes after the first quarter with those at the end."""
    began = time.monotonic()
    quarters = walk.run(RELOADS)
    answered = sum(caller.answered for caller in walk.callers)
    print(f"\n{sum(walk.done.values())} reloads in {time.monotonic() - began:.0f} s with {walk.number} worker(s):", end=" ")
    print(f"{answered} answers, {len(walk.wrong())} wrong; {dict(walk.done)}; {dict(walk.seen)}")
    for at, sizes in enumerate(quarters, 1):
        print(f"  quarter {at}: {', '.join(map(words, sizes))}")
    for early, half, late in zip(quarters[0], quarters[1], quarters[-1], strict=True):
        assert late.memory <= min(WARM_UP * early.memory, GROWTH * half.memory)
        assert late.files <= early.files and late.threads <= max(early.threads, POOL)


def words(size: Size) -> str:
    return f"{size.memory / 2**20:.1f} MB, {size.files} files, {size.threads} threads"
