"""The rows of the metrics endpoint. With several environments: which rows have the label, and the exact text."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from flagsvc.http.counts import StatusCounts
from flagsvc.proxy.api.metrics import (
    KEPT,
    SERVED,
    SPECIFIED,
    Row,
    Sources,
    age,
    count_former,
    divided,
    exposition,
    present,
    readings,
    revision,
)
from flagsvc.proxy.configuration import State
from support.serving import Serving, holder_of


def test_the_age_before_the_first_check() -> None:
    """There is none: NaN, not the time since 1970."""
    assert "flagsvc_config_age_seconds NaN" in page(Serving().service.sources)


def test_the_states_are_those_of_the_configuration() -> None:
    """Each state has a number: 1 for the present state, else 0."""
    serving = Serving()
    serving.holder.state = State.STALE
    shown = samples(page(serving.service.sources), "flagsvc_config_state")
    assert shown == [f'flagsvc_config_state{{state="{state}"}} {float(state is State.STALE)}' for state in State]


def test_the_age_is_that_of_the_last_check() -> None:
    """The age follows the monotonic clock, so that a correction of the system clock does not change it."""
    serving = Serving()
    serving.holder.checked_at = serving.clock.monotonic() - 2.5
    assert age(serving.service.sources) == 2.5
    serving.holder.checked_at = None
    assert revision(serving.service.sources._replace(holder=holder_of(None))) == {}


def test_what_tells_which_toggles_there_are_is_for_operators_alone() -> None:
    """How many counts were left out as unknown to the configuration, and how many wait, is on no page that callers read."""
    serving = Serving()
    serving.usage.unknown, serving.usage.entries = 7, 3
    sources = serving.service.sources
    shown = exposition(sources, readings(sources))
    assert b"flagsvc_usage_unknown" not in shown and b"flagsvc_usage_waiting" not in shown
    private = sources._replace(private=True)
    shown = exposition(private, readings(private))
    assert b"\nflagsvc_usage_unknown_total 7.0\n" in shown and b"\nflagsvc_usage_waiting 3.0\n" in shown


def test_counts_left_out_have_a_reason() -> None:
    """Too many at once, malformed, or refused by the upstream for good."""
    serving = Serving()
    serving.usage.full, serving.usage.malformed, serving.usage.refused = 5, 3, 2
    assert samples(page(serving.service.sources), "flagsvc_usage_dropped_total") == [
        'flagsvc_usage_dropped_total{reason="full"} 5.0',
        'flagsvc_usage_dropped_total{reason="malformed"} 3.0',
        'flagsvc_usage_dropped_total{reason="refused"} 2.0',
    ]


ROWS = (*SPECIFIED, *KEPT, *SERVED)
PENDING = "flagsvc_environment_pending"
"""The row with a label of its own: the name of an environment."""
OF_PROCESS = {
    "flagsvc_proxy_up",
    "unleash_proxy_up",
    "flagsvc_build_info",
    "flagsvc_ready",
    "flagsvc_workers",
    "flagsvc_worker_restarts",
    "flagsvc_worker_hangs",
    "flagsvc_limits_reached",
    "flagsvc_http_connections_open",
    "flagsvc_http_sent_bytes",
    "flagsvc_event_loop_lag_seconds",
    "flagsvc_certificate_expiry_timestamp_seconds",
    "flagsvc_telemetry_dropped",
    "flagsvc_streams_open",
    "flagsvc_streams_opened",
    "flagsvc_streams_dropped",
    "flagsvc_streams_told",
    "flagsvc_streams_delay_seconds",
    "flagsvc_tokens_known",
    "flagsvc_tokens_waiting",
    "flagsvc_token_lookups",
    "python_gc_objects_collected",
    "python_gc_objects_uncollectable",
    "python_gc_collections",
}


def one(requests: int = 0, problems: int = 0) -> Sources:
    """Return the sources of one environment that has answered so many requests."""
    serving = Serving()
    serving.holder.problems = problems
    serving.holder.last_update_ms, serving.holder.last_fetch_ms = 1000.0 * problems, 2000.0 * problems
    serving.holder.state = "fresh"
    counts = StatusCounts("GET", "/proxy")
    for _ in range(requests):
        counts.add(200)
    return serving.service.sources._replace(status_counts=[counts], private=True, loops=lambda: {"polling": problems})


def several(parts: Mapping[str, Sources]) -> Sources:
    """Return the sources of a process with these environments. It has answered one request itself."""
    counts = StatusCounts("OPTIONS", "any")
    counts.add(204)
    return one()._replace(status_counts=[counts], loops=lambda: {"reload": 7}, environments=lambda: parts)


def page(sources: Sources) -> list[str]:
    """Return the lines of the metrics, without those of the operating system."""
    return exposition(sources, readings(sources), []).decode().splitlines()


def samples(lines: list[str], *names: str) -> list[str]:
    return [line for line in lines if re.split("[{ ]", line)[0] in names]


def test_counters_go_on_after_a_replacement() -> None:
    """The counters of all environments of a name are added. Present values are of the present one alone; requests count on."""
    first = count_former(one(requests=5, problems=3), {})
    former = {"a": count_former(one(problems=4), first)}
    of = several({"a": one(requests=5, problems=1), "b": one(problems=2)})._replace(former=former)
    assert samples(page(of), "flagsvc_loop_restarts_total", "flagsvc_config_problems", "flagsvc_http_requests_total") == [
        'flagsvc_config_problems{environment="a"} 1.0',
        'flagsvc_config_problems{environment="b"} 2.0',
        'flagsvc_loop_restarts_total{environment="a",loop="polling"} 8.0',
        'flagsvc_loop_restarts_total{environment="b",loop="polling"} 2.0',
        'flagsvc_loop_restarts_total{environment="",loop="reload"} 7.0',
        'flagsvc_http_requests_total{environment="a",method="GET",route="/proxy",status="200"} 5.0',
        'flagsvc_http_requests_total{environment="",method="OPTIONS",route="any",status="204"} 1.0',
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_label_of_a_row(row: Row) -> None:
    """Few rows are of the process alone. Every other row gets the name of the environment as its first label."""
    [found] = divided([row], several({}))
    assert found.labels == (row.labels if row.name in OF_PROCESS else ("environment", *row.labels))
    assert found._replace(labels=row.labels, read=row.read) == row
    assert divided([row], one()) == [row]


def test_the_exact_text() -> None:
    """Each environment has its sample; the names of the specification keep their form, and get the label."""
    lines = page(several({"a": one(3, 1), "prod-eu": one(0, 2)._replace(is_pending=lambda: True)}))
    assert lines[:14] == [
        "# HELP last_metrics_update_epoch_timestamp_ms Epoch milliseconds of the last feature update that was received.",
        "# TYPE last_metrics_update_epoch_timestamp_ms gauge",
        'last_metrics_update_epoch_timestamp_ms{environment="a"} 1000',
        'last_metrics_update_epoch_timestamp_ms{environment="prod-eu"} 2000',
        "# HELP last_metrics_fetch_epoch_timestamp_ms Epoch milliseconds of the last successful check for updates.",
        "# TYPE last_metrics_fetch_epoch_timestamp_ms gauge",
        'last_metrics_fetch_epoch_timestamp_ms{environment="a"} 2000',
        'last_metrics_fetch_epoch_timestamp_ms{environment="prod-eu"} 4000',
        "# HELP flagsvc_proxy_up 1 while the proxy runs.",
        "# TYPE flagsvc_proxy_up counter",
        "flagsvc_proxy_up 1",
        "# HELP unleash_proxy_up 1 while the proxy runs, under the reference's name.",
        "# TYPE unleash_proxy_up counter",
        "unleash_proxy_up 1",
    ]
    names = ("flagsvc_config_problems", "flagsvc_loop_restarts_total", "flagsvc_http_requests_total", "flagsvc_workers")
    assert samples(lines, *names, PENDING) == [
        'flagsvc_config_problems{environment="a"} 1.0',
        'flagsvc_config_problems{environment="prod-eu"} 2.0',
        'flagsvc_environment_pending{environment="a"} 0.0',
        'flagsvc_environment_pending{environment="prod-eu"} 1.0',
        'flagsvc_loop_restarts_total{environment="a",loop="polling"} 1.0',
        'flagsvc_loop_restarts_total{environment="prod-eu",loop="polling"} 2.0',
        'flagsvc_loop_restarts_total{environment="",loop="reload"} 7.0',
        "flagsvc_workers 1.0",
        'flagsvc_http_requests_total{environment="a",method="GET",route="/proxy",status="200"} 3.0',
        'flagsvc_http_requests_total{environment="",method="OPTIONS",route="any",status="204"} 1.0',
    ]


def test_the_label_is_all_that_differs() -> None:
    """Without the label, the page of a process with an environment is that of a process with this one alone."""
    single = one(3, 2)
    lines = page(single._replace(environments=lambda: {"a": single}))
    assert 'environment="' not in "\n".join(page(single))
    own = [line for line in lines if 'environment=""' not in line]
    plain = [re.sub(r'\{environment="a"\}|(?<=\{)environment="a",', "", line) for line in own]
    assert comparable(plain) == comparable(page(single))


def comparable(lines: list[str]) -> list[str]:
    """Return the lines without that row, and without the numbers of the garbage collector, which work changes."""
    return [line for line in lines if not line.startswith("python_gc") and PENDING not in line]


def test_readings_of_environments_that_are_gone() -> None:
    """They are left out of the sums over all workers; those of the process and of a single environment never are."""
    requests, size, gone = "flagsvc_http_requests", "flagsvc_answer_cache_bytes", "python_gc_collections"
    found = {(requests, "a", "/proxy", "GET", "200"): 1.0, (requests, "", "any", "OPTIONS", "204"): 2.0, (gone, "2"): 3.0}
    removed = {(requests, "b", "/proxy", "GET", "200"): 4.0, (size, "b"): 5.0}
    assert present(found | removed, several({"a": one()})) == found
    alone = {(requests, "/proxy", "GET", "200"): 1.0, (size,): 2.0}
    assert present(alone, one()) == alone
