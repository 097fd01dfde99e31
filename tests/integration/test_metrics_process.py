"""The metrics of both programs as processes: every row has a number, promtool finds no fault, and workers add up."""

from __future__ import annotations

import http.client
import os
import signal
import ssl
import subprocess
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open_metrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from flagsvc.http.metrics import CERTIFICATE, DURATIONS, HISTOGRAM, OPEN_METRICS, MetricRow
from flagsvc.proxy.api.metrics import KEPT, SERVED, SPECIFIED
from flagsvc.server.api.operations import OWN
from support import needs
from support.fake_upstream import FakeUpstream
from support.flagservers import our_flag_server
from support.pki import HOST, Authority, written
from support.processes import KEY, answers, ask, flagsvc, free_port, proxy_environment, running
from support.worker_pools import samples, worker_pool, workers

OPEN = {"Accept": "application/openmetrics-text; version=1.0.0"}
AUTHORITY = Authority()
DROPPED = "flagsvc_telemetry_dropped"
"""The row of programs that export to OpenTelemetry."""
NOT_HERE = {"flagsvc_tokens_known", "flagsvc_tokens_waiting", "flagsvc_token_lookups", "flagsvc_storage_errors", DROPPED}
"""Also rows of proxies that look up tokens or store on a server."""
CONTRACT = {row.name for row in SPECIFIED}
ROWS = (*SPECIFIED, *KEPT, *SERVED)


def families(text: str) -> dict[str, Metric]:
    """Return the metrics of a text by name, in either form."""
    return {each.name: each for each in (read_open_metrics if text.endswith("# EOF\n") else read_text)(text)}


def without_number(rows: Iterable[MetricRow[Any]], text: str) -> set[str]:
    """Return the names of rows that have no number in a text."""
    found = families(text)
    return {row.name for row in rows if row.name not in found or not found[row.name].samples}


def complaints(text: str) -> set[str]:
    """Return the names that promtool complains about."""
    done = subprocess.run(
        [needs.program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode in (0, 3), done.stderr  # 3: it reads the text, and does not like a name
    return {line.split()[0] for line in (done.stdout + done.stderr).splitlines()}


def value(text: str, name: str) -> float:
    """Return the only number of a metric."""
    [sample] = families(text)[name].samples
    return float(sample.value)


def check_histograms(text: str) -> None:
    """Check that the buckets of each histogram grow with their bounds, and that the last one is the count."""
    found = families(text)
    histograms = [each for each in found.values() if each.type == HISTOGRAM]
    assert histograms
    for each in histograms:
        lines: dict[tuple[tuple[str, str], ...], list[float]] = {}
        for sample in each.samples:
            labels = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
            if sample.name.endswith("_bucket"):
                lines.setdefault(labels, []).append(sample.value)
            elif sample.name.endswith("_count"):
                assert lines[labels] == sorted(lines[labels]) and lines[labels][-1] == sample.value, each.name
            else:
                assert sample.value >= 0, each.name


@pytest.mark.parametrize("number", [1, 2], ids=["alone", "workers"])
def test_the_metrics_of_a_proxy(upstream: FakeUpstream, tmp_path: Path, number: int) -> None:
    """After some requests every row has a number, in both forms. promtool complains about no name but those of the contract.

    No label has a text of a caller.
    """
    port, admin = free_port(), free_port()
    pair = written(tmp_path, "pair.pem", AUTHORITY.issue().both)
    env = {"FLAGSVC_WORKERS": str(number), "FLAGSVC_TLS_CERT": pair, "FLAGSVC_ADMIN_ADDRESS": f"{HOST}:{admin}"}
    command, page = [*flagsvc(), "proxy"], f"http://{HOST}:{admin}/metrics"
    with (
        running("proxy", command, env=proxy_environment(upstream.url, port, env), folder=tmp_path) as program,
        ExitStack() as stack,
    ):
        program.wait(lambda: "flagsvc ready" in program.output(), "ready")
        for _ in range(8):
            line = http.client.HTTPSConnection(HOST, port, context=AUTHORITY.client(), timeout=20)
            stack.enter_context(closing(line))
            line.connect()
            ends = str((line.sock.getpeercert() or {})["notAfter"])
            for path in ("/proxy?userId=secret-user", "/proxy/secret-path"):
                line.request("GET", path, headers={"Authorization": KEY})
                line.getresponse().read()
        program.wait(lambda: without_number(ROWS, ask(page).text) <= NOT_HERE, "counting all")
        text, opened = ask(page).text, ask(page, headers=OPEN)
        stack.close()
        program.wait(lambda: value(ask(page).text, "flagsvc_http_connections_open") == 0, "without connections")
    assert opened.headers["content-type"] == OPEN_METRICS
    assert without_number(ROWS, opened.text) <= NOT_HERE and "secret" not in text
    assert value(text, "flagsvc_http_connections_open") == 8 and value(text, "flagsvc_http_sent_bytes") > 16 * 100
    assert value(text, CERTIFICATE) == ssl.cert_time_to_seconds(ends)
    assert f'{DURATIONS}_count{{method="GET",route="/proxy"}} 8.0' in text
    for each in (text, opened.text):
        check_histograms(each)
    assert complaints(text) <= CONTRACT


def test_durations_of_workers_that_have_ended(upstream: FakeUpstream) -> None:
    """They stay in the sums when other workers take their places."""
    counted = f'{DURATIONS}_count{{method="POST",route="/proxy"}} 20.0'
    with worker_pool(upstream) as proxy:
        for _ in range(20):
            assert proxy.post("", {"toggles": ["first"]}).status == 200
        proxy.program.wait(lambda: counted in proxy.get("/internal-backstage/prometheus").text, "counting all")
        first = workers(proxy)
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        proxy.program.wait(
            lambda: samples(proxy).get("flagsvc_worker_restarts_total") == 2 if answers(f"{proxy.url}/health") else False, "whole"
        )
        assert counted in proxy.get("/internal-backstage/prometheus").text


def test_the_metrics_of_a_flag_server(tmp_path: Path) -> None:
    """After some requests every row has a number, in both forms. promtool has no complaint. No label has a text of a caller."""
    with our_flag_server(folder=tmp_path) as server, closing(http.client.HTTPConnection(urlsplit(server.root).netloc)) as line:
        line.request("GET", "/secret-path")  # the connection stays open, so the clock of the connections ticks
        line.getresponse().read()
        page = f"{server.root}/metrics"
        server.program.wait(lambda: without_number(OWN, ask(page).text) <= {CERTIFICATE, DROPPED}, "counting all")
        text, opened = ask(page).text, ask(page, headers=OPEN).text
    assert without_number(OWN, opened) == {CERTIFICATE, DROPPED}
    assert "secret" not in text and complaints(text) == set()
    for each in (text, opened):
        check_histograms(each)
