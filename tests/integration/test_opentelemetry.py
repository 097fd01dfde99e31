"""Both programs beside a collector of OpenTelemetry: one trace from a poll to the database, what is sampled, no data of callers."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from flagsvc.core.tracing import CLIENT, SERVER
from support.collector import Collector, collecting, variables
from support.fake_upstream import FakeUpstream
from support.flagservers import BACKEND_SECRET, FRONTEND_SECRET, OurFlagServer, our_flag_server
from support.processes import KEY, Proxy, ask, call, our_proxy
from support.waiting import wait_until

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACED, REFUSED = f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00"
MARK = "markedq7x9zk"
LIST = "GET /proxy"
WAY = ("SELECT sqlite", "transaction", "GET /api/client/features", "GET /client/features", "features", "fetch", "refresh")
"""The spans from a statement up to the poll that it is for."""


def ways(collector: Collector) -> set[tuple[str, ...]]:
    """Return the names of the spans from each statement up to the beginning of its trace."""
    spans = {(span.trace, span.id): span for span in collector.spans}
    found = set()
    for span in collector.named(WAY[0]):
        names, at = [span.name], spans.get((span.trace, span.parent))
        while at is not None:
            names.append(at.name)
            at = spans.get((at.trace, at.parent))
        found.add(tuple(names))
    return found


def test_one_trace_from_a_poll_through_the_flag_server_to_its_database() -> None:
    """A refresh has its phases; its request, what the flag server does for it, and the statements there are in the same trace.

    All attributes are named by the conventions for HTTP and databases.
    """
    with collecting() as collector:
        env = variables(collector)
        with our_flag_server(**env) as server, our_proxy(f"{server.root}/api", UNLEASH_API_TOKEN=BACKEND_SECRET, **env):
            wait_until(lambda: WAY in ways(collector) and collector.named("switch"), 30, lambda: str(ways(collector)))
    refreshes = {span.id for span in collector.named("refresh")}
    assert {span.parent for span in collector.named("fetch")} <= refreshes
    assert {span.parent for span in collector.named("compile", "switch")} & refreshes
    [answered, *_], [asked, *_], [statement, *_] = (collector.named(name) for name in (WAY[2], WAY[3], WAY[0]))
    assert (answered.service, answered.kind, answered.is_error) == ("flagsvc-server", SERVER, False)
    assert answered.attributes == {
        "http.request.method": "GET",
        "http.route": "/api/client/features",
        "http.response.status_code": 200,
        "url.scheme": "http",
        "server.port": int(server.root.rpartition(":")[2]),
    }
    http = {"http.request.method": "GET", "url.template": "/client/features", "http.response.status_code": 200}
    assert (asked.service, asked.kind, asked.attributes) == ("flagsvc-proxy", CLIENT, http)
    assert (statement.kind, statement.attributes) == (CLIENT, {"db.system.name": "sqlite", "db.operation.name": "SELECT"})


@pytest.mark.parametrize("workers", ["1", "2"])
def test_metrics_and_spans_of_all_processes_come_before_the_end(upstream: FakeUpstream, workers: str) -> None:
    """The last reading of the metrics is sent at the end, and so is every span. The numbers are those of all processes."""
    with collecting() as collector:
        env = variables(collector, OTEL_METRIC_EXPORT_INTERVAL="600000", OTEL_BSP_SCHEDULE_DELAY="600000")
        with our_proxy(upstream.url, FLAGSVC_WORKERS=workers, **env) as proxy:
            for _ in range(7):
                assert proxy.get().status == 200
            assert not collector.bodies
            assert proxy.program.stop(signal.SIGTERM) == 0
    assert collector.numbers("flagsvc_http_requests")["/proxy", "GET", "200"] == 7
    durations = collector.points("flagsvc_http_request_duration_seconds")["/proxy", "GET"]
    assert durations.count == sum(durations.bucket_counts) == 7 and 0 < durations.sum < 7
    assert len(durations.explicit_bounds) + 1 == len(durations.bucket_counts) == 17
    assert collector.numbers("flagsvc_workers") == {(): workers == "1"}  # the last reading is when the workers have ended
    assert collector.numbers("flagsvc_telemetry_dropped") == {("spans",): 0, ("metrics",): 0}
    assert len(collector.named(LIST)) == 7


@pytest.mark.parametrize(
    ("sampler", "argument", "own", "traced", "refused"),
    [
        ("", "", True, True, False),
        ("always_off", "", False, False, False),
        ("always_on", "", True, True, True),
        ("traceidratio", "0", False, False, False),
        ("parentbased_always_off", "", False, True, False),
        ("parentbased_traceidratio", "0", False, True, False),
    ],
)
def test_which_requests_are_traced(
    upstream: FakeUpstream, sampler: str, argument: str, own: bool, traced: bool, refused: bool
) -> None:
    """The sampler decides about a request without a decision of its caller, a request that is traced, and a request that is not."""
    with collecting() as collector:
        env = {"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": argument, "OTEL_METRICS_EXPORTER": "none"}
        with our_proxy(upstream.url, **variables(collector, **env)) as proxy:
            proxy.get()
            proxy.get("/all", traceparent=TRACED)
            proxy.post("", {}, traceparent=REFUSED)
            assert proxy.program.stop(signal.SIGTERM) == 0
    assert [bool(collector.named(name)) for name in (LIST, "GET /proxy/all", "POST /proxy")] == [own, traced, refused]
    assert {(span.trace, span.parent) for span in collector.named("GET /proxy/all")} <= {(TRACE, SPAN if traced else "")}
    assert not collector.metrics
    sent = {request.path: request.headers["traceparent"][-3:] for request in upstream.requests}
    assert sent.pop("/api/client/streaming") == "-00"
    assert {*sent.values()} == {"-01" if own else "-00"}


def use_every_place(server: OurFlagServer, proxy: Proxy) -> None:
    """Send marked contexts, keys, paths and headers to both programs."""
    noise = {"Cookie": MARK, "User-Agent": MARK, "X-Forwarded-For": "198.51.100.77", "tracestate": f"a={MARK}", "baggage": MARK}
    for path in (f"?userId={MARK}", f"/{MARK}?properties[a]={MARK}", f"/features/{MARK}", "/all"):
        proxy.get(path, traceparent=TRACED, **noise)
        proxy.post(path, {"context": {"userId": MARK}, "metrics": MARK}, traceparent=TRACED, **noise)
    ask(f"{proxy.url}?userId={MARK}", headers={"Authorization": MARK, "traceparent": MARK})
    server.ask("GET", f"/admin/projects/{MARK}/features")
    ask(f"{server.root}/api/frontend?userId={MARK}", headers={"Authorization": FRONTEND_SECRET, "traceparent": TRACED, **noise})
    ask(f"{server.root}/api/client/metrics", method="POST", body={"appName": MARK}, headers={"Authorization": BACKEND_SECRET})


def test_no_signal_has_data_of_a_caller_a_key_or_an_address() -> None:
    """Whatever a caller sends, nothing of it is in what the collector gets, nor a key, a token or the address of a caller.

    The only header of the variables goes to the collector, and to no log.
    """
    with collecting() as collector:
        env = variables(collector, OTEL_EXPORTER_OTLP_HEADERS="x-secret=collector-password", FLAGSVC_LOG_LEVEL="debug")
        with our_flag_server(**env) as server, our_proxy(f"{server.root}/api", UNLEASH_API_TOKEN=BACKEND_SECRET, **env) as proxy:
            use_every_place(server, proxy)
            assert [each.stop(signal.SIGTERM) for each in (proxy.program, server.program)] == [0, 0]
            printed = proxy.program.output() + server.program.output()
    taken = b"".join(collector.bodies)
    words = (MARK, KEY, BACKEND_SECRET, "secret-of", "127.0.0.1", "198.51.100.77", "collector-password", "/tmp/")
    assert [word for word in words if word.encode() in taken] == []
    assert len(collector.named(LIST, "POST /proxy", "GET /api/frontend")) >= 4
    assert all(headers["x-secret"] == "collector-password" for headers in collector.headers)
    assert "collector-password" not in printed


def test_a_line_of_the_log_names_the_trace(upstream: FakeUpstream) -> None:
    """A line of JSON has the ids of the span that it was written in; a line outside of a span has none."""
    with collecting() as collector:
        env = {"JSON_LOGGER": "true", "FLAGSVC_ACCESS_LOG": "true"}
        with our_proxy(upstream.url, **variables(collector, **env)) as proxy:
            proxy.get(traceparent=TRACED)
            proxy.get(traceparent=REFUSED)
            assert proxy.program.stop(signal.SIGTERM) == 0
            lines = [json.loads(line) for line in proxy.program.output().splitlines() if '"message": "request"' in line]
    [span] = collector.named(LIST)
    ids = [(line.get("trace_id"), line.get("span_id")) for line in lines if line["route"] == "/proxy"]
    assert ids == [(TRACE, span.id), (None, None)]


@pytest.mark.parametrize("trouble", ["away", "refusing", "silent"])
def test_a_collector_in_trouble_costs_only_what_is_dropped(upstream: FakeUpstream, trouble: str) -> None:
    """Callers are answered as fast as ever, what is dropped is counted, and the end of the process does not wait for long."""
    with collecting() as collector:
        collector.status = 400 if trouble == "refusing" else 200
        env = variables(collector, OTEL_BSP_MAX_QUEUE_SIZE="20", OTEL_BSP_MAX_EXPORT_BATCH_SIZE="10")
        if trouble == "away":
            env["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:9"
        if trouble == "silent":
            collector.may_answer.clear()
        with our_proxy(upstream.url, **env) as proxy:
            for _ in range(100):
                began = time.monotonic()
                assert proxy.get().status == 200
                assert time.monotonic() - began < 2
            page = f"{proxy.url}/internal-backstage/prometheus"
            dropped = 'flagsvc_telemetry_dropped_total{signal="spans"}'
            proxy.program.wait(lambda: float(ask(page).text.partition(dropped)[2].split()[0]) >= 60, "dropping", 30)
            began = time.monotonic()
            assert proxy.program.stop(signal.SIGTERM) == 0
            assert time.monotonic() - began < 8
        assert not collector.named(LIST)


@pytest.mark.parametrize("program", ["proxy", "server"])
def test_variables_that_are_not_understood_end_the_start(tmp_path: Path, program: str) -> None:
    """The exit code is 2, and the message names every variable and what was expected."""
    env = {"UNLEASH_URL": "http://127.0.0.1:9/api", "UNLEASH_API_TOKEN": "a", "UNLEASH_PROXY_CLIENT_KEYS": "b"}
    env |= {"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "otlp", "OTEL_TRACES_SAMPLER": "sometimes"}
    done = call(program, folder=tmp_path, env=env)
    assert done.code == 2
    assert "OTEL_TRACES_EXPORTER: expected `otlp` or `none`, got `console`" in done.err
    assert "OTEL_TRACES_SAMPLER: expected one of always_on, " in done.err


def test_a_program_without_the_variables_imports_nothing_of_opentelemetry(upstream: FakeUpstream) -> None:
    """No file of the package is in the memory of a proxy that runs without the variables, or with OTEL_SDK_DISABLED."""
    env = {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    for more in ({}, env):
        with our_proxy(upstream.url, PYTHONVERBOSE="1", **more) as proxy:
            assert proxy.get(traceparent=TRACED).status == 200
            assert "traceparent" not in {name for request in upstream.requests for name in request.headers}
            imported = proxy.program.output()
    assert "flagsvc.process.telemetry" in imported and "'opentelemetry" not in imported
