"""The evaluation routes: from a call to a context to the snapshot's bytes (specification: GET and POST /proxy). Compiled."""

from __future__ import annotations

from random import Random
from typing import Final

from flagsvc.api.answers import Answers
from flagsvc.api.body import read_json, read_lookup
from flagsvc.api.call import Answer, Call, Handler
from flagsvc.api.enrich import Enrichment
from flagsvc.api.http import Response
from flagsvc.api.log import Sparing
from flagsvc.api.ports import Holder, Snapshot, Usage
from flagsvc.api.query import read_query
from flagsvc.api.refusals import answer_too_large, not_ready
from flagsvc.api.settings import ServiceSettings
from flagsvc.api.trust import Trust
from flagsvc.clock import Clock
from flagsvc.engine.context import Context
from flagsvc.log import Logger, where

DEFAULT_ENVIRONMENT: Final = "default"
ENTROPY_BITS: Final = 62
SESSION_BITS: Final = 53


class Evaluator:
    """Completes a context and evaluates it against the current snapshot.

    `random` draws the sessions of callers who have none and the seeds of random stickiness.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        holder: Holder,
        usage: Usage,
        answers: Answers,
        enrichment: Enrichment | None,
        clock: Clock,
        random: Random,
        log: Logger,
        faults: Sparing,
    ) -> None:
        self.app_name = settings.app_name
        self.forced = settings.environment
        self.custom = frozenset(settings.custom_strategies)
        self.holder = holder
        self.usage = usage
        self.answers = answers
        self.enrichment = enrichment
        self.trust = Trust(settings.trust_proxy)
        self.trusts = self.trust.reads_header
        self.clock = clock
        self.random = random
        self.log = log
        self.faults = faults
        self.always_timed: bool = len(settings.custom_strategies) > 0 or enrichment is not None

    def ask(self, call: Call, context: Context, names: list[str], everything: bool) -> Answer:
        """Return the answer to a context: for `names`, or without them the toggles that are on, or `everything`."""
        if context.remote_address is None:
            context.remote_address = self.address(call)
        if self.enrichment is None:
            return self.evaluate(call, context, names, everything)
        return self.enriched(self.enrichment, call, context, names, everything)

    async def enriched(
        self, enrichment: Enrichment, call: Call, context: Context, names: list[str], everything: bool
    ) -> Response:
        """Return the answer to what the enrichers make of a context; raises what they raise.

        They get what the caller sent, and its address; what they give is copied, for it may be kept and given again.
        """
        self.seed(context)
        enriched = await enrichment.apply(context)
        return self.evaluate(call, enriched.replace(), names, everything)

    def complete(self, context: Context, listing: bool) -> None:
        """Fill in what caller and enrichers left out (behaviour: Evaluation endpoints, default context)."""
        if context.app_name is None:
            context.app_name = self.app_name
        if self.forced is not None:
            context.environment = self.forced
        elif context.environment is None:
            context.environment = DEFAULT_ENVIRONMENT
        if listing and context.session_id is None:
            context.session_id = str(self.random.getrandbits(SESSION_BITS))

    def address(self, call: Call) -> str | None:
        """Return the caller's address."""
        peer = call.request.peer
        if self.trusts or ":" in peer:
            return self.trust.address(peer, call.forwarded)
        return peer if peer else None

    def seed(self, context: Context) -> None:
        """Give a context the time and the seed of its random draws."""
        context.now = self.clock.now() * 1000.0
        context.entropy = self.random.getrandbits(ENTROPY_BITS)

    def evaluate(self, call: Call, context: Context, names: list[str], everything: bool) -> Response:
        """Complete a context, and return the snapshot's answer to it."""
        snapshot = self.holder.current
        if snapshot is None:
            raise not_ready()
        self.complete(context, not names)
        if self.always_timed or snapshot.uses_time or snapshot.uses_random:
            self.seed(context)
        if names:
            body = self.look_up(snapshot, context, names)
        else:
            body = snapshot.all(context) if everything else snapshot.enabled(context)
        if snapshot.memory.faults:
            self.report(snapshot)
        return self.answers.seal(self.answers.evaluation, call, body)

    def look_up(self, snapshot: Snapshot, context: Context, names: list[str]) -> bytes:
        """Return the answer for the toggles named, and count each; raises Refused (413) where it would be huge."""
        body, states = snapshot.named(context, names)
        if not body:
            raise answer_too_large()
        for name, state in zip(names, states, strict=True):
            self.usage.count(name, state)
        return body

    def report(self, snapshot: Snapshot) -> None:
        """Log what was raised where a toggle was decided, once for each name (behaviour: Order of checks)."""
        for name, error in snapshot.take_faults():
            if not self.faults.allows(name):
                continue
            if name in self.custom:
                self.log.error("a custom strategy raised, it counts as false", strategy=name, error=where(error))
            else:
                self.log.error("a toggle could not be evaluated, it counts as off", toggle=name, error=where(error))


class Listing(Handler):
    """GET /proxy and GET /proxy/all."""

    def __init__(self, evaluator: Evaluator, everything: bool) -> None:
        self.evaluator = evaluator
        self.everything = everything
        self.no_names: list[str] = []

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the toggles for the context in the query string; raises Refused (400)."""
        return self.evaluator.ask(call, read_query(call.request.query), self.no_names, self.everything)


class Lookup(Handler):
    """POST /proxy and POST /proxy/all."""

    def __init__(self, evaluator: Evaluator, everything: bool) -> None:
        self.evaluator = evaluator
        self.everything = everything

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the toggles for the context in the body; raises Refused (400, 413)."""
        asked = read_lookup(read_json(body, call.media, call.limit))
        return self.evaluator.ask(call, asked.context, asked.toggles, self.everything)
