"""`flagsvc proxy --workers N`: the parent of N processes that answer on one port (behaviour: Drop-in).

The parent polls, stores, registers and sends usage metrics, once for all; it holds the listening sockets and takes no connection.
Prints the same two lines as one process does, and ends as one does: when all workers have finished what they had begun and their
counts are here, the last usage metrics leave.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from functools import partial
from itertools import chain
from random import Random

from flagsvc.api.cache import AnswerCache
from flagsvc.api.prometheus import Sources, exposition, readings
from flagsvc.apps import process
from flagsvc.apps.handover import portable, start_worker
from flagsvc.apps.listen import listen_in_groups, scope, url
from flagsvc.apps.plan import Plan, make_plan
from flagsvc.apps.supply import Supply, make_wanted
from flagsvc.apps.world import make_counters
from flagsvc.engine.compile import Compiler
from flagsvc.engine.snapshot import Snapshot
from flagsvc.settings.options import ProxyOptions
from flagsvc.workers.crew import Crew
from flagsvc.workers.parent import SharedHolder, SharedPreparer
from flagsvc.workers.processes import processes

TICK_S = 0.1
"""Seconds between two looks whether the process is told to end."""


class Parent:
    """What runs in the parent: a supply without a service, and the crew. `should_exit` is set by a signal."""

    def __init__(self, plan: Plan, groups: list[list[socket.socket]]) -> None:
        options, random = plan.options, Random()
        self.should_exit = False
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
        )
        self.holder.rollout = self.crew.rollout
        self.sources = Sources(self.holder, self.counters, (), plan.clock, AnswerCache(0), self.crew)
        prepare = SharedPreparer(Compiler(plan.compiling), make_wanted(options), self.crew.rollout)
        self.supply = Supply(plan, self.holder, self.counters, random, prepare)

    def text(self) -> bytes:
        """Return the metrics of all processes."""
        return exposition(self.sources, self.crew.sums.total(readings(self.sources)), processes(self.crew.pids()))

    async def run(self, line: str) -> None:
        """Work until told to exit, then end in order; `line` is printed when the workers take connections."""
        self.crew.start()
        self.supply.start()
        telling = asyncio.create_task(self.tell(line))
        try:
            while not self.should_exit:  # noqa: ASYNC110 - a signal sets it, which wakes no loop for certain
                await asyncio.sleep(TICK_S)
        finally:
            telling.cancel()
            await asyncio.wait([telling])
            await self.crew.stop()
            await self.supply.stop()

    async def tell(self, line: str) -> None:
        """Print that connections are taken, and that there is a configuration once every worker has it."""
        await self.crew.started()
        process.say(line)
        await self.holder.wait_ready()
        await self.crew.rollout.settled()
        process.say(f"flagsvc ready: {self.supply.summary()}")


def serve_workers(options: ProxyOptions) -> int:
    """Run parent and workers until SIGTERM or SIGINT; return the exit code.

    Raises ConfigurationError where the options hold objects made in code, ExtensionError where custom strategies or enrichers
    cannot be used, and ListenError where the port cannot be had.
    """
    plan = make_plan(options)
    portable(options)
    groups = listen_in_groups(options.host, options.port, options.workers)
    address = url(groups[0], options.host, f"{options.proxy_base_path}/proxy") + scope(groups[0], options.host)
    with contextlib.ExitStack() as stack:
        for each in chain.from_iterable(groups):
            stack.callback(each.close)
        parent = Parent(plan, groups)
        stack.enter_context(process.forwarded_logs(plan.log))
        stack.enter_context(process.stopped_by_signals(parent))
        runner = stack.enter_context(asyncio.Runner(loop_factory=process.loop_factory()))
        runner.run(parent.run(f"flagsvc listening on {address}"))
    return 0
