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

from flagsvc.api.cache import AnswerCache
from flagsvc.api.prometheus import exposition
from flagsvc.api.samples import Sources, readings
from flagsvc.api.service import Service
from flagsvc.api.standing import Standing
from flagsvc.apps import process
from flagsvc.apps.admin import Desk, announced, make_desk
from flagsvc.apps.ending import Grace
from flagsvc.apps.handover import portable, start_worker
from flagsvc.apps.listen import listen_in_groups, scope, url
from flagsvc.apps.notices import Notice, make_say, say_all
from flagsvc.apps.plan import Plan, make_plan, renewed, survived
from flagsvc.apps.reload import Again, Reload
from flagsvc.apps.supply import Supply, make_wanted
from flagsvc.apps.tls import make_tls
from flagsvc.apps.world import make_counters, make_operators
from flagsvc.engine.compile import Compiler
from flagsvc.engine.snapshot import Snapshot
from flagsvc.settings.options import OPTIONS, ProxyOptions
from flagsvc.workers.crew import Crew
from flagsvc.workers.parent import SharedHolder, SharedPreparer
from flagsvc.workers.processes import processes

TICK_S = 0.1
"""Seconds between two looks whether the process is told to end."""


class Parent:
    """What runs in the parent: a supply without a service, and the crew. `should_exit` and `hung_up` are set by signals."""

    def __init__(self, plan: Plan, groups: list[list[socket.socket]], again: Again | None) -> None:
        options, random = plan.options, Random()
        self.plan, self.groups = plan, groups
        self.should_exit = self.hung_up = False
        self.holder: SharedHolder[Snapshot] = SharedHolder()
        self.counters = make_counters(plan, self.holder)
        self.crew = Crew(
            options.workers,
            partial(start_worker, list(chain.from_iterable(groups))),
            options=portable(options),
            sockets=[[each.fileno() for each in group] for group in groups],
            counters=self.counters,
            text=self.text,
            clock=plan.clock,
            log=plan.log,
            draw=random.random,
            timeout_s=options.worker_timeout / 1000,
        )
        self.standing = Standing(self.holder, plan.clock, options.max_staleness, lambda: self.crew.answering)
        self.say = make_say(as_json=options.use_json_logger)
        self.grace = Grace(options.shutdown_grace, self.drain, self.say)
        self.hangups: list[Callable[[], object]] = [self.crew.look_again]
        self.holder.rollout = self.crew.rollout
        prepare = SharedPreparer(Compiler(plan.compiling), make_wanted(options), self.crew.rollout)
        self.supply = Supply(plan, self.holder, self.counters, random, prepare)
        self.hangups.append(self.supply.look_again)
        self.reload: Reload | None = None
        if again is not None:
            self.reload = Reload(options, again, self.take, clock=plan.clock, log=plan.log, draw=random.random)
            self.hangups.append(self.reload.ask)
            plan.loops["reload"] = self.reload
        self.sources = Sources(
            self.holder,
            self.counters,
            (),
            plan.clock,
            AnswerCache(0),
            self.crew,
            loops=self.restarts,
            private=not plan.serving.operators_here,
            fleet=self.supply.fleet,
        )

    def restarts(self) -> dict[str, int]:
        """Return how often each loop failed for a reason nobody thought of and was started again."""
        return {**self.supply.restarts(), "workers": self.crew.loop_restarts, **survived(self.plan)}

    @cached_property
    def operators(self) -> Service:
        """The HTTP contract of the operators' own address; it is answered here, whatever becomes of the workers."""
        return make_operators(self.plan, self.sources, self.standing, self.gathered)

    async def gathered(self) -> bytes:
        """Return the metrics of all processes as they are now."""
        await self.crew.gather()
        return self.text()

    def drain(self) -> None:
        """Fail readiness, here and in the workers."""
        self.standing.draining = True
        self.crew.drain()

    def text(self) -> bytes:
        """Return the metrics of all processes."""
        return exposition(self.sources, self.crew.sums.total(readings(self.sources)), processes(self.crew.pids()))

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
        self.supply.renew_token(fresh)
        await self.crew.reload({row.field: getattr(fresh, row.field) for row in OPTIONS if row.reloads})

    async def run(self, lines: Sequence[Notice], desk: Desk | None) -> None:
        """Work until told to exit, then end in order; `lines` are printed when the workers take connections."""
        async with desk or contextlib.nullcontext(), self.reload or contextlib.nullcontext():
            self.crew.start()
            self.supply.start()
            telling = asyncio.create_task(self.tell(lines))
            try:
                while not self.over():  # noqa: ASYNC110 - signals set what it looks at, which wakes no loop for certain
                    await asyncio.sleep(TICK_S)
            finally:
                telling.cancel()
                await asyncio.wait([telling])
                for each in chain.from_iterable(self.groups):
                    each.close()  # what comes after the workers have closed theirs is refused, and does not wait here
                await self.crew.stop()
                await self.supply.stop()

    def over(self) -> bool:
        """Do what signals ask for; return whether it is time to end."""
        if self.hung_up:
            self.hung_up = False
            for call in self.hangups:
                call()
        return self.should_exit and self.grace.over()

    async def tell(self, lines: Sequence[Notice]) -> None:
        """Print that connections are taken, and that there is a configuration once every worker has it."""
        await self.crew.started()
        say_all(lines, self.say)
        await self.holder.wait_ready()
        await self.crew.rollout.settled()
        self.say(Notice(f"flagsvc ready: {self.supply.summary()}"))


def serve_workers(options: ProxyOptions, again: Again | None) -> int:
    """Run parent and workers until SIGTERM or SIGINT; return the exit code. `again` tells how the configuration is read again.

    Raises ConfigurationError where the options hold objects made in code or certificates cannot be used, ExtensionError where
    custom strategies or enrichers cannot, and ListenError where an address to listen on cannot be had.
    """
    plan = make_plan(options)
    portable(options)
    secure = make_tls(options, plan.log) is not None  # the workers speak it; here it is seen whether they can
    groups = listen_in_groups(options.host, options.port, options.workers, mode=options.socket_mode)
    path = f"{options.proxy_base_path}/proxy"
    address = url(groups[0], options.host, path, tls=secure) + scope(groups[0], options.host)
    with contextlib.ExitStack() as stack:
        for each in chain.from_iterable(groups):
            stack.callback(each.close)
        parent = Parent(plan, groups, again)
        desk = make_desk(options, lambda: parent.operators, ())
        stack.enter_context(process.surrounded(plan.log, parent))
        runner = stack.enter_context(asyncio.Runner(loop_factory=process.loop_factory()))
        runner.run(parent.run(announced(address, desk), desk))
    return 0
