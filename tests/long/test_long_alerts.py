"""Prometheus watches real processes, each with a fault of its own: the alerts of that fault fire, and no other alert.

People load the same rules with the same times, so the test takes 16 minutes. All stands run beside each other. A stand is a
job of Prometheus.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import psycopg
import pytest
import trustme

import observe
from support import needs
from support.collector import collecting
from support.fake_upstream import FEATURES, METRICS, fake_upstream
from support.flagservers import BACKEND_SECRET, FILE, OurFlagServer, our_flag_server
from support.http_servers import Reply
from support.pki import written
from support.processes import (
    ROOT,
    Proxy,
    answers,
    ask,
    cluster,
    database_user,
    free_port,
    make_cluster,
    our_proxy,
    running,
    scratch,
)
from support.redises import redis_server
from support.waiting import threads, wait_until
from support.worker_pools import document, toggle, worker_pool, workers

pytestmark = pytest.mark.long

HEALTHY_S, FAULTY_S = 120.0, 840.0
"""Seconds before the faults, and with the faults: an alert of ten minutes' age and two minutes' hold is the last to fire."""
ROUND_S = 0.5
PROXY_METRICS, METRICS_PAGE = "/proxy/internal-backstage/prometheus", "/metrics"
"""Where the metrics are: at the callers' port of a proxy, and anywhere else."""
HOST = "127.0.0.1"
RULES = ROOT / "deploy" / "observe" / "alerts"
LARGE = {**toggle("large"), "description": "x" * 200_000}
LIMIT_BYTES = 64 * 1024


def nothing() -> None:
    """Bring about no fault."""


class Stand(NamedTuple):
    """A job: its targets, what brings its fault about, the alerts expected of it, and what callers do in each round.

    `ports` serve the callers of proxies. `others` serve operators, or the flag server.
    """

    job: str
    ports: Sequence[int]
    fault: Callable[[], object]
    expected: set[str]
    round: Callable[[], object]
    others: Sequence[int] = ()

    def targets(self) -> list[dict[str, Any]]:
        """Return the targets as Prometheus has them."""
        paths = {PROXY_METRICS: self.ports, METRICS_PAGE: self.others}
        return [
            {"targets": [f"{HOST}:{port}" for port in ports], "labels": {"__metrics_path__": path}} for path, ports in paths.items()
        ]


def asking(*proxies: Proxy) -> Callable[[], None]:
    """Return a round of callers of proxies: a list, and usage."""
    used = {"appName": "shop", "instanceId": "one", "bucket": {"start": 1, "stop": 2, "toggles": {"first": {"yes": 1, "no": 0}}}}

    def ask_all() -> None:
        for proxy in proxies:
            proxy.get("?userId=7")
            proxy.post("/client/metrics", used)

    return ask_all


def polling(server: OurFlagServer) -> Callable[[], None]:
    """Return a round of callers of a flag server: an SDK, and a person who changes a flag."""
    names = iter(range(1_000_000))

    def ask_all() -> None:
        server.ask("GET", "/client/features", token=BACKEND_SECRET)
        if next(names) % 8 == 0:
            server.ask("POST", "/admin/projects/default/features", {"name": f"flag-{next(names)}"})

    return ask_all


# ---- proxies


@contextmanager
def healthy_proxy() -> Iterator[Stand]:
    """Workers, a storage server, a collector, TLS, and a long certificate."""
    with scratch() as folder, redis_server() as redis, collecting() as collector, fake_upstream(document("first")) as upstream:
        admin = free_port()
        pair = certificate(folder, days=90)
        tls = {"FLAGSVC_TLS_CERT": pair, "FLAGSVC_ADMIN_ADDRESS": f"{HOST}:{admin}"}
        with (
            worker_pool(upstream, FLAGSVC_STORAGE=redis.url, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as proxy,
            our_proxy(upstream.url, wait_ready=False, **tls) as secure,
        ):
            secure.program.wait(lambda: "flagsvc ready" in secure.program.output(), "ready")
            yield Stand("healthy-proxy", [proxy.port], nothing, set(), asking(proxy), [admin])


@contextmanager
def upstream_away() -> Iterator[Stand]:
    with ExitStack() as life, fake_upstream_until(life) as url, our_proxy(url) as proxy:
        expected = {"FlagsvcProxyUpstreamFailing", "FlagsvcProxyConfigurationOld"}
        yield Stand("upstream-away", [proxy.port], life.close, expected, asking(proxy))


@contextmanager
def fake_upstream_until(life: ExitStack) -> Iterator[str]:
    """Give the URL of an upstream that ends with another block, `life`."""
    yield life.enter_context(fake_upstream(document("first"))).url


@contextmanager
def upstream_never_there() -> Iterator[Stand]:
    """Nobody listens at the address of the upstream, and nobody else can."""
    admin = free_port()
    with closing(socket.socket()) as held, ExitStack() as life:
        held.bind((HOST, 0))
        url = f"http://{HOST}:{held.getsockname()[1]}/api"
        proxy = life.enter_context(our_proxy(url, wait_ready=False, FLAGSVC_ADMIN_ADDRESS=f"{HOST}:{admin}"))
        proxy.program.wait(lambda: answers(f"{proxy.url}/live"), "listening")
        expected = {"FlagsvcProxyNeverFetched", "FlagsvcProxyNotReady", "FlagsvcProxyUpstreamFailing", "FlagsvcProxyErrors"}
        yield Stand("upstream-never-there", [], nothing, expected, asking(proxy), [admin])


@contextmanager
def answering(job: str, reply: Reply, expected: set[str]) -> Iterator[Stand]:
    """Run a proxy whose upstream answers each poll with something else than flags."""
    with fake_upstream(document("first")) as upstream, our_proxy(upstream.url) as proxy:
        yield Stand(job, [proxy.port], lambda: upstream.replies.update({FEATURES: reply}), expected, asking(proxy))


@contextmanager
def full_disk() -> Iterator[Stand]:
    """No file of the proxy may get larger than a limit, and the new flags are larger."""
    with fake_upstream(document("first")) as upstream, our_proxy(upstream.url) as proxy:

        def fill() -> None:
            resource.prlimit(proxy.program.process.pid, resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))
            upstream.replace({"version": 2, "features": [LARGE]})

        yield Stand("full-disk", [proxy.port], fill, {"FlagsvcProxyStorageErrors"}, asking(proxy))


@contextmanager
def redis_away() -> Iterator[Stand]:
    with (
        redis_server() as redis,
        fake_upstream(document("first")) as upstream,
        our_proxy(upstream.url, FLAGSVC_STORAGE=redis.url) as proxy,
    ):

        def leave() -> None:
            redis.kill()
            upstream.replace(document("second"))

        yield Stand("redis-away", [proxy.port], leave, {"FlagsvcProxyStorageErrors"}, asking(proxy))


@contextmanager
def worker_signalled(job: str, number: signal.Signals) -> Iterator[Stand]:
    with fake_upstream(document("first")) as upstream, worker_pool(upstream, 2) as proxy:
        yield Stand(job, [proxy.port], lambda: os.kill(workers(proxy)[0], number), {"FlagsvcProxyWorkerRestarts"}, asking(proxy))


@contextmanager
def certificate_ending() -> Iterator[Stand]:
    """The file gets a certificate that ends within a week."""
    with scratch() as folder, fake_upstream(document("first")) as upstream:
        admin = free_port()
        tls = {"FLAGSVC_TLS_CERT": certificate(folder, days=90), "FLAGSVC_ADMIN_ADDRESS": f"{HOST}:{admin}"}
        with our_proxy(upstream.url, wait_ready=False, **tls) as proxy:
            proxy.program.wait(lambda: "flagsvc ready" in proxy.program.output(), "ready")
            yield Stand(
                "certificate-ending", [], lambda: certificate(folder, days=3), {"FlagsvcProxyCertificateEnds"}, nothing, [admin]
            )


def certificate(folder: Path, days: int) -> str:
    """Write a certificate that ends in so many days with its key, and return the path."""
    issued = trustme.CA().issue_cert(HOST, not_after=datetime.now(UTC) + timedelta(days=days))
    chain = "".join(each.bytes().decode() for each in issued.cert_chain_pems)
    return written(folder, "pair.pem", chain + issued.private_key_pem.bytes().decode())


@contextmanager
def revisions_differ() -> Iterator[Stand]:
    """Two proxies of one job; the upstream of the second gets other flags."""
    with (
        fake_upstream(document("first")) as one,
        fake_upstream(document("first")) as other,
        our_proxy(one.url) as proxy,
        our_proxy(other.url) as second,
    ):
        yield Stand(
            "revisions-differ",
            [proxy.port, second.port],
            lambda: other.replace(document("second")),
            {"FlagsvcProxyRevisionsDiffer"},
            asking(proxy, second),
        )


@contextmanager
def usage_refused() -> Iterator[Stand]:
    with fake_upstream(document("first")) as upstream, our_proxy(upstream.url, UNLEASH_METRICS_INTERVAL="1000") as proxy:
        yield Stand(
            "usage-refused",
            [proxy.port],
            lambda: upstream.replies.update({METRICS: Reply(400)}),
            {"FlagsvcProxyUsageDropped"},
            asking(proxy),
        )


@contextmanager
def limit_reached() -> Iterator[Stand]:
    """The callers of a key ask more often than they may, once the fault has begun."""
    with fake_upstream(document("first")) as upstream, our_proxy(upstream.url, FLAGSVC_RATE_LIMIT_KEY="5") as proxy:
        faulty = threading.Event()

        def ask_often() -> None:
            for _ in range(10 if faulty.is_set() else 1):
                proxy.get()

        yield Stand("limit-reached", [proxy.port], faulty.set, {"FlagsvcProxyLimitReached"}, ask_often)


# ---- flag servers


@contextmanager
def healthy_server() -> Iterator[Stand]:
    with collecting() as collector, our_flag_server(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as server:
        yield stand_of("healthy-server", server, nothing, set())


def stand_of(job: str, server: OurFlagServer, fault: Callable[[], object], expected: set[str]) -> Stand:
    """Return the stand of a flag server, which callers poll and change."""
    port = int(server.root.rpartition(":")[2])
    return Stand(job, [], fault, expected, polling(server), [port])


@contextmanager
def database_away() -> Iterator[Stand]:
    with on_postgresql() as (server, life, _):
        expected = {"FlagsvcServerDatabaseAway", "FlagsvcServerDatabaseErrors", "FlagsvcServerErrors", "FlagsvcServerNotReady"}
        yield stand_of("database-away", server, life.close, expected)


@contextmanager
def database_read_only() -> Iterator[Stand]:
    with on_postgresql() as (server, _, url):

        def forbid() -> None:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET default_transaction_read_only = on")
                connection.execute("SELECT pg_reload_conf()")

        expected = {"FlagsvcServerReadOnly", "FlagsvcServerDatabaseErrors", "FlagsvcServerErrors"}
        yield stand_of("database-read-only", server, forbid, expected)


@contextmanager
def on_postgresql() -> Iterator[tuple[OurFlagServer, ExitStack, str]]:
    """Run a flag server on a cluster of its own; give both, and the URL of the database."""
    with scratch(database_user()) as folder, ExitStack() as life:
        make_cluster(folder, "data")
        port = free_port()
        life.enter_context(cluster(folder, "data", port))
        url = f"postgres://postgres@{HOST}:{port}/postgres"
        with our_flag_server(database=url) as server:
            yield server, life, url


@contextmanager
def webhook_failing() -> Iterator[Stand]:
    """The body of a webhook gets larger than a body may be."""
    with our_flag_server() as server:

        def add() -> None:
            parameters = {"url": f"http://{HOST}:{free_port()}/", "bodyTemplate": "{{event.data.description}}" * 1000}
            server.admin(
                "/addons", {"provider": "webhook", "enabled": True, "events": ["feature-created"], "parameters": parameters}
            )
            server.admin("/projects/default/features", {"name": "described", "description": "x" * 2000})

        yield stand_of("webhook-failing", server, add, {"FlagsvcServerWebhooksFail"})


@contextmanager
def writers_waiting() -> Iterator[Stand]:
    """Another program takes the lock of the database for seconds, again and again."""
    over = threading.Event()
    with scratch() as folder, our_flag_server(folder=folder) as server, ExitStack() as life:

        def hold() -> None:
            with closing(sqlite3.connect(folder / FILE, isolation_level=None, timeout=30)) as connection:
                while not over.is_set():
                    connection.execute("BEGIN IMMEDIATE")
                    over.wait(3)
                    connection.execute("ROLLBACK")
                    over.wait(0.2)

        def begin() -> None:
            life.enter_context(threads(hold, stop=over.set))

        yield stand_of("writers-waiting", server, begin, {"FlagsvcServerWritersWait", "FlagsvcServerSlow"})


def stands() -> list[AbstractContextManager[Stand]]:
    """Return every stand."""
    old = "FlagsvcProxyConfigurationOld"
    return [
        healthy_proxy(),
        upstream_away(),
        upstream_never_there(),
        answering("token-refused", Reply(401), {"FlagsvcProxyTokenRefused", old}),
        answering("garbage", Reply(200, b"{]"), {"FlagsvcProxyConfigurationRejected", "FlagsvcProxyUpstreamFailing", old}),
        full_disk(),
        redis_away(),
        worker_signalled("worker-killed", signal.SIGKILL),
        worker_signalled("worker-stopped", signal.SIGSTOP),
        certificate_ending(),
        revisions_differ(),
        usage_refused(),
        limit_reached(),
        healthy_server(),
        database_away(),
        database_read_only(),
        webhook_failing(),
        writers_waiting(),
    ]


# ---- Prometheus


@contextmanager
def prometheus(watched: Sequence[Stand]) -> Iterator[str]:
    """Run Prometheus with our rules, a job for each stand, until the block ends. Gives its address."""
    jobs = [{"job_name": each.job, "static_configs": each.targets()} for each in watched]
    settings = {
        "global": {"scrape_interval": "5s", "evaluation_interval": "5s"},
        "rule_files": [str(RULES / f"{program}.yaml") for program in observe.PROGRAMS],
        "scrape_configs": jobs,
    }
    with scratch() as folder:
        file = written(folder, "prometheus.yaml", json.dumps(settings))
        place = f"{HOST}:{free_port()}"
        words = [f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={place}"]
        with running("prometheus", [needs.program("prometheus"), *words], env={}, folder=folder) as program:
            program.wait(lambda: answers(f"http://{place}/-/ready"), "ready")
            yield f"http://{place}"


def query(address: str, expr: str, path: str = "query", **more: object) -> list[dict[str, Any]]:
    """Return the series that an expression gives."""
    answer = ask(f"{address}/api/v1/{path}?{urlencode({'query': expr, **more})}")
    assert answer.status == 200, (expr, answer.text)
    return list(answer.json()["data"]["result"])


def fired(address: str) -> set[tuple[str, str]]:
    """Return job and name of each alert that has fired."""
    found = query(address, 'max by (job, alertname) (max_over_time(ALERTS{alertstate="firing"}[30m]))')
    return {(each["metric"]["job"], each["metric"]["alertname"]) for each in found}


def without_data(address: str, program: str) -> set[str]:
    """Return the titles of the panels of a program with a query that has given no number."""
    end = datetime.now(UTC).timestamp()
    span = {"start": end - HEALTHY_S - FAULTY_S, "end": end, "step": 30}
    titles = set()
    for panel in json.loads(observe.dashboard(program))["panels"]:
        for target in panel["targets"]:
            expr = target["expr"].replace("$__rate_interval", "1m").replace("$job", ".*").replace("$instance", ".*")
            series = query(address, expr, "query_range", **span)
            if not any(value != "NaN" for each in series for _, value in each["values"]):
                titles.add(f"{panel['title']}: {target['legendFormat']}")
    return titles


def test_the_alerts_of_real_faults(record_property: Callable[[str, object], None]) -> None:
    """Each fault has its alerts and no others, a healthy program has none, and each panel shows something."""
    over = threading.Event()
    with ExitStack() as life:
        watched = [life.enter_context(each) for each in stands()]
        address = life.enter_context(prometheus(watched))

        def callers() -> None:
            while not over.wait(ROUND_S):
                for each in watched:
                    with suppress(OSError):
                        each.round()

        life.enter_context(threads(callers, stop=over.set))
        number = sum(len(each.ports) + len(each.others) for each in watched)
        wait_until(lambda: len(query(address, "up == 1")) == number, 60, lambda: str(query(address, "up == 0")))
        over.wait(HEALTHY_S)
        early = fired(address)
        for each in watched:
            each.fault()
        over.wait(FAULTY_S)
        seen, expected = fired(address), {(each.job, name) for each in watched for name in each.expected}
        empty = {program: without_data(address, program) for program in observe.PROGRAMS}
    record_property("summary", f"{len(seen)} alerts of {len(watched)} stands fired")
    different = [f"{'more' if each in seen else 'missing'}: {each}" for each in sorted(seen ^ expected)]
    assert not different, "\n".join(different)
    assert {job for job, _ in early} <= {"upstream-never-there"}
    assert empty == {program: set() for program in observe.PROGRAMS}
