"""What the variables of OpenTelemetry ask for, and the thread that exports: what is dropped, and how it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from flagsvc.core import extras
from flagsvc.core.errors import ConfigurationError, MissingExtraError
from flagsvc.core.tracing import METRICS, SPANS, Span
from flagsvc.http.metrics import Measured
from flagsvc.process import telemetry
from flagsvc.process.telemetry import MetricsReader, Telemetry, TelemetrySettings, read_settings
from flagsvc.testing import RecordingLog

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
HTTP = "http/protobuf"
BOTH = {SPANS: HTTP, METRICS: HTTP}
SETTINGS = TelemetrySettings(BOTH, True, 1.0, 60.0, 60.0, room=10, batch=2)
ROWS = [Measured("a", "gauge", "A.", (), False, {(): 1.0})]


class FakeSenders:
    """Senders that record what they send. They answer with `takes`, or raise it, when `may_answer` is set."""

    def __init__(self, takes: bool | Exception = True) -> None:
        self.takes = takes
        self.sent: list[object] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.is_closed = False

    def send_spans(self, spans: Sequence[Span]) -> bool:
        return self.send([span.name for span in spans])

    def send_metrics(self, rows: Sequence[Measured]) -> bool:
        return self.send("metrics")

    def send(self, what: object) -> bool:
        self.may_answer.wait(30)
        self.sent.append(what)
        if isinstance(self.takes, Exception):
            raise self.takes
        return self.takes

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    ("variables", "protocols"),
    [
        ({}, None),
        ({"OTEL_SERVICE_NAME": "a", "OTEL_TRACES_SAMPLER": "sometimes"}, None),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "TRUE"}, None),
        (ENDPOINT, BOTH),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"}, {METRICS: HTTP}),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h/x"}, {SPANS: HTTP}),
        ({"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": " "}, {METRICS: HTTP}),
    ],
)
def test_what_is_exported(variables: Mapping[str, str], protocols: Mapping[str, str] | None) -> None:
    """A signal is exported if a collector or its exporter is given, and the SDK is not disabled."""
    settings = read_settings(variables)
    assert (None if settings is None else settings.protocols) == protocols


def test_every_problem_is_told_at_once() -> None:
    """Each line names a variable, what was expected, and what came."""
    given = {
        "OTEL_TRACES_EXPORTER": "console",
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/json",
        "OTEL_TRACES_SAMPLER": "traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "nan",
        "OTEL_BSP_MAX_QUEUE_SIZE": "0",
    }
    with pytest.raises(ConfigurationError) as caught:
        read_settings(ENDPOINT | given)
    assert caught.value.problems == (
        "OTEL_TRACES_EXPORTER: expected `otlp` or `none`, got `console`",
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: expected `http/protobuf` or `grpc`, got `http/json`",
        "OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1, got `nan`",
        "OTEL_BSP_MAX_QUEUE_SIZE: expected a whole number from 1 on, got `0`",
    )


def test_grpc_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the package is not installed, the message names it."""
    monkeypatch.setattr(telemetry, "is_installed", lambda module: "grpc" not in module)
    with pytest.raises(ConfigurationError, match="opentelemetry-exporter-otlp-proto-grpc"):
        read_settings(ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})


def test_what_is_asked_for_needs_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the extra is not installed, the message has the command that installs it. Without the variables nothing is wrong."""
    monkeypatch.setitem(extras.EXTRAS, "otel", ("opentelemetry.not_there", "not_there.at_all"))
    assert read_settings({}) is None
    with pytest.raises(MissingExtraError, match=r"\[otel\]"):
        read_settings(ENDPOINT)


def work(on: Telemetry, *names: str) -> None:
    """Begin and end spans."""
    for name in names:
        span = on.spans.begin(name)
        assert span is not None
        span.end()


async def test_the_end_exports_what_waits() -> None:
    """Spans go in batches, and the last reading of the metrics goes, too."""
    senders = FakeSenders()
    on = Telemetry(replace(SETTINGS, batch=4), senders, RecordingLog())

    async def gather() -> list[Measured]:
        return ROWS

    async with on, MetricsReader(on, gather):
        work(on, "a", "b", "c")
        assert senders.sent == []
    assert sorted(senders.sent, key=str) == [["a", "b", "c"], "metrics"] and senders.is_closed
    assert on.spans.dropped == {SPANS: 0, METRICS: 0}


@pytest.mark.parametrize("trouble", [False, RuntimeError("secret")])
def test_what_a_collector_does_not_take_is_dropped_and_counted(trouble: bool | Exception) -> None:
    """The log tells once that the collector is away, and once that it is back. It does not repeat the text of an exception."""
    senders, log = FakeSenders(trouble), RecordingLog()
    on = Telemetry(SETTINGS, senders, log)
    on.offer(ROWS)
    on.offer(ROWS)
    work(on, "a", "b", "c")
    on._export()
    assert on.spans.dropped == {SPANS: 3, METRICS: 2}
    senders.takes = True
    work(on, "d")
    on._export()
    assert on.spans.dropped == {SPANS: 3, METRICS: 2}
    assert [line.event.partition("OpenTelemetry ")[2] for line in log.lines] == [
        "does not take telemetry, which is dropped",
        "takes telemetry again",
    ]
    assert "secret" not in str(log.lines)


async def test_a_silent_collector_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end waits for at most FLUSH_S, and gives up what is being sent."""
    monkeypatch.setattr(telemetry, "FLUSH_S", 0.1)
    senders = FakeSenders()
    senders.may_answer.clear()
    on = Telemetry(SETTINGS, senders, RecordingLog())
    async with on:
        work(on, "a", "b")
        began = time.monotonic()
    assert time.monotonic() - began < 20 and senders.is_closed and senders.sent == []
    senders.may_answer.set()
    on._thread.join(20)
    assert senders.sent == [["a", "b"]]
