"""The life of the options of a process: each set of options makes a generation, and one pointer says which generation answers.

    options ─→ setup ─→ the next generation ─→ entrance.current ←─ each request
                              │
              feeds: kept where the upstream side is the same, else new

The environments and the listed keys of a generation never change. The next one is made beside it and takes its place between
two requests. Three rules hold (behaviour: Changes without a restart; Several environments):

- Keys that are taken away open nothing from the moment the options are known, also while an upstream is waited for. With workers,
  each process keeps this rule from the moment it is told; the parent waits some seconds for all to say that they do.
- New keys never open the flags of another upstream side: not those that an environment had before.
- Options that are refused change nothing that answers.

An environment with another upstream side waits until its upstream has answered. Until then the environment of the generation
before keeps its place, and only the keys that both list open it. So each first configuration makes a generation, too. Keys that are
replaced are accepted for a while longer (keyOverlap): `process/reload.py` adds them, and here they are keys like others.

The same class serves the only process, the parent of workers, and each worker. They differ in their feeds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple

from flagsvc.core.background import wait_for_first
from flagsvc.core.log import locate_error
from flagsvc.core.notices import Notice
from flagsvc.http.contract import Contract
from flagsvc.http.http_errors import key_unavailable
from flagsvc.proxy.api.cache import AnswerCache
from flagsvc.proxy.api.metrics import (
    FetchMetrics,
    FormerCounts,
    Loops,
    Sources,
    TokenFigures,
    WorkerFigures,
    count_former,
    render_metrics,
)
from flagsvc.proxy.api.readiness import EnvironmentsReadiness
from flagsvc.proxy.api.router import Entrance, Router
from flagsvc.proxy.api.scopes import ScopedServices
from flagsvc.proxy.api.server_side import describe_listed
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.api.streams import StreamParts, Ticket
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.generations.admission import MAX_TRIES, AdmitToken, describe_admission
from flagsvc.proxy.generations.environment import (
    AnyHolder,
    Environment,
    Services,
    make_admin_address_service,
    make_counters,
    make_streams,
)
from flagsvc.proxy.generations.feeds import Feed
from flagsvc.proxy.generations.setup import ProxySetup, count_loop_restarts, with_keys_of_both
from flagsvc.proxy.tokens import Admission, UnavailableError
from flagsvc.proxy.tokens.lookup import RETRY_S, answer_deadline


class Generation(NamedTuple):
    """What answers callers: environments by name, and what passes requests on to them.

    `waiting` are environments without a configuration whose places others have until then; an added environment has a place at
    once. `service` answers what belongs to no environment. Without a `router`, it is the service of the only environment and
    answers everything.
    """

    environments: Mapping[str, Environment]
    waiting: Mapping[str, Environment]
    service: Service
    router: Router | None

    @property
    def contract(self) -> Contract:
        """What answers callers."""
        return self.router or self.service


class Generations:
    """The generations of one process in one event loop. `current` answers, and `wanted` is what the options say.

    `entrance` answers callers through all generations. `sources` are those of the metrics, and `readiness` tells whether callers
    should be sent here. `revocations` counts how often tokens were taken back, or are to be placed again.
    """

    def __init__(
        self,
        setup: ProxySetup,
        make_feed: Callable[[ProxySetup], Feed],
        *,
        admit: AdmitToken | None = None,
        tokens: Callable[[], TokenFigures] | None = None,
        fetch_metrics: FetchMetrics | None = None,
        workers: Callable[[], WorkerFigures] = WorkerFigures,
        has_workers: Callable[[], bool] | None = None,
        loops: Loops | None = None,
        on_change: Callable[[], object] = lambda: None,
        is_quiet: bool = False,
    ) -> None:
        """Take the setup of the process, and what makes the upstream side of an environment. Raises what that raises.

        `admit` looks up tokens; None in a process that answers no callers. `tokens` tells about them. `fetch_metrics` returns the
        metrics of all processes, if there are several; `workers` and `has_workers` tell about the workers. `loops` returns the
        restarts of the loops of the process. `on_change` is called when environments have come or gone, or have other keys.
        With `is_quiet`, another process logs that.
        """
        self.setup = setup
        self.revocations = 0
        self._make_feed = make_feed
        self._on_change = on_change
        self._is_quiet = is_quiet
        self._admit = admit
        self._fetch_metrics = fetch_metrics or (lambda is_open: render_metrics(self.sources, is_open))
        self.streams = make_streams(setup.options)
        self._services = Services(
            self._fetch_metrics,
            self._describe_tokens,
            lambda name: name in self.current.waiting,
            self.streams,
            self._open_ticket,
        )
        self._scoped: ScopedServices[Environment] = ScopedServices(self._services.make_scoped, self._end_service)
        self._former: dict[str, FormerCounts] = {}
        self._feeds: dict[Feed, asyncio.Task[None] | None] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._is_running = False
        self._changed = asyncio.Event()
        self._holder = AnyHolder(setup, lambda: [each.holder for each in self])
        self.readiness = EnvironmentsReadiness(
            self._holder, setup.clock, lambda: [each.service.readiness for each in self], has_workers
        )
        self.wanted: list[Environment] = []
        self._process: Service | None = None
        self._process = self._make_process_service(setup.environments)
        self.wanted = self._make_wanted(setup)
        self.current = self._make_generation({})
        self.entrance = Entrance(self.current.contract)
        self.sources = self._make_sources(workers, loops or partial(count_loop_restarts, setup), tokens)

    def _make_sources(
        self, workers: Callable[[], WorkerFigures], loops: Loops, tokens: Callable[[], TokenFigures] | None
    ) -> Sources:
        """Return the sources of the metrics."""
        return Sources(
            self._holder,
            make_counters(self.setup, self._holder),
            self._services.counts_of("").every,
            self.setup.clock,
            AnswerCache(0),
            workers,
            loops=loops,
            reached=self.entrance.reached.counts,
            private=not self.setup.service_settings.without_admin_address,
            environments=lambda: {each.name: each.service.sources for each in self},
            tokens=tokens,
            former=self._former,
            streams=self.streams,
            traffic=self.entrance.traffic,
            readiness=self.readiness,
        )

    def __iter__(self) -> Iterator[Environment]:
        return iter(self.current.environments.values())

    def feeds_by_name(self) -> dict[str, Feed]:
        """Return the upstream sides of the environments that answer, by name, without those that are to look up no more tokens."""
        return {each.name: each.feed for each in self if each.looks_up_tokens or each.feed.tokens is None}

    def waiting_feeds(self) -> list[Feed]:
        """Return the upstream sides that have no configuration yet, while other environments have their places."""
        return [each.feed for each in self.current.waiting.values()]

    @property
    def feeds(self) -> list[Feed]:
        """The upstream sides of all environments, also of environments that wait for their places."""
        return list(self._feeds)

    @property
    def looks_up_tokens(self) -> bool:
        """Whether any environment accepts tokens that no option lists."""
        return any(each.looks_up_tokens for each in (*self, *self.wanted))

    def greeting(self) -> list[Notice]:
        ready = [each for each in self if each.feed.is_ready]
        return [Notice(f"flagsvc ready: {f'{each.name}: ' if each.name else ''}{each.feed.summary()}") for each in ready]

    @cached_property
    def operators(self) -> Service:
        return make_admin_address_service(self.setup, self.sources, self.readiness, self._fetch_metrics)

    # ---- the life of the process

    def start(self) -> None:
        self._is_running = True
        self._start_feeds(is_first=True)

    async def stop(self) -> None:
        """Stop everything, and send the last usage metrics. Requests are still answered from memory."""
        self._is_running = False
        for task in self._feeds.values():
            if task is not None:
                task.cancel()
        await asyncio.gather(*self._stopping, *map(stop_feed, self._feeds), return_exceptions=True)

    @property
    def is_ready(self) -> bool:
        return any(each.feed.is_ready for each in self)

    async def wait_ready(self) -> None:
        """Wait until each environment has a configuration or has failed to get one, and at least one has it.

        Environments that come and go meanwhile count, too.
        """
        while not self.is_ready or not all(feed.holder.is_tried for feed in self._feeds):
            self._changed.clear()
            untried = [feed.holder.wait_tried() for feed in self._feeds if not feed.holder.is_tried]
            await wait_for_first(self._changed.wait(), *(untried or [each.holder.wait_ready() for each in self]))

    def drain(self) -> None:
        """Fail readiness. Requests are still answered."""
        self.readiness.is_draining = True
        for each in (*self, *self.wanted):
            each.service.readiness.is_draining = True

    def poll_now(self) -> None:
        """Poll every upstream now, also within a pause that it has asked for."""
        for feed in self._feeds:
            feed.poll_now()

    def check_tokens(self) -> None:
        """Ask every upstream again about the known tokens of callers."""
        for feed in self._feeds:
            feed.check_tokens()

    # ---- from one generation to the next

    def use(self, setup: ProxySetup) -> None:
        """Use other options of the process from now on. Raises what making an upstream side does, and changes nothing then."""
        self.readiness.note_start()
        wanted = self._make_wanted(setup)
        setup.own_secrets.add(setup.options)
        self.setup, self.wanted = setup, wanted
        for each in wanted:
            each.feed.use_options(each.setup.options)
        if self._is_running:
            self._start_feeds()
        self._swap()
        self._on_change()

    def _make_wanted(self, setup: ProxySetup) -> list[Environment]:
        """Return the environments of a setup, with the feeds that there are, or new ones."""
        made: list[Feed] = []
        wanted: list[Environment] = []
        try:
            for part in setup.environments:
                feed = self._find_feed(part)
                if feed is None:
                    feed = self._make_feed(part)
                    made.append(feed)
                wanted.append(self._make_environment(part, feed))
        except BaseException:
            for feed in made:
                self._end_feed(feed)
            raise
        self._feeds |= dict.fromkeys(made)
        return wanted

    def _find_feed(self, part: ProxySetup) -> Feed | None:
        return next((feed for feed in self._feeds if (feed.name, feed.setup.side) == (part.name, part.side)), None)

    def _make_environment(self, part: ProxySetup, feed: Feed) -> Environment:
        """Return an environment with this setup. A new environment goes on with the counts of an environment with its feed."""
        known: list[Environment] = []
        if feed in self._feeds:
            known = [each for each in (*self.wanted, *self) if each.feed is feed]
        for each in known:
            if each.setup is part:
                return each
        shared = self._process or (self.current.service if self._feeds else None)
        made = self._services.make_environment(part, feed, known[0] if known else None, shared)
        made.service.readiness.is_draining = self.readiness.is_draining
        return made

    def _make_process_service(self, parts: Iterable[ProxySetup]) -> Service | None:
        """Return the service of a process with these environments; None for a process with a single one."""
        if not self.setup.has_several:
            return None
        return self._services.make_for_process(self.setup, parts, self._holder, self.readiness, self._process)

    def _make_generation(self, former: Mapping[str, Environment]) -> Generation:
        """Return the generation of what is wanted, as far as it has a configuration, after these environments."""
        environments: dict[str, Environment] = {}
        waiting: dict[str, Environment] = {}
        for wanted in self.wanted:
            before = former.get(wanted.name, wanted)
            if before.feed is wanted.feed or self._may_replace(before.holder, wanted.holder):
                environments[wanted.name] = wanted
            else:
                waiting[wanted.name] = wanted
                part = with_keys_of_both(before.setup, wanted.setup)
                environments[wanted.name] = self._make_environment(part, before.feed)
        self._process = self._make_process_service(each.setup for each in chain(environments.values(), waiting.values()))
        service = self._process or next(iter(environments.values())).service
        every = [*waiting.values(), *environments.values()]  # the last one opens a key that several list
        if self._process is None and not waiting and not any(each.looks_up_tokens for each in every):
            return Generation(environments, waiting, service, None)
        listed = ((key, each.service) for each in every for key in each.setup.keys)
        return Generation(environments, waiting, service, Router(service, listed, None if self._admit is None else self))

    def _may_replace(self, before: Holder, wanted: Holder) -> bool:
        """Return whether a configuration may take the place of another one: if nothing runs, or its upstream has confirmed it.

        A stored or a bootstrap configuration may be older, so it replaces only a missing configuration.
        """
        return not self._is_running or wanted.is_confirmed or (wanted.is_ready and not before.is_ready)

    def _swap(self) -> None:
        """Let the next generation answer, and end what only the generation before has used.

        Tokens that were looked up are forgotten: another environment may be theirs now, or none.
        """
        streaming = list(self._list_services())
        former, self.current = self.current, self._make_generation(self.current.environments)
        for name, before in former.environments.items():
            present = self.current.environments.get(name)
            if present is None or present.feed is not before.feed:
                self._former[name] = count_former(before.service.sources, self._former.get(name, {}))
        self.revocations += 1
        self._scoped.keep(self)
        for service in self._list_services():
            service.keys.forget_added()
        self.entrance.current = self.current.contract
        answering = set(self._list_services())
        for service in streaming:
            if service not in answering:
                service.stream.end_all()
        self._changed.set()
        used = {each.feed for each in (*self, *self.wanted)}
        for feed in [feed for feed in self._feeds if feed not in used]:
            self._end_feed(feed)

    def _start_feeds(self, *, is_first: bool = False) -> None:
        for feed, task in self._feeds.items():
            if task is None:
                feed.start()
                self._feeds[feed] = asyncio.get_running_loop().create_task(self._await_first(feed, is_first=is_first))

    async def _await_first(self, feed: Feed, *, is_first: bool) -> None:
        """Make the generation that the first configuration of a feed allows for, and log what that means for its environment."""
        await feed.holder.wait_tried()
        if self._is_waiting(feed) and not feed.is_ready and not self._is_quiet:
            feed.setup.log.warn("an environment is not ready with its new options, the former one still answers")
        await feed.holder.wait_ready()
        was_waiting = self._is_waiting(feed)
        self._swap()
        if self._is_waiting(feed):
            await feed.holder.wait_confirmed()
            self._swap()
        if was_waiting:
            self._on_change()
        if not self._is_quiet and (was_waiting or not is_first):
            feed.setup.log.info("an environment has other options now" if was_waiting else "flagsvc ready")

    def _is_waiting(self, feed: Feed) -> bool:
        return any(each.feed is feed for each in self.current.waiting.values())

    def _end_feed(self, feed: Feed) -> None:
        task = self._feeds.pop(feed, None)
        if task is not None:
            task.cancel()
        if self._is_running:
            stopping = asyncio.get_running_loop().create_task(stop_feed(feed))
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopping.discard)

    # ---- tokens that were looked up

    def _list_services(self) -> Iterator[Service]:
        """Yield the services that tokens may open: of environments, and of projects."""
        return chain((each.service for each in self), self._scoped)

    def admit(self, token: str, admission: Admission) -> Service | None:
        """Return the service that a token opens, and pass its requests on to it from now on.

        Returns None if the environment is gone, also if another environment has its name now.
        """
        environment = next((each for each in self if each.feed.number == admission.environment), None)
        if environment is None or self.current.router is None:
            return None
        service = environment.service
        if admission.projects is not None:
            service = self._scoped.find(environment, admission.projects)
        service.keys.add(token.encode("utf-8", "surrogateescape"), admission.is_server)
        self.current.router.admit_token(token, service)
        return service

    def revoke(self, token: str) -> None:
        """Accept a token no longer that was looked up."""
        self.revocations += 1
        if self.current.router is not None:
            self.current.router.revoke_token(token)
        for service in self._list_services():
            service.keys.remove(token.encode("utf-8", "surrogateescape"))

    def _open_ticket(self, ticket: Ticket) -> StreamParts | None:
        """Return the stream that a ticket opens; None if it opens none."""
        environment = self.current.environments.get(ticket.environment)
        if environment is None or not environment.service.stream.tickets.admits(ticket):
            return None
        return environment.service.stream

    def _end_service(self, service: Service) -> None:
        """Pass requests on to a service no longer. Its tokens open another service when they are used again."""
        service.stream.end_all()
        if self.current.router is not None:
            self.current.router.forget_service(service)

    def is_refused(self, token: str) -> bool:
        """Return whether it is known that a token opens nothing, so that no caller needs to wait."""
        return self._admit is None or self._admit.is_refused(token)

    async def find(self, token: str, network: bytes) -> Service | None:
        """Return the service that a token opens; None for none. Raises HttpError (503) if that cannot be found out now.

        If a token is revoked between an answer and now, it may be this one. If the environment in the answer has gone meanwhile,
        the token may open its successor. Both need another answer.
        """
        deadline = answer_deadline()
        for _ in range(MAX_TRIES):
            before = self.revocations
            admission = (await self._look_up([token], network, deadline)).get(token)
            if admission is None:
                return None
            service = self.admit(token, admission) if self.revocations == before else None
            if service is not None:
                return service
        raise key_unavailable(RETRY_S)

    async def _look_up(self, tokens: Sequence[str], network: bytes, deadline: float) -> dict[str, Admission]:
        """Return what tokens open. Raises HttpError (503) if that cannot be found out now."""
        if self._admit is None:
            return {}
        try:
            return await self._admit.look_up_all(tokens, network, deadline)
        except UnavailableError as error:
            raise key_unavailable(error.seconds) from None

    async def _describe_tokens(self, tokens: list[str], network: bytes) -> list[dict[str, Any]]:
        """Return what each of these tokens opens, in the words of the real server. Raises HttpError (503)."""
        listed = {token: told for token in tokens if (told := self._describe_listed(token)) is not None}
        others = [token for token in tokens if token not in listed]
        found = await self._look_up(others, network, answer_deadline())
        return [*listed.values(), *(describe_admission(token, found[token]) for token in others if token in found)]

    def _describe_listed(self, token: str) -> dict[str, Any] | None:
        """Return what a listed key opens; None if it is none."""
        services = (each.service for each in chain(self, self.current.waiting.values()))
        told = (describe_listed(each.keys, token, each.settings.upstream_environment) for each in services)
        return next((each for each in told if each is not None), None)


async def stop_feed(feed: Feed) -> None:
    """Stop a feed. A failure is logged, because no caller waits for it."""
    try:
        await feed.stop()
    except Exception as error:  # the others must stop as well
        feed.setup.log.error("stopping failed", error=locate_error(error))
