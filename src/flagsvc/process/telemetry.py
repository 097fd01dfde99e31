"""OpenTelemetry, by the standard OTEL_* variables: what they ask for, and the thread that exports it (decision 0037).

Nothing is exported unless the variables name a collector or an exporter. Only `otlp` imports OpenTelemetry. A thread sends batches
of spans, and readings of the metrics. What the collector does not take is dropped and counted.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Protocol, Self

from flagsvc.core.errors import ConfigurationError
from flagsvc.core.extras import is_installed, require
from flagsvc.core.log import Logger, build_logger, describe_error
from flagsvc.core.tracing import METRICS, SPANS, Span, Tracer
from flagsvc.http.contract import Contract
from flagsvc.http.metrics import Measured
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.server import ServerOptions

PROXY, FLAG_SERVER = "flagsvc-proxy", "flagsvc-server"
"""The names of the services, unless the variables give another one."""
SIGNALS = {SPANS: "TRACES", METRICS: "METRICS"}
"""Signal → its word in the names of variables."""
GRPC = "grpc"
PROTOCOLS = {"http/protobuf": "opentelemetry.exporter.otlp.proto.http", GRPC: "opentelemetry.exporter.otlp.proto.grpc"}
"""Protocol → the package that speaks it."""
GRPC_PACKAGE = "opentelemetry-exporter-otlp-proto-grpc"
SAMPLERS = {
    "always_on": (False, 1.0),
    "always_off": (False, 0.0),
    "traceidratio": (False, None),
    "parentbased_always_on": (True, 1.0),
    "parentbased_always_off": (True, 0.0),
    "parentbased_traceidratio": (True, None),
}
"""Sampler → whether a caller's decision counts, and the share of other work that is traced; None for OTEL_TRACES_SAMPLER_ARG."""
DEFAULT_SAMPLER = "parentbased_always_on"
NUMBERS = {
    "OTEL_METRIC_EXPORT_INTERVAL": 60_000,
    "OTEL_BSP_SCHEDULE_DELAY": 5_000,
    "OTEL_BSP_MAX_QUEUE_SIZE": 2_048,
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": 512,
}
"""Variable → its default. The first two are milliseconds, the others are numbers of spans."""
FLUSH_S = 2.0
"""The most seconds that the end of a process waits for the collector."""
FLUSH_STEP_S = 0.02


@dataclass(frozen=True)
class TelemetrySettings:
    """What the variables ask for: the protocol of each signal that is exported, and how requests are sampled.

    `interval_s` is the time between two readings of the metrics, and `delay_s` the most time that a span waits.
    """

    protocols: Mapping[str, str]
    follows_parent: bool
    ratio: float
    interval_s: float
    delay_s: float
    room: int
    batch: int


def read_settings(variables: Mapping[str, str]) -> TelemetrySettings | None:
    """Return what the variables ask for; None for nothing.

    Raises ConfigurationError for values that are not understood, and MissingExtraError if the extra is not installed.
    """
    given = {name: value.strip() for name, value in variables.items() if name.startswith("OTEL_") and value.strip()}
    if given.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    problems: list[str] = []
    protocols = {
        signal: read_protocol(given, word, problems) for signal, word in SIGNALS.items() if is_wanted(given, word, problems)
    }
    if not protocols and not problems:
        return None
    follows_parent, ratio = read_sampler(given, problems)
    interval, delay, room, batch = (read_number(given, name, default, problems) for name, default in NUMBERS.items())
    if problems:
        raise ConfigurationError(problems)
    require("otel")
    return TelemetrySettings(protocols, follows_parent, ratio, interval / 1000, delay / 1000, room, min(batch, room))


def is_wanted(given: Mapping[str, str], word: str, problems: list[str]) -> bool:
    """Return whether a signal is exported: its exporter is `otlp`, or is not given while a collector is."""
    name = f"OTEL_{word}_EXPORTER"
    exporter = given.get(name)
    if exporter is None:
        return f"OTEL_EXPORTER_OTLP_{word}_ENDPOINT" in given or "OTEL_EXPORTER_OTLP_ENDPOINT" in given
    if exporter not in ("otlp", "none"):
        problems.append(f"{name}: expected `otlp` or `none`, got `{exporter}`")
    return exporter == "otlp"


def read_protocol(given: Mapping[str, str], word: str, problems: list[str]) -> str:
    """Return the protocol of a signal."""
    names = (f"OTEL_EXPORTER_OTLP_{word}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    name = next((each for each in names if each in given), names[1])
    protocol = given.get(name, "http/protobuf")
    if protocol not in PROTOCOLS:
        problems.append(f"{name}: expected `http/protobuf` or `grpc`, got `{protocol}`")
    elif protocol == GRPC and not is_installed(PROTOCOLS[GRPC]):
        problems.append(f"{name}: `grpc` needs the package `{GRPC_PACKAGE}`, which is not installed")
    return protocol


def read_sampler(given: Mapping[str, str], problems: list[str]) -> tuple[bool, float]:
    """Return whether a caller's decision counts, and the share of other work that is traced."""
    sampler = given.get("OTEL_TRACES_SAMPLER", DEFAULT_SAMPLER)
    if sampler not in SAMPLERS:
        problems.append(f"OTEL_TRACES_SAMPLER: expected one of {', '.join(SAMPLERS)}, got `{sampler}`")
        return False, 0.0
    follows_parent, ratio = SAMPLERS[sampler]
    if ratio is not None:
        return follows_parent, ratio
    text = given.get("OTEL_TRACES_SAMPLER_ARG", "1")
    with suppress(ValueError):
        if 0 <= float(text) <= 1:
            return follows_parent, float(text)
    problems.append(f"OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1, got `{text}`")
    return follows_parent, 0.0


def read_number(given: Mapping[str, str], name: str, default: int, problems: list[str]) -> int:
    """Return a positive whole number."""
    text = given.get(name, str(default))
    if text.isdecimal() and int(text) > 0:
        return int(text)
    problems.append(f"{name}: expected a whole number from 1 on, got `{text}`")
    return default


class Senders(Protocol):
    """Sends to a collector. Each method waits for the answer, and returns whether the collector has taken everything."""

    def send_spans(self, spans: Sequence[Span]) -> bool:
        """Send spans."""

    def send_metrics(self, rows: Sequence[Measured]) -> bool:
        """Send one reading of the metrics."""

    def close(self) -> None:
        """Give up what is being sent again, and send nothing more."""


class Telemetry:
    """Exports from one process while the context is entered. `tracer` is None if no spans are exported.

    `spans` has the spans that wait, and counts what is dropped of both signals.
    """

    def __init__(self, settings: TelemetrySettings, senders: Senders, log: Logger) -> None:
        self.settings = settings
        self._senders = senders
        self.log = log
        self._wake = threading.Event()
        self._is_closing = False
        self._is_away = False
        self._reading: list[Measured] | None = None
        self._reading_lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="flagsvc telemetry", daemon=True)
        self.spans = Tracer(
            Random(),
            settings.ratio if SPANS in settings.protocols else 0.0,
            follows_parent=settings.follows_parent,
            room=settings.room,
            batch=settings.batch,
            on_batch=self._wake.set,
        )
        self.tracer = self.spans if SPANS in settings.protocols else None

    def attach(self, contract: Contract) -> None:
        """Trace the requests that a contract answers, and count what is dropped in its metrics."""
        contract.traffic.tracer = self.tracer
        contract.traffic.dropped = self.spans.dropped

    def offer(self, rows: list[Measured]) -> None:
        """Export a reading of the metrics. While the reading before waits, the older one is dropped."""
        with self._reading_lock:
            before, self._reading = self._reading, rows
        if before is not None:
            self.spans.drop(METRICS, 1)
        self._wake.set()

    async def __aenter__(self) -> Self:
        self._thread.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Export what waits, for at most FLUSH_S."""
        self._is_closing = True
        self._wake.set()
        end = time.monotonic() + FLUSH_S
        while self._thread.is_alive() and time.monotonic() < end:  # noqa: ASYNC110 - the thread knows no loop
            await asyncio.sleep(FLUSH_STEP_S)
        self._senders.close()

    def _run(self) -> None:
        while not self._is_closing:
            self._wake.wait(self.settings.delay_s)
            self._wake.clear()
            self._export()
        self._export()

    def _export(self) -> None:
        """Send all that waits."""
        with self._reading_lock:
            reading, self._reading = self._reading, None
        if reading is not None and not self._is_taken(lambda: self._senders.send_metrics(reading)):
            self.spans.drop(METRICS, 1)
        while spans := self.spans.take():
            if not self._is_taken(lambda spans=spans: self._senders.send_spans(spans)):  # type: ignore[misc]
                self.spans.drop(SPANS, len(spans))

    def _is_taken(self, send: Callable[[], bool]) -> bool:
        """Return whether the collector takes what is sent. The log tells when that changes."""
        try:
            is_taken, error = send(), ""
        except Exception as failure:  # telemetry must not end the thread
            is_taken, error = False, describe_error(failure)
        if is_taken is self._is_away:
            self._is_away = not is_taken
            if is_taken:
                self.log.warn("the collector of OpenTelemetry takes telemetry again")
            else:
                more = {"error": error} if error else {}
                self.log.warn("the collector of OpenTelemetry does not take telemetry, which is dropped", **more)
        return is_taken


Gather = Callable[[], Awaitable[list[Measured]]]
"""Returns the present metrics of all processes."""


class MetricsReader:
    """Reads the metrics at intervals while the context is entered, and once at its end, and offers them for the export."""

    def __init__(self, telemetry: Telemetry, gather: Gather) -> None:
        self._telemetry = telemetry
        self._gather = gather
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if METRICS in self._telemetry.settings.protocols:
            self._task = asyncio.create_task(self._run(), name="flagsvc metrics reader")
        return self

    async def __aexit__(self, *raised: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            await self._read()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._telemetry.settings.interval_s)
            await self._read()

    async def _read(self) -> None:
        try:
            self._telemetry.offer(await self._gather())
        except Exception as error:  # the next reading may succeed
            self._telemetry.log.warn("the metrics could not be read for OpenTelemetry", error=describe_error(error))


def make_telemetry(options: ProxyOptions | ServerOptions, service: str) -> Telemetry | None:
    """Return what exports from this process as its variables ask for, under the name of a service; None for nothing.

    Raises ConfigurationError for values that are not understood, and MissingExtraError if the extra is not installed.
    """
    settings = read_settings(os.environ)
    if settings is None:
        return None
    from flagsvc.process.otlp import OtlpSenders  # imports OpenTelemetry

    packages = {signal: PROTOCOLS[protocol] for signal, protocol in settings.protocols.items()}
    log = build_logger(level=options.log_level, as_json=options.use_json_logger)
    return Telemetry(settings, OtlpSenders(packages, service), log)
