"""`flagsvc proxy --workers N`: the parent of N processes that answer on one port (behaviour: Further options).

The parent polls, stores, registers and sends usage metrics for all workers. It holds the listening sockets and takes no connection.
It prints the same lines as a single process, and shuts down in the same order: readiness fails in all workers, which answer for
a while longer. When all have finished open requests and sent their counts, the parent sends the last usage metrics.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, count
from random import Random
from types import FrameType

from prometheus_client import Metric, ProcessCollector

from flagsvc.core.clock import Clock
from flagsvc.core.notices import Notice, make_notice_printer, print_notices
from flagsvc.engine.compile import Compiler
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.contract import Contract
from flagsvc.http.metrics import Measured, Readings
from flagsvc.process import process
from flagsvc.process.admin_address import AdminAddressServer, listening_notices, make_admin_address_server
from flagsvc.process.listen import describe_scope, listen_in_groups, listen_url
from flagsvc.process.reload import ConfigurationFiles, Reloader
from flagsvc.process.service_manager import ServiceManager
from flagsvc.process.shutdown import ShutdownGrace
from flagsvc.process.telemetry import PROXY, MetricsReader, Telemetry, make_telemetry
from flagsvc.process.tls import make_tls
from flagsvc.process.worker_start import portable_options, start_worker
from flagsvc.proxy.api.metrics import exposition, gather, present, readings
from flagsvc.proxy.configuration import Holder, Preparer
from flagsvc.proxy.configuration.holder import ConfigurationDocument
from flagsvc.proxy.configuration.lifecycle import Event
from flagsvc.proxy.configuration.prepare import FeatureFilter, PreparedDocument
from flagsvc.proxy.generations.admission import TokenDirectory
from flagsvc.proxy.generations.environment import Environment, make_shown_counters
from flagsvc.proxy.generations.feeds import UpstreamSync, make_feature_filter
from flagsvc.proxy.generations.generation import Generations
from flagsvc.proxy.generations.lookups import TokenLookups
from flagsvc.proxy.generations.setup import ProxySetup, count_loop_restarts, make_setup, next_setup
from flagsvc.proxy.tokens import Admission
from flagsvc.proxy.tokens.book import digest_of
from flagsvc.proxy.workers.distribution import DocumentDistribution
from flagsvc.proxy.workers.messages import EnvironmentOptions
from flagsvc.proxy.workers.pool import WorkerPool
from flagsvc.settings.options import ProxyOptions


class SharedHolder(Holder):
    """A holder that passes replacements and confirmations on to all workers once it has a `distribution`."""

    def __init__(self) -> None:
        super().__init__()
        self.distribution: DocumentDistribution | None = None

    def replace(self, snapshot: Snapshot, document: ConfigurationDocument, problems: int, odd: int = 0) -> None:
        """Replace the served configuration, here and in all workers."""
        super().replace(snapshot, document, problems, odd)
        if self.distribution is not None:
            self.distribution.switch(document)

    def record_check(self, event: Event, failures: int) -> None:
        """Record the result of a check. Workers hear of a failed first check, so that their readiness knows it."""
        super().record_check(event, failures)
        if self.distribution is not None and self.current is None and failures == 1:
            self.distribution.report_failure()

    def confirm(self, clock: Clock) -> None:
        """Record that the configuration is current, here and in all workers."""
        super().confirm(clock)
        if self.distribution is not None and self.checked_at is not None:
            self.distribution.confirm(self.checked_at)


class SharedPreparer(Preparer):
    """A preparer that waits until the workers have prepared the document as well."""

    def __init__(self, compiler: Compiler, wanted: FeatureFilter | None, distribution: DocumentDistribution) -> None:
        super().__init__(compiler, wanted)
        self._rollout = distribution

    async def __call__(self, body: bytes, previous: Snapshot | None) -> PreparedDocument:
        """Return the configuration that can replace `previous`. Raises DocumentError, and sends the document to no worker then."""
        prepared = await super().__call__(body, previous)
        await self._rollout.prepare(prepared.document, prepared.raw)
        return prepared


CPU = "process_cpu_seconds"
PARENT_ONLY = frozenset({"process_start_time_seconds"})
"""Metrics of the parent that are not summed: the proxy started when the parent did."""


def collect_process_metrics(workers: Sequence[int]) -> Iterable[Metric]:
    """Return the summed metrics of this process and of the workers with these ids, with the CPU time of ended workers.

    Memory that processes share is counted for each of them.
    """
    summed: dict[str, Metric] = {}
    ended = -1.0
    while ended != (now := ended_children_cpu()):  # a worker that ends meanwhile would be counted twice
        ended = now
        summed = {metric.name: metric for metric in measure_process("self")}
        for metric in (metric for worker in workers for metric in measure_process(worker)):
            if metric.name in summed and metric.name not in PARENT_ONLY:
                add_value(summed[metric.name], metric.samples[0].value)
    if CPU in summed:
        add_value(summed[CPU], ended)
    return summed.values()


def ended_children_cpu() -> float:
    """Return the CPU seconds of all child processes that have ended and were waited for."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def measure_process(process: int | str) -> Iterable[Metric]:
    """Return the metrics of one process; none if it has ended or the system has no /proc."""
    return ProcessCollector(pid=partial(str, process), registry=None).collect()


def add_value(metric: Metric, value: float) -> None:
    metric.samples[0] = metric.samples[0]._replace(value=metric.samples[0].value + value)


TICK_S = 0.1
"""Seconds between two checks whether the process is told to end."""


class ParentFeed(UpstreamSync):
    """The upstream side of one environment in the parent."""

    def __init__(self, setup: ProxySetup, number: int, worker_pool: WorkerPool, lookups: TokenLookups) -> None:
        holder = SharedHolder()
        counters = make_shown_counters(setup, holder)
        self._worker_pool = worker_pool
        self.distribution = holder.distribution = worker_pool.add_feed(number, counters, setup.log)
        compiler, wanted = Compiler(setup.compile_options), make_feature_filter(setup.options)
        prepare = SharedPreparer(compiler, wanted, self.distribution)
        super().__init__(setup, number, holder, counters, Random(), prepare, lookups.find(setup))

    async def stop(self) -> None:
        """Wait until the workers have sent their last counts, then stop. A late worker is not waited for."""
        await self._worker_pool.wait_reloaded()
        await super().stop()
        self._worker_pool.forget_feed(self.number)


class ParentProcess:
    """The parts of the parent: the upstream side of each environment, and the worker pool.

    Signals set `should_exit` and `has_hangup`.
    """

    def __init__(self, setup: ProxySetup, groups: list[list[socket.socket]], files: ConfigurationFiles | None) -> None:
        options, random = setup.options, Random()
        self.groups = groups
        self.should_exit = self.has_hangup = False
        self.manager = ServiceManager(os.environ)
        self.numbers = count()
        self.worker_pool = WorkerPool(
            options.workers,
            partial(start_worker, list(chain.from_iterable(groups))),
            sockets=[[each.fileno() for each in group] for group in groups],
            render_metrics=self.render_metrics,
            look_up=self.look_up_tokens,
            list_valid_tokens=lambda: self.lookups.digests(),
            options=portable_options(options),
            has_started=lambda: self.generations.readiness.note_start(),
            clock=setup.clock,
            log=setup.log,
            draw=random.random,
            timeout_s=options.worker_timeout / 1000,
        )
        self.lookups = TokenLookups(setup, self.worker_pool.revoke_token, self.worker_pool.tell_valid_tokens)
        self.directory = TokenDirectory(setup, lambda: self.generations.feeds_by_name(), lambda: self.generations.waiting_feeds())
        self.generations = Generations(
            setup,
            self.make_feed,
            tokens=self.lookups.figures,
            fetch_metrics=self.gather_metrics,
            workers=self.worker_pool.figures,
            has_workers=lambda: self.worker_pool.is_answering,
            loops=lambda: {"workers": self.worker_pool.loop_restarts, **count_loop_restarts(setup)},
            on_change=self.tell_workers,
        )
        self.tell_workers()
        self.print_notice = make_notice_printer(as_json=options.use_json_logger)
        self.grace = ShutdownGrace(options.shutdown_grace, self.drain, self.print_notice)
        self.hangups: list[Callable[[], object]] = [
            self.worker_pool.reload_files,
            self.generations.poll_now,
            self.generations.check_tokens,
        ]
        self.reload: Reloader | None = None
        if files is not None:
            self.reload = Reloader(options, files, self.apply_options, clock=setup.clock, log=setup.log, draw=random.random)
            self.hangups.append(self.reload.request_reload)
            setup.loops["reload"] = self.reload

    def make_feed(self, setup: ProxySetup) -> ParentFeed:
        """Return the upstream side of an environment. Raises what a reload must refuse."""
        number = next(self.numbers)
        portable_options(setup.options)
        try:
            return ParentFeed(setup, number, self.worker_pool, self.lookups)
        except BaseException:
            self.worker_pool.forget_feed(number)
            raise

    async def look_up_tokens(self, tokens: Sequence[str], network: bytes, seconds: float) -> Mapping[str, Admission]:
        """Return what tokens open that a worker has asked about, within so many seconds. Raises UnavailableError."""
        deadline = asyncio.get_running_loop().time() + seconds
        found = await self.directory.look_up_all(tokens, network, deadline)
        self.worker_pool.tell_valid_tokens([digest_of(token) for token in found])
        return found

    def tell_workers(self) -> None:
        """Have the workers serve what the options say. A worker that starts now also gets the environments that still answer."""
        self.worker_pool.use_environments(
            list(map(describe, self.generations.wanted)),
            [describe(each) for each in self.generations if each.name in self.generations.current.waiting],
        )

    @cached_property
    def desk(self) -> Contract:
        """What answers at the operators' address: their service, and pages. The parent does, so that no worker is needed."""
        from flagsvc.proxy.pages.desk import make_desk  # most proxies have no such address

        return make_desk(self.generations, self.gather_counts)

    async def gather_counts(self) -> Readings:
        """Return the present counters of all processes together."""
        await self.worker_pool.gather_counts()
        return self.worker_pool.metric_sums.total(readings(self.generations.sources))

    async def gather_metrics(self, is_open: bool = False) -> bytes:
        """Return the present metrics of all processes, as OpenMetrics if `is_open`."""
        await self.worker_pool.gather_counts()
        return self.render_metrics(is_open)

    def drain(self) -> None:
        """Fail readiness, here and in the workers."""
        self.manager.tell_stopping()
        self.generations.drain()
        self.worker_pool.drain()

    def render_metrics(self, is_open: bool) -> bytes:
        processes = collect_process_metrics(self.worker_pool.pids())
        return exposition(self.generations.sources, self.total(), processes, is_open=is_open)

    async def read_metrics(self) -> list[Measured]:
        """Return the present metrics of all processes together."""
        await self.worker_pool.gather_counts()
        return gather(self.generations.sources, self.total())

    def total(self) -> Readings:
        """Return the numbers of all processes together that the workers have sent."""
        sources = self.generations.sources
        return present(self.worker_pool.metric_sums.total(readings(sources)), sources)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal to end."""
        self.grace.receive_signal(sig)
        self.should_exit = True

    def handle_hangup(self) -> None:
        """Handle the signal to reload files."""
        self.has_hangup = True

    async def apply_options(self, fresh: ProxyOptions) -> None:
        """Use these keys, tokens and environments. Returns when all workers do, or when the slowest has had time enough.

        Raises ExtensionError and ConfigurationError as `make_setup` does, and changes nothing then.
        """
        self.generations.use(next_setup(self.generations.setup, fresh))
        await self.worker_pool.wait_reloaded()

    async def run(
        self, lines: Sequence[Notice], admin_address_server: AdminAddressServer | None, telemetry: Telemetry | None
    ) -> None:
        """Run until told to exit, then shut down in order. `lines` are printed when the workers take connections.

        `telemetry` exports the metrics of all processes, and the spans of this one.
        """
        reader = None if telemetry is None else MetricsReader(telemetry, self.read_metrics)
        services = (self.manager, telemetry, reader, admin_address_server, self.reload)
        async with contextlib.AsyncExitStack() as stack:
            for service in services:
                await stack.enter_async_context(service or contextlib.nullcontext())
            self.worker_pool.start()
            self.generations.start()
            announcing = asyncio.create_task(self.announce(lines))
            try:
                while not self.handle_pending():  # noqa: ASYNC110 - signal handlers only set attributes; they may not wake the loop
                    await asyncio.sleep(TICK_S)
            finally:
                announcing.cancel()
                await asyncio.wait([announcing])
                for each in chain.from_iterable(self.groups):
                    each.close()  # so that new connections are refused once the workers have closed theirs, and do not wait here
                await self.worker_pool.stop()
                await self.generations.stop()

    def handle_pending(self) -> bool:
        """Do what signals have requested. Returns whether to shut down now."""
        if self.has_hangup:
            self.has_hangup = False
            self.manager.reload(self.hangups)
        return self.should_exit and self.grace.is_over()

    async def announce(self, lines: Sequence[Notice]) -> None:
        """Print `lines` when connections are taken, and others when every worker has the configurations."""
        await self.worker_pool.wait_started()
        print_notices(lines, self.print_notice)
        self.manager.tell_listening()
        await self.generations.wait_ready()
        for each in self.generations:
            if isinstance(each.feed, ParentFeed):
                await each.feed.distribution.wait_settled()
        self.manager.tell_serving()
        print_notices(self.generations.greeting(), self.print_notice)


def describe(environment: Environment) -> EnvironmentOptions:
    """Return what a worker needs to know of an environment."""
    return EnvironmentOptions(environment.feed.number, environment.name, portable_options(environment.setup.options))


def serve_workers(options: ProxyOptions, files: ConfigurationFiles | None) -> int:
    """Run parent and workers until SIGTERM or SIGINT; return the exit code. `files` tells how to reload the configuration.

    Raises ConfigurationError if the options contain objects made in code, or certificates or variables of OpenTelemetry cannot be
    used, ExtensionError if custom strategies or enrichers cannot be used, and ListenError if it cannot listen on an address.
    """
    telemetry = make_telemetry(options, PROXY)
    tracer = None if telemetry is None else telemetry.tracer
    setup = make_setup(options, resolved=None if files is None else files.resolved, tracer=tracer)
    for part in setup.environments:
        portable_options(part.options)
    has_tls = make_tls(options, setup.log) is not None  # only the workers speak TLS; this checks that they can
    groups = listen_in_groups(options.host, options.port, options.workers, mode=options.socket_mode)
    path = f"{options.proxy_base_path}/proxy"
    address = listen_url(groups[0], options.host, path, tls=has_tls) + describe_scope(groups[0], options.host)
    with contextlib.ExitStack() as stack:
        for each in chain.from_iterable(groups):
            stack.callback(each.close)
        parent = ParentProcess(setup, groups, files)
        if telemetry is not None:
            telemetry.attach(parent.generations.entrance)
        admin_address_server = make_admin_address_server(options, lambda: parent.desk, ())
        stack.enter_context(process.handle_signals_and_logs(setup.log, parent))
        runner = stack.enter_context(asyncio.Runner(loop_factory=process.loop_factory()))
        runner.run(parent.run(listening_notices(address, admin_address_server), admin_address_server, telemetry))
    return 0
