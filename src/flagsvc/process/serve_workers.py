"""`flagsvc proxy --workers N`: the parent of N processes that answer on one port (behaviour: Drop-in).

The parent polls, stores, registers and sends usage metrics, once for all; it holds the listening sockets and takes no connection.
Prints the same two lines as one process does, and ends as one does: readiness fails in all workers, which go on answering for
a while; when all have finished what they had begun and their counts are here, the last usage metrics leave.
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
from flagsvc.process.handover import portable, start_worker
from flagsvc.process.listen import listen_in_groups, scope, url
from flagsvc.process.operators import OperatorsServer, announced, make_operators_server
from flagsvc.process.reload import ConfigurationFiles, Reloader
from flagsvc.process.shutdown import ShutdownGrace
from flagsvc.process.tls import make_tls
from flagsvc.proxy.api.cache import AnswerCache
from flagsvc.proxy.api.prometheus import exposition
from flagsvc.proxy.api.readiness import Readiness
from flagsvc.proxy.api.samples import Sources, readings
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.runtime import make_counters, make_operators
from flagsvc.proxy.setup import ProxySetup, make_setup, renewed, survived
from flagsvc.proxy.upstream_sync import UpstreamSync, make_wanted
from flagsvc.proxy.workers.pool import WorkerPool
from flagsvc.proxy.workers.process_metrics import collect_process_metrics
from flagsvc.proxy.workers.shared_configuration import SharedHolder, SharedPreparer
from flagsvc.settings.options import OPTIONS, ProxyOptions

TICK_S = 0.1
"""Seconds between two looks whether the process is told to end."""


class ParentProcess:
    """What runs in the parent: a supply without a service, and the crew. `should_exit` and `hung_up` are set by signals."""

    def __init__(self, plan: ProxySetup, groups: list[list[socket.socket]], again: ConfigurationFiles | None) -> None:
        options, random = plan.options, Random()
        self.plan, self.groups = plan, groups
        self.should_exit = self.hung_up = False
        self.holder: SharedHolder[Snapshot] = SharedHolder()
        self.counters = make_counters(plan, self.holder)
        self.worker_pool = WorkerPool(
            options.workers,
            partial(start_worker, list(chain.from_iterable(groups))),
            options=portable(options),
            sockets=[[each.fileno() for each in group] for group in groups],
            counters=self.counters,
            render_metrics=self.render_metrics,
            clock=plan.clock,
            log=plan.log,
            draw=random.random,
            timeout_s=options.worker_timeout / 1000,
        )
        self.standing = Readiness(self.holder, plan.clock, options.max_staleness, lambda: self.worker_pool.is_answering)
        self.print_notice = make_notice_printer(as_json=options.use_json_logger)
        self.grace = ShutdownGrace(options.shutdown_grace, self.drain, self.print_notice)
        self.hangups: list[Callable[[], object]] = [self.worker_pool.reload_files]
        self.holder.rollout = self.worker_pool.rollout
        prepare = SharedPreparer(Compiler(plan.compiling), make_wanted(options), self.worker_pool.rollout)
        self.upstream_sync = UpstreamSync(plan, self.holder, self.counters, random, prepare)
        self.hangups.append(self.upstream_sync.look_again)
        self.reload: Reloader | None = None
        if again is not None:
            self.reload = Reloader(options, again, self.take, clock=plan.clock, log=plan.log, draw=random.random)
            self.hangups.append(self.reload.ask)
            plan.loops["reload"] = self.reload
        self.sources = Sources(
            self.holder,
            self.counters,
            (),
            plan.clock,
            AnswerCache(0),
            self.worker_pool,
            loops=self.restarts,
            private=not plan.serving.operators_here,
            fleet=self.upstream_sync.fleet,
        )

    def restarts(self) -> dict[str, int]:
        """Return how often each loop failed for a reason nobody thought of and was started again."""
        return {**self.upstream_sync.restarts(), "workers": self.worker_pool.loop_restarts, **survived(self.plan)}

    @cached_property
    def operators(self) -> Service:
        """The HTTP contract of the operators' own address; it is answered here, whatever becomes of the workers."""
        return make_operators(self.plan, self.sources, self.standing, self.gathered)

    async def gathered(self) -> bytes:
        """Return the metrics of all processes as they are now."""
        await self.worker_pool.gather_counts()
        return self.render_metrics()

    def drain(self) -> None:
        """Fail readiness, here and in the workers."""
        self.standing.draining = True
        self.worker_pool.drain()

    def render_metrics(self) -> bytes:
        """Return the metrics of all processes."""
        return exposition(
            self.sources,
            self.worker_pool.metric_sums.total(readings(self.sources)),
            collect_process_metrics(self.worker_pool.pids()),
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal to end."""
        self.grace.tell(sig)
        self.should_exit = True

    def handle_hangup(self) -> None:
        """Take the signal to read files again."""
        self.hung_up = True

    async def take(self, fresh: ProxyOptions) -> None:
        """Go on with these keys and tokens, and return when all workers do."""
        self.plan = renewed(self.plan, fresh)
        self.upstream_sync.renew_token(fresh)
        await self.worker_pool.reload({row.field: getattr(fresh, row.field) for row in OPTIONS if row.reloads})

    async def run(self, lines: Sequence[Notice], operators_server: OperatorsServer | None) -> None:
        """Work until told to exit, then end in order; `lines` are printed when the workers take connections."""
        async with operators_server or contextlib.nullcontext(), self.reload or contextlib.nullcontext():
            self.worker_pool.start()
            self.upstream_sync.start()
            telling = asyncio.create_task(self.tell(lines))
            try:
                while not self.over():  # noqa: ASYNC110 - signals set what it looks at, which wakes no loop for certain
                    await asyncio.sleep(TICK_S)
            finally:
                telling.cancel()
                await asyncio.wait([telling])
                for each in chain.from_iterable(self.groups):
                    each.close()  # what comes after the workers have closed theirs is refused, and does not wait here
                await self.worker_pool.stop()
                await self.upstream_sync.stop()

    def over(self) -> bool:
        """Do what signals ask for; return whether it is time to end."""
        if self.hung_up:
            self.hung_up = False
            for call in self.hangups:
                call()
        return self.should_exit and self.grace.over()

    async def tell(self, lines: Sequence[Notice]) -> None:
        """Print that connections are taken, and that there is a configuration once every worker has it."""
        await self.worker_pool.wait_started()
        print_notices(lines, self.print_notice)
        await self.holder.wait_ready()
        await self.worker_pool.rollout.wait_settled()
        self.print_notice(Notice(f"flagsvc ready: {self.upstream_sync.summary()}"))


def serve_workers(options: ProxyOptions, again: ConfigurationFiles | None) -> int:
    """Run parent and workers until SIGTERM or SIGINT; return the exit code. `again` tells how the configuration is read again.

    Raises ConfigurationError where the options hold objects made in code or certificates cannot be used, ExtensionError where
    custom strategies or enrichers cannot, and ListenError where an address to listen on cannot be had.
    """
    plan = make_setup(options)
    portable(options)
    secure = make_tls(options, plan.log) is not None  # the workers speak it; here it is seen whether they can
    groups = listen_in_groups(options.host, options.port, options.workers, mode=options.socket_mode)
    path = f"{options.proxy_base_path}/proxy"
    address = url(groups[0], options.host, path, tls=secure) + scope(groups[0], options.host)
    with contextlib.ExitStack() as stack:
        for each in chain.from_iterable(groups):
            stack.callback(each.close)
        parent = ParentProcess(plan, groups, again)
        operators_server = make_operators_server(options, lambda: parent.operators, ())
        stack.enter_context(process.surrounded(plan.log, parent))
        runner = stack.enter_context(asyncio.Runner(loop_factory=process.loop_factory()))
        runner.run(parent.run(announced(address, operators_server), operators_server))
    return 0
