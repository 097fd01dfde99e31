"""Keys and tokens that change while `flagsvc proxy` runs: from files, at SIGHUP, with one process and with several."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("number", ["1", "2"])
def test_keys_that_are_exchanged_and_taken_away(upstream: FakeUpstream, tmp_path: Path, number: str) -> None:
    """In every process a replaced key is still accepted, and a removed key is revoked at once; no log has a key."""
    keys = tmp_path / "keys"
    env = {"UNLEASH_PROXY_CLIENT_KEYS": "", "FLAGSVC_PROXY_CLIENT_KEYS_FILE": put(keys, "former-client-key\n")}
    with our_proxy(upstream.url, FLAGSVC_WORKERS=number, FLAGSVC_KEY_OVERLAP="600", **env, **QUICK) as proxy:
        assert opens(proxy, "former-client-key") == {200} and opens(proxy, "present-client-key") == {401}
        put(keys, "present-client-key,another-client-key\n")
        proxy.program.wait(lambda: "keys and tokens have changed" in proxy.program.output(), "reading the keys")
        assert opens(proxy, "present-client-key") == opens(proxy, "another-client-key") == {200}
        assert opens(proxy, "former-client-key") == {200}
        put(keys, "present-client-key\n")
        proxy.program.wait(lambda: opens(proxy, "another-client-key") == {401}, "taking a key away at once")
        assert opens(proxy, "present-client-key") == opens(proxy, "former-client-key") == {200}
        assert "client-key" not in proxy.program.output()


@pytest.mark.parametrize("number", ["1", "2"])
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


@pytest.mark.parametrize("number", ["1", "2"])
def test_a_wrong_configuration(upstream: FakeUpstream, tmp_path: Path, number: str) -> None:
    """It is refused with one line, without a secret, and nothing changes. The line names an option that needs a restart."""
    file = tmp_path / "flagsvc.toml"
    good = 'clientKeys = ["first-client-key"]\nkeepAliveTimeout = {}\n'
    file.write_text(good.format(5))
    env = {"FLAGSVC_WORKERS": number, "FLAGSVC_CONFIG": str(file), "UNLEASH_PROXY_CLIENT_KEYS": "", **QUICK}
    with our_proxy(upstream.url, **env) as proxy:
        put(file, 'clientKeys = ["other-client-key"]\nkeepAliveTimeout = "often"\nport = -1\n')
        said = "the configuration cannot be read again, the old one stays"
        proxy.program.wait(lambda: said in proxy.program.output(), "refusing")
        assert opens(proxy, "first-client-key") == {200} and opens(proxy, "other-client-key") == {401}
        put(file, good.format(7))
        restart = "these options have changed and need a restart options=keepAliveTimeout"
        proxy.program.wait(lambda: restart in proxy.program.output(), "naming what needs a restart")
        output = proxy.program.output()
        assert (
            output.count(said) == 1 and "often" in output and "client-key" not in output and "Traceback" not in output
        )


@pytest.mark.parametrize("number", ["1", "2"])
def test_another_token_for_the_upstream(upstream: FakeUpstream, tmp_path: Path, number: str) -> None:
    """It is used at once, without an ETag, also for usage metrics. The document is stored under its key for the next start."""
    token = tmp_path / "token"
    stored = tmp_path / "stored"
    former, present = (f"*:development.{each}-api-token" for each in ("former", "present"))
    env = {"UNLEASH_API_TOKEN": "", "FLAGSVC_API_TOKEN_FILE": put(token, former), "FLAGSVC_WORKERS": number}
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


@pytest.mark.parametrize("number", ["1", "2"])
def test_a_token_that_may_be_for_other_flags(upstream: FakeUpstream, tmp_path: Path, number: str) -> None:
    """The present flags are served until the upstream has answered with it, to keys that both lists have."""
    token, keys = tmp_path / "token", tmp_path / "keys"
    env = {"UNLEASH_API_TOKEN": "", "FLAGSVC_API_TOKEN_FILE": put(token, "former-api-token"), "FLAGSVC_WORKERS": number}
    env |= {"UNLEASH_PROXY_CLIENT_KEYS": "", "FLAGSVC_PROXY_CLIENT_KEYS_FILE": put(keys, "both-key,former-key")}
    asked = ("both-key", "former-key", "present-key")
    with our_proxy(upstream.url, **env, **QUICK) as proxy:
        proxy.program.wait(lambda: opens(proxy, "both-key") == {200}, "being ready")
        upstream.replies[FEATURES] = Reply(503)
        keys.write_text("both-key,present-key")
        put(token, "present-api-token")
        said = "an environment is not ready with its new options, the former one still answers"
        proxy.program.wait(lambda: said in proxy.program.output(), "asking with the new token")
        assert [opens(proxy, key) for key in asked] == [{200}, {401}, {503}]
        del upstream.replies[FEATURES]
        proxy.program.wait(lambda: opens(proxy, "present-key") == {200}, "taking the place")
        assert [opens(proxy, key) for key in asked] == [{200}, {401}, {200}]


@pytest.mark.parametrize("number", ["1", "2"])
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
