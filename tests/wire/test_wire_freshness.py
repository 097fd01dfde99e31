"""The freshness of the configuration, as callers and operators see it (decision 0028)."""

from __future__ import annotations

import pytest

from support.wirekit import TOKEN, Opener

PROMETHEUS = "/proxy/internal-backstage/prometheus"
AGE = "x-config-age"


def test_no_age_unless_asked_for(opened: Opener) -> None:
    """The header is an option."""
    wire = opened()
    wire.holder.confirm(wire.clock)
    assert {"age", AGE}.isdisjoint(name for name, _ in wire.get("/proxy").fields)


def test_the_age_of_the_configuration(opened: Opener) -> None:
    """Every answer has it in whole seconds: a list, a 304, a refusal, a document.

    A configuration that was never checked has no age.
    """
    wire = opened(age_header=AGE)
    assert wire.get("/proxy").header(AGE) is None
    wire.holder.confirm(wire.clock)
    assert wire.get("/proxy").header(AGE) == "0"
    wire.pass_s(65.7)
    first = wire.get("/proxy")
    assert first.header(AGE) == "65"
    assert wire.get("/proxy", {"if-none-match": first.header("etag") or ""}).fields.count((AGE, "65")) == 1
    assert wire.get("/proxy", key="wrong").header(AGE) == "65"
    assert wire.post("/proxy", {"toggles": ["on"]}).header(AGE) == "65"
    assert wire.get("/proxy/client/features", key=TOKEN).header(AGE) == "65"
    wire.pass_s(1)
    assert wire.ask("HEAD", "/proxy").header(AGE) == "66"
    wire.holder.confirm(wire.clock)
    assert wire.get("/proxy").header(AGE) == "0"


def test_the_age_stands_beside_an_origin(opened: Opener) -> None:
    """Both depend on the request or the moment, and neither takes the place of the other."""
    wire = opened(age_header=AGE, cors_origin=("https://a.example",))
    wire.holder.confirm(wire.clock)
    answer = wire.get("/proxy", {"origin": "https://a.example"})
    assert (answer.header(AGE), answer.header("access-control-allow-origin")) == ("0", "https://a.example")
    assert wire.get("/proxy", {"origin": "https://b.example"}).header("access-control-allow-origin") is None


def test_an_answer_from_the_cache_has_the_age_of_now(opened: Opener) -> None:
    """A cached answer is sent with its present age."""
    wire = opened(age_header=AGE)
    wire.holder.confirm(wire.clock)
    for _ in range(4):
        assert wire.get("/proxy").header(AGE) is not None
        wire.pass_s(1)
    assert wire.service.sources.cache.hits > 0
    assert wire.get("/proxy").header(AGE) == "4"


@pytest.mark.parametrize(("seconds", "status"), [(30, 200), (31, 503)])
def test_readiness_fails_when_the_last_check_is_too_old(opened: Opener, seconds: float, status: int) -> None:
    """Only readiness fails: the last good configuration is served."""
    wire = opened(max_staleness=30)
    wire.holder.confirm(wire.clock)
    wire.pass_s(seconds)
    for path in ("/proxy/ready", "/readyz", "/internal-backstage/ready"):
        assert wire.get(path).status == status
    for path in ("/proxy", "/proxy/health", "/proxy/live", "/livez", PROMETHEUS):
        assert wire.get(path).status == 200
    wire.holder.confirm(wire.clock)
    assert wire.get("/readyz").status == 200


def test_freshness_in_the_metrics(opened: Opener) -> None:
    """Age, date, revision and state of the configuration, results of the checks, and the number of failures in a row."""
    wire = opened()
    wire.holder.confirm(wire.clock)
    wire.pass_s(2.5)
    lines = wire.get(PROMETHEUS).body.decode().splitlines()
    assert wire.holder.current is not None
    for line in (
        "flagsvc_config_age_seconds 2.5",
        "flagsvc_config_last_success_timestamp_seconds 1.75e+09",
        f'flagsvc_config_info{{revision="{wire.holder.current.revision}"}} 1.0',
        'flagsvc_config_state{state="refused"} 0.0',
        "flagsvc_upstream_consecutive_failures 0.0",
        'flagsvc_upstream_answers_total{event="refused"} 0.0',
    ):
        assert line in lines
