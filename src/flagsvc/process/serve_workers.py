"""`flagsvc proxy --workers N`: the parent of N processes that answer on one port (behaviour: Further options).

The parent polls, stores, registers and sends usage metrics for all workers. It holds the listening sockets and takes no connection.
It prints the same lines as a single process, and shuts down in the same order: readiness fails in all workers, which answer for
a while longer. When all have finished open requests and sent their counts, the parent sends the last usage metrics.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import chain
from random import Random
from types import FrameType

from flagsvc.core.notices import Notice, make_notice_printer, print_notices
from flagsvc.engine.compile import Compiler
from flagsvc.engine.snapshot import Snapshot
from flagsvc.process import process
from flagsvc.process.admin_address import AdminAddressServer, listening_notices, make_admin_address_server
from flagsvc.process.listen import describe_scope, listen_in_groups, listen_url
from flagsvc.process.reload import ConfigurationFiles, Reloader
from flagsvc.process.shutdown import ShutdownGrace
from flagsvc.process.tls import make_tls
from flagsvc.process.worker_start import portable_options, start_worker
from flagsvc.proxy.api.cache import AnswerCache
from flagsvc.proxy.api.prometheus import exposition
from flagsvc.proxy.api.readiness import Readiness
from flagsvc.proxy.api.samples import Sources, readings
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.runtime import make_admin_address_service, make_counters
from flagsvc.proxy.setup import ProxySetup, count_loop_restarts, make_setup, renew_setup
from flagsvc.proxy.upstream_sync import UpstreamSync, make_feature_filter
from flagsvc.proxy.workers.pool import WorkerPool
from flagsvc.proxy.workers.process_metrics import collect_process_metrics
from flagsvc.proxy.workers.shared_configuration import SharedHolder, SharedPreparer
from flagsvc.settings.options import OPTIONS, ProxyOptions

TICK_S = 0.1
"""Seconds between two checks whether the process is told to end."""


class ParentProcess:
    """The parts of the parent: the upstream side of a proxy, and the worker pool. Signals set `should_exit` and `has_hangup`."""

    def __init__(self, setup: ProxySetup, groups: list[list[socket.socket]], files: ConfigurationFiles | None) -> None:
        options, random = setup.options, Random()
        self.setup, self.groups = setup, groups
        self.should_exit = self.has_hangup = False
        self.holder: SharedHolder[Snapshot] = SharedHolder()
        self.counters = make_counters(setup, self.holder)
        self.worker_pool = WorkerPool(
            options.workers,
            partial(start_worker, list(chain.from_iterable(groups))),
            options=portable_options(options),
            sockets=[[each.fileno() for each in group] for group in groups],
            counters=self.counters,
            render_metrics=self.render_metrics,
            clock=setup.clock,
            log=setup.log,
            draw=random.random,
            timeout_s=options.worker_timeout / 1000,
        )
        self.readiness = Readiness(
            self.holder, setup.clock, options.max_staleness, lambda: self.worker_pool.is_answering
        )
        self.print_notice = make_notice_printer(as_json=options.use_json_logger)
        self.grace = ShutdownGrace(options.shutdown_grace, self.drain, self.print_notice)
        self.hangups: list[Callable[[], object]] = [self.worker_pool.reload_files]
        self.holder.distribution = self.worker_pool.distribution
        prepare = SharedPreparer(
            Compiler(setup.compile_options), make_feature_filter(options), self.worker_pool.distribution
        )
        self.upstream_sync = UpstreamSync(setup, self.holder, self.counters, random, prepare)
        self.hangups.append(self.upstream_sync.poll_now)
        self.reload: Reloader | None = None
        if files is not None:
            self.reload = Reloader(
                options, files, self.apply_options, clock=setup.clock, log=setup.log, draw=random.random
            )
            self.hangups.append(self.reload.request_reload)
            setup.loops["reload"] = self.reload
        self.sources = Sources(
            self.holder,
            self.counters,
            (),
            setup.clock,
            AnswerCache(0),
            self.worker_pool,
            loops=self.restarts,
            private=not setup.service_settings.without_admin_address,
            fleet=self.upstream_sync.fleet,
        )

    def restarts(self) -> dict[str, int]:
        """Return how often each loop was restarted after an unexpected failure, by name."""
        return {
            **self.upstream_sync.restarts(),
            "workers": self.worker_pool.loop_restarts,
            **count_loop_restarts(self.setup),
        }

    @cached_property
    def operators(self) -> Service:
        """The service of the operators' address. The parent answers it itself, so that it does not depend on the workers."""
        return make_admin_address_service(self.setup, self.sources, self.readiness, self.gather_metrics)

    async def gather_metrics(self) -> bytes:
        """Return the present metrics of all processes."""
        await self.worker_pool.gather_counts()
        return self.render_metrics()

    def drain(self) -> None:
        """Fail readiness, here and in the workers."""
        self.readiness.is_draining = True
        self.worker_pool.drain()

    def render_metrics(self) -> bytes:
        """Return the metrics of all processes."""
        return exposition(
            self.sources,
            self.worker_pool.metric_sums.total(readings(self.sources)),
            collect_process_metrics(self.worker_pool.pids()),
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal to end."""
        self.grace.receive_signal(sig)
        self.should_exit = True

    def handle_hangup(self) -> None:
        """Handle the signal to reload files."""
        self.has_hangup = True

    async def apply_options(self, fresh: ProxyOptions) -> None:
        """Use these keys and tokens. Returns when all workers use them, or when the slowest has had time enough."""
        self.setup = renew_setup(self.setup, fresh)
        self.upstream_sync.renew_token(fresh)
        await self.worker_pool.reload({row.field: getattr(fresh, row.field) for row in OPTIONS if row.reloads})

    async def run(self, lines: Sequence[Notice], admin_address_server: AdminAddressServer | None) -> None:
        """Run until told to exit, then shut down in order. `lines` are printed when the workers take connections."""
        async with admin_address_server or contextlib.nullcontext(), self.reload or contextlib.nullcontext():
            self.worker_pool.start()
            self.upstream_sync.start()
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
                await self.upstream_sync.stop()

    def handle_pending(self) -> bool:
        """Do what signals have requested. Returns whether to shut down now."""
        if self.has_hangup:
            self.has_hangup = False
            for call in self.hangups:
                call()
        return self.should_exit and self.grace.is_over()

    async def announce(self, lines: Sequence[Notice]) -> None:
        """Print `lines` when connections are taken, and another line when every worker has a configuration."""
        await self.worker_pool.wait_started()
        print_notices(lines, self.print_notice)
        await self.holder.wait_ready()
        await self.worker_pool.distribution.wait_settled()
        self.print_notice(Notice(f"flagsvc ready: {self.upstream_sync.summary()}"))


def serve_workers(options: ProxyOptions, files: ConfigurationFiles | None) -> int:
    """Run parent and workers until SIGTERM or SIGINT; return the exit code. `files` tells how to reload the configuration.

    Raises ConfigurationError if the options contain objects made in code or certificates cannot be used, ExtensionError if custom
    strategies or enrichers cannot be used, and ListenError if it cannot listen on an address.
    """
    setup = make_setup(options)
    portable_options(options)
    has_tls = make_tls(options, setup.log) is not None  # only the workers speak TLS; this checks that they can
    groups = listen_in_groups(options.host, options.port, options.workers, mode=options.socket_mode)
    path = f"{options.proxy_base_path}/proxy"
    address = listen_url(groups[0], options.host, path, tls=has_tls) + describe_scope(groups[0], options.host)
    with contextlib.ExitStack() as stack:
        for each in chain.from_iterable(groups):
            stack.callback(each.close)
        parent = ParentProcess(setup, groups, files)
        admin_address_server = make_admin_address_server(options, lambda: parent.operators, ())
        stack.enter_context(process.handle_signals_and_logs(setup.log, parent))
        runner = stack.enter_context(asyncio.Runner(loop_factory=process.loop_factory()))
        runner.run(parent.run(listening_notices(address, admin_address_server), admin_address_server))
    return 0
