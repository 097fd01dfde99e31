"""`flagsvc proxy` with several environments: one process and workers, from the start over changes to the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.environment_samples import write_toml
from support.fake_upstream import FEATURES, METRICS, FakeUpstream, Reply, fake_upstream
from support.processes import Proxy, ask, our_proxy
from support.waiting import threads
from support.worker_pools import document, workers

NOTHING = {"UNLEASH_API_TOKEN": "", "UNLEASH_PROXY_CLIENT_KEYS": "", "EXP_SERVER_SIDE_SDK_CONFIG_TOKENS": ""}
"""Without keys and tokens of the process."""
QUICK = {"FLAGSVC_WATCH_INTERVAL": "1", "FLAGSVC_KEY_OVERLAP": "600", "LOG_LEVEL": "info", "FLAGSVC_FETCH_INTERVAL": "200"}
EACH_WORKER = 8
"""Requests with connections of their own: of several workers each gets one, most likely."""
SECRETS = ("client-key", "api-token", "sdk-token")
"""What is in each secret of these tests."""
one_or_two = pytest.mark.parametrize("number", ["1", "2"])


class Servers:
    """An upstream server for each environment, which serves toggles with its name, and the configuration file."""

    def __init__(self, folder: Path, servers: Mapping[str, FakeUpstream]) -> None:
        self.file = folder / "flagsvc.toml"
        self.servers = servers

    def write(self, **given: Mapping[str, object]) -> None:
        """Replace the file: these environments, each with a token and a key unless it is given others."""
        tables = {
            name: {
                "flagsvcUrl": self.servers[name].url,
                "flagsvcApiToken": f"*:{name}.api-token",
                "clientKeys": [f"client-key-{name}"],
                **each,
            }
            for name, each in given.items()
        }
        write_toml(self.file.with_suffix(".new"), tables).rename(self.file)

    @contextmanager
    def proxy(self, number: str, *ready: str, **env: str) -> Iterator[Proxy]:
        """Run the proxy until the block ends, which begins when these environments are ready."""
        more = {"FLAGSVC_CONFIG": str(self.file), "FLAGSVC_WORKERS": number, **NOTHING, **QUICK, **env}
        with our_proxy("http://127.0.0.1:1/api", wait_ready=False, **more) as proxy:
            for name in ready:
                proxy.program.wait(lambda: f"flagsvc ready: {name}: " in proxy.program.output(), f"ready with {name}")  # noqa: B023
            yield proxy

    def counted(self, name: str) -> int:
        """Return how many look-ups an upstream was told of its toggles; with the right token all of them."""
        received = self.servers[name].received(METRICS, 202)
        assert {each.headers["authorization"] for each in received} <= {f"*:{name}.api-token"}
        buckets = [each.json()["bucket"]["toggles"] for each in received]
        assert all(toggle.startswith(name) for bucket in buckets for toggle in bucket)
        return sum(tally["yes"] + tally["no"] for bucket in buckets for tally in bucket.values())


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    """Three flag servers."""
    with ExitStack() as stack:
        made = {name: stack.enter_context(fake_upstream(document(f"{name}.one", f"{name}.two"))) for name in "abc"}
        yield Servers(tmp_path, made)


def seen(proxy: Proxy, key: str) -> set[object]:
    """Return what a key sees, whichever worker answers: the names of the toggles, or the status of a refusal."""
    answers = [ask(proxy.url, headers={"Authorization": key}) for _ in range(EACH_WORKER)]
    return {
        tuple(toggle["name"] for toggle in answer.json()["toggles"]) if answer.status == 200 else answer.status
        for answer in answers
    }


def metrics(proxy: Proxy) -> list[str]:
    """Return the lines of the metrics."""
    return ask(f"{proxy.url}/internal-backstage/prometheus").body.decode().splitlines()


def counter(proxy: Proxy, name: str) -> float:
    """Return the value of a counter."""
    [value] = [float(line.rpartition(" ")[2]) for line in metrics(proxy) if line.rpartition(" ")[0] == name]
    return value


def look_up(proxy: Proxy, name: str, times: int) -> None:
    """Look up a toggle of an environment so often."""
    for _ in range(times):
        headers = {"Authorization": f"client-key-{name}"}
        answer = ask(proxy.url, method="POST", headers=headers, body={"toggles": [f"{name}.one"]})
        assert answer.status == 200, answer


def check_output(proxy: Proxy) -> None:
    """Check that no secret and no trace was written."""
    output = proxy.program.output()
    assert "Traceback" not in output and not [secret for secret in SECRETS if secret in output], output


@one_or_two
def test_a_whole_life(servers: Servers, number: str) -> None:
    """Start, answers, changes without a restart, and the end: usage of each environment goes to its own upstream."""
    servers.write(a={}, b={})
    with servers.proxy(number, "a", "b") as proxy:
        processes = workers(proxy)
        assert seen(proxy, "client-key-a") == {("a.one", "a.two")} and seen(proxy, "client-key-b") == {("b.one", "b.two")}
        assert seen(proxy, "nobody") == seen(proxy, "client-key-c") == {401}
        look_up(proxy, "a", 3)
        look_up(proxy, "b", 5)
        servers.write(a={"clientKeys": ["client-key-a", "new-client-key"]}, c={})
        proxy.program.wait(lambda: "environments have changed" in proxy.program.output(), "reading the file")
        assert seen(proxy, "client-key-a") == seen(proxy, "new-client-key") == {("a.one", "a.two")}
        assert seen(proxy, "client-key-b") == {401}, "who is told so has the change in every process"
        servers.servers["b"].wait(lambda: servers.counted("b") == 5)
        proxy.program.wait(lambda: seen(proxy, "client-key-c") == {("c.one", "c.two")}, "answering for c")
        look_up(proxy, "c", 2)
        assert workers(proxy) == processes
        assert proxy.program.stop() == 0
        assert proxy.program.output().count("flagsvc ready: ") == 2
        assert proxy.program.output().count("flagsvc ready environment=c") == 1
        check_output(proxy)
    assert {name: servers.counted(name) for name in "abc"} == {"a": 3, "b": 5, "c": 2}


@one_or_two
def test_an_environment_with_other_options(servers: Servers, number: str) -> None:
    """An environment answers with its former options until its new options have a configuration. Keys change at once."""
    servers.write(a={"clientKeys": ["client-key-a", "ended-client-key"]}, b={})
    with servers.proxy(number, "a", "b") as proxy, asking(proxy, "client-key-a") as statuses:
        servers.servers["a"].replies[FEATURES] = Reply(500)
        servers.write(a={"namePrefix": "a.t"}, b={})
        proxy.program.wait(lambda: "environments have changed replacing=a" in proxy.program.output(), "reading the file")
        assert seen(proxy, "client-key-a") == {("a.one", "a.two")} and seen(proxy, "ended-client-key") == {401}
        waiting = "the former one still answers environment=a"
        proxy.program.wait(lambda: waiting in proxy.program.output(), "failing to fetch")
        assert 'flagsvc_environment_pending{environment="a"} 1.0' in metrics(proxy)
        fetched = counter(proxy, 'flagsvc_upstream_answers_total{environment="a",event="fetched"}')
        assert fetched >= 1
        del servers.servers["a"].replies[FEATURES]
        proxy.program.wait(lambda: seen(proxy, "client-key-a") == {("a.two",)}, "answering with other options")
        assert "an environment has other options now environment=a" in proxy.program.output()
        assert 'flagsvc_environment_pending{environment="a"} 0.0' in metrics(proxy)
        assert counter(proxy, 'flagsvc_upstream_answers_total{environment="a",event="fetched"}') > fetched
        assert seen(proxy, "client-key-b") == {("b.one", "b.two")}
        check_output(proxy)
    assert set(statuses) == {200}


@contextmanager
def asking(proxy: Proxy, key: str) -> Iterator[list[int]]:
    """Ask over and over until the block ends; give the statuses so far."""
    statuses: list[int] = []
    over = threading.Event()

    def ask_on() -> None:
        while not over.is_set():
            statuses.append(ask(proxy.url, headers={"Authorization": key}).status)

    with threads(ask_on, stop=over.set):
        yield statuses
