"""Impact metrics that real SDKs measure, on their way through our proxy (dialects: Impact metrics)."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support import processes
from support.fake_upstream import METRICS, FakeUpstream, Reply
from support.processes import ask
from support.scene import document, toggle
from support.waiting import wait_until

NODE = """
const { initialize } = require(process.argv[2]);
const [url, token] = process.argv.slice(3);
const client = initialize({
  url, appName: "some-service", customHeaders: { Authorization: token }, refreshInterval: 1000, metricsInterval: 300,
});
client.once("synchronized", () => {
  const impact = client.impactMetrics;
  impact.defineCounter("sales", "How much was sold.");
  impact.defineGauge("load", "How much is going on.");
  impact.defineHistogram("time", "How long it takes.", [1, 5]);
  impact.incrementCounter("sales", 3);
  impact.incrementCounter("sales", 2, { flagNames: ["on", "with-variant"], context: { userId: "7" } });
  impact.updateGauge("load", 0.5);
  impact.observeHistogram("time", 2.5);
  impact.observeHistogram("time", 7);
});
process.stdin.resume();  // the client's own timers do not keep node alive; the end of standard input ends it
"""
PYTHON = """
import sys
from UnleashClient import UnleashClient
url, token = sys.argv[1:]
client = UnleashClient(
    url=url, app_name="some-service", custom_headers={"Authorization": token}, refresh_interval=1, metrics_interval=1,
    cache_directory=".",
)
client.initialize_client()
impact = client.impact_metrics
impact.define_counter("sales", "How much was sold.")
impact.define_gauge("load", "How much is going on.")
impact.define_histogram("time", "How long it takes.", [1.0, 5.0])
impact.increment_counter("sales", 5)
impact.update_gauge("load", 0.5)
impact.observe_histogram("time", 2.5)
impact.observe_histogram("time", 7)
sys.stdin.read()  # until the end of the test
"""
PAGE = """
const { UnleashClient, InMemoryStorageProvider } = require(process.argv[2]);
const [url, clientKey] = process.argv.slice(3);
const client = new UnleashClient({
  url, clientKey, appName: "some-page", refreshInterval: 1, metricsInterval: 0.3, metricsIntervalInitial: 0.3,
  storageProvider: new InMemoryStorageProvider(),
});
for (const name of ["sales", "clicks"]) client.impactMetrics.defineCounter(name, "Some help.");
client.on("ready", () => {
  client.impactMetrics.incrementCounter("clicks", 7);
  client.impactMetrics.incrementCounter("sales", 5);
});
client.start();
"""
DOCUMENT = document(toggle("on"), toggle("with-variant", variants=[{"name": "green", "weight": 1000}]))
OWN = (("appName", "some-service"), ("environment", "default"))
"""The labels that SDKs for servers add. The token that they have here names no environment."""
HISTOGRAM = [{"le": 1, "count": 0}, {"le": 5, "count": 1}, {"le": "+Inf", "count": 2}]


@contextmanager
def proxy(upstream_url: str, *arguments: str, **env: str) -> Iterator[str]:
    """Run our proxy; yields the address before its paths."""
    with processes.our_proxy(
        upstream_url, *arguments, UNLEASH_FETCH_INTERVAL="1000", UNLEASH_METRICS_INTERVAL="200", **env
    ) as found:
        yield found.url.removesuffix("/proxy")


def reports(upstream: FakeUpstream) -> list[dict[str, Any]]:
    """Return the posts with impact metrics that the upstream has taken."""
    return [sent.json() for sent in upstream.received(METRICS, 202) if "impactMetrics" in sent.json()]


def samples(upstream: FakeUpstream, name: str) -> list[dict[str, Any]]:
    """Return the samples of one metric that the upstream has taken, with labels."""
    metrics = [metric for report in reports(upstream) for metric in report["impactMetrics"] if metric["name"] == name]
    return [sample for metric in metrics for sample in metric["samples"] if sample["labels"]]


def sums(upstream: FakeUpstream, name: str) -> Counter[tuple[tuple[str, str], ...]]:
    """Return the sums of a counter that the upstream has taken, by labels."""
    found: Counter[tuple[tuple[str, str], ...]] = Counter()
    for sample in samples(upstream, name):
        found[tuple(sorted(sample["labels"].items()))] += sample["value"]
    return found


def test_node_sdk(upstream: FakeUpstream) -> None:
    """What npm `unleash-client` measures comes under its name, once, also after posts that fail; it never counts a flag."""
    upstream.replies[METRICS] = Reply(503)
    with (
        proxy(upstream.url, "--workers", "2") as url,
        processes.node_script("service", NODE, "unleash-client", f"{url}/api", processes.SERVER_SIDE_TOKEN) as program,
    ):
        upstream.wait(lambda: upstream.received(METRICS, 503))
        upstream.replies.clear()
        upstream.wait(lambda: samples(upstream, "sales"))
        assert sums(upstream, "sales") == {OWN: 3, tuple(sorted([*OWN, ("on", "enabled"), ("with-variant", "green")])): 2}
        assert [sample["value"] for sample in samples(upstream, "load")] == [0.5]
        [histogram] = samples(upstream, "time")
        assert (histogram["count"], histogram["sum"], histogram["buckets"]) == (2, 9.5, HISTOGRAM)
        before = len(reports(upstream))
        upstream.wait(lambda: len(reports(upstream)) >= before + 2)  # the SDK goes on reporting zeros
        assert len(samples(upstream, "sales")) == 2
        assert {report["appName"] for report in reports(upstream)} == {"some-service"}
        assert "Warn" not in program.output()


def test_python_sdk(upstream: FakeUpstream, tmp_path: Path) -> None:
    """PyPI `UnleashClient`, which sends `"bucket": null` when it counted no flag: the real server refuses that."""
    command = [sys.executable, "-c", PYTHON]
    with (
        proxy(upstream.url) as url,
        processes.running("service", [*command, f"{url}/api", processes.SERVER_SIDE_TOKEN], env={}, folder=tmp_path),
    ):
        upstream.wait(lambda: samples(upstream, "time"))
        assert sums(upstream, "sales") == {OWN: 5}
        [histogram] = samples(upstream, "time")
        assert (histogram["count"], histogram["sum"], histogram["buckets"]) == (2, 9.5, HISTOGRAM)
        assert {report["appName"] for report in reports(upstream)} == {"some-service"}


def test_browser_sdk(upstream: FakeUpstream) -> None:
    """Of what npm `unleash-proxy-client` measures, only what the option names is sent, as the proxy's own."""
    with (
        proxy(upstream.url, FLAGSVC_IMPACT_METRICS="sales") as url,
        processes.node_script("page", PAGE, "unleash-proxy-client", f"{url}/api/frontend", processes.KEY),
    ):
        upstream.wait(lambda: sum(sums(upstream, "sales").values()) == 5)
        labels = {labels for labels, value in sums(upstream, "sales").items() if value}
        assert labels == {(("appName", "proxy-under-test"), ("environment", "development"))}
        assert samples(upstream, "clicks") == []
        assert {report["appName"] for report in reports(upstream)} == {"proxy-under-test"}


def test_the_real_server_takes_them(postgresql_url: str) -> None:
    """What an SDK measures behind our proxy is on the page of the real server as if there were no proxy."""
    with (
        processes.unleash_server(postgresql_url, UNLEASH_EXPERIMENTAL_IMPACT_METRICS="true") as server,
        proxy(server.url) as url,
        processes.node_script("service", NODE, "unleash-client", f"{url}/api", processes.SERVER_SIDE_TOKEN),
    ):
        page = server.url.removesuffix("/api") + "/internal-backstage/impact/metrics"
        own = 'unleash_appName="some-service",unleash_environment="default"'
        wanted = {
            f'unleash_counter_sales{{{own},unleash_origin="sdk"}} 3',
            f'unleash_counter_sales{{{own},unleash_on="disabled",unleash_with_variant="disabled",unleash_origin="sdk"}} 2',
            f'unleash_gauge_load{{{own},unleash_origin="sdk"}} 0.5',
            f'unleash_histogram_time_bucket{{{own},unleash_origin="sdk",le="5"}} 1',
            f'unleash_histogram_time_bucket{{{own},unleash_origin="sdk",le="+Inf"}} 2',
            f'unleash_histogram_time_sum{{{own},unleash_origin="sdk"}} 9.5',
        }
        wait_until(lambda: wanted <= set(ask(page).body.decode().splitlines()))
