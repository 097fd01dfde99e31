"""The rows of the metrics endpoint."""

from __future__ import annotations

from flagsvc.proxy.api.metrics import COUNTED, KEPT, SERVED, SPECIFIED, age, exposition, readings, revision
from flagsvc.proxy.configuration import State
from support.serving import Serving, holder_of


def scrape() -> bytes:
    """Return the metrics of a service that was asked for nothing else."""
    return Serving().ask(b"GET", b"/proxy/internal-backstage/prometheus").body


def test_the_specifications_names() -> None:
    """Exactly three and the alias."""
    assert [row.name for row in SPECIFIED] == [
        "last_metrics_update_epoch_timestamp_ms",
        "last_metrics_fetch_epoch_timestamp_ms",
        "flagsvc_proxy_up",
        "unleash_proxy_up",
    ]


def test_the_age_before_the_first_check() -> None:
    """There is none: NaN, not the time since 1970."""
    assert b"\nflagsvc_config_age_seconds NaN\n" in scrape()


def test_rows_have_names_of_their_own() -> None:
    """No two rows have one name, and a counter's has no suffix yet."""
    names = [row.name for row in SPECIFIED + KEPT + SERVED]
    assert len(names) == len(set(names))
    assert [row.bare for row in SPECIFIED + KEPT + SERVED].count(True) == len(SPECIFIED)
    assert not [name for name in COUNTED if name.endswith("_total")]


def test_one_process_is_one_worker() -> None:
    """It answers for itself alone, and was never replaced."""
    assert b"\nflagsvc_workers 1.0\n" in scrape() and b"\nflagsvc_worker_restarts_total 0.0\n" in scrape()


def test_the_states_are_those_of_the_configuration() -> None:
    """One number for each, of which one is 1."""
    serving = Serving()
    serving.holder.state = State.STALE
    page = serving.ask(b"GET", b"/proxy/internal-backstage/prometheus").body.decode()
    shown = [line for line in page.splitlines() if line.startswith("flagsvc_config_state{")]
    assert shown == [f'flagsvc_config_state{{state="{state}"}} {float(state is State.STALE)}' for state in State]


def test_the_age_is_that_of_the_last_check() -> None:
    """The age follows the monotonic clock, so that a correction of the system clock does not change it."""
    serving = Serving()
    serving.holder.checked_at = serving.clock.monotonic() - 2.5
    assert age(serving.service.sources) == 2.5
    serving.holder.checked_at = None
    assert revision(serving.service.sources._replace(holder=holder_of(None))) == {}


def test_loops_that_failed() -> None:
    """Restarts are shown by loop, with their present number."""
    restarts = {"polling": 0}
    sources = Serving().service.sources._replace(loops=lambda: restarts)
    restarts["polling"] = 2
    (row,) = [row for row in KEPT if row.name == "flagsvc_loop_restarts"]
    assert row.read(sources) == {("polling",): 2.0}


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
    page = serving.ask(b"GET", b"/proxy/internal-backstage/prometheus").body
    assert b'flagsvc_usage_dropped_total{reason="full"} 5.0' in page
    assert b'flagsvc_usage_dropped_total{reason="malformed"} 3.0' in page
    assert b'flagsvc_usage_dropped_total{reason="refused"} 2.0' in page
