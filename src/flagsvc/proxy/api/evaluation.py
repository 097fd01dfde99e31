"""The evaluation routes: from a call to a context to the snapshot's bytes (specification: GET /proxy; POST /proxy). Compiled."""

from __future__ import annotations

from random import Random
from typing import Final

from flagsvc.core.clock import Clock
from flagsvc.core.log import Logger, Throttle, locate_error
from flagsvc.engine.canonical import ALL, ENABLED, NAMED, CacheKeys
from flagsvc.engine.context import Context
from flagsvc.engine.fragments import AnswerShape
from flagsvc.engine.run import STRATEGY, TOGGLE
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.call import Answer, Call, Handler
from flagsvc.http.etag import matches
from flagsvc.http.http_errors import answer_too_large, not_ready, unknown_toggle
from flagsvc.http.messages import POST, Response
from flagsvc.http.trust import TrustedProxies
from flagsvc.proxy.api.answers import Answers
from flagsvc.proxy.api.body import read_json
from flagsvc.proxy.api.cache import AnswerCache, CachedAnswer
from flagsvc.proxy.api.enrich import Enrichment
from flagsvc.proxy.api.query import ContextLimits, named_in
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.configuration.holder import ConfigurationHolder
from flagsvc.proxy.usage import UsageCounters

DEFAULT_ENVIRONMENT: Final = "default"
ENTROPY_BITS: Final = 62
SESSION_BITS: Final = 53
FAULT_EVENTS: Final[dict[str, str]] = {
    STRATEGY: "a custom strategy raised, it counts as false",
    TOGGLE: "a toggle could not be evaluated, it counts as off",
}
"""Kind of a fault → the event in the log."""


class Evaluator:
    """Completes a context of one dialect and answers it from the current snapshot, or from `cache`.

    `random` draws the sessions of callers who have none and the seeds of random stickiness. `fault_throttle` limits the log
    lines about faults.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        holder: ConfigurationHolder,
        usage: UsageCounters,
        answers: Answers,
        shape: AnswerShape,
        cache: AnswerCache,
        enrichment: Enrichment | None,
        clock: Clock,
        random: Random,
        log: Logger,
        fault_throttle: Throttle,
    ) -> None:
        self.app_name = settings.app_name
        self.forced_environment = settings.environment
        self.holder = holder
        self.usage = usage
        self.answers = answers
        self.cache = cache
        self.enrichment = enrichment
        self.trust = TrustedProxies(settings.trust_proxy)
        self.reads_forwarded = self.trust.reads_header
        self.limits = ContextLimits(settings.context_properties_limit, settings.context_value_limit, settings.toggle_limit)
        self.wire_format = answers.wire_format
        self.shape = shape
        self.headers = answers.evaluation
        self.cache_keys: CacheKeys | None = None
        self.clock = clock
        self.random = random
        self.log = log
        self.fault_throttle = fault_throttle
        self.no_states: list[bool] = []
        self.always_needs_time: bool = len(settings.custom_strategies) > 0 or enrichment is not None

    def answer_context(self, call: Call, context: Context, names: list[str], everything: bool) -> Answer:
        """Return the answer for a context: of `names`, or without names of the toggles that are on, or of `everything`."""
        if context.remote_address is None:
            context.remote_address = self.find_address(call)
        if self.enrichment is None:
            return self.evaluate(call, context, names, everything)
        return self.answer_enriched(self.enrichment, call, context, names, everything)

    async def answer_enriched(
        self, enrichment: Enrichment, call: Call, context: Context, names: list[str], everything: bool
    ) -> Response:
        """Return the answer to what the enrichers make of a context; raises what they raise.

        They get the caller's context with its address. Their result is copied, because an enricher may keep it and return it again.
        """
        context.now = self.clock.now() * 1000.0
        enriched = await enrichment.apply(context)
        return self.evaluate(call, enriched.replace(), names, everything)

    def complete(self, context: Context) -> None:
        """Fill in what caller and enrichers left out (behaviour: Default context)."""
        if context.app_name is None:
            context.app_name = self.app_name
        if self.forced_environment is not None:
            context.environment = self.forced_environment
        elif context.environment is None:
            context.environment = DEFAULT_ENVIRONMENT

    def find_address(self, call: Call) -> str | None:
        """Return the caller's address, or None."""
        peer = call.request.peer
        if self.reads_forwarded or ":" in peer:
            return self.trust.address(peer, call.forwarded)
        return peer if peer else None

    def use_snapshot(self, cache_keys: CacheKeys) -> None:
        """Use the snapshot of `cache_keys` from now on.

        If an answer may depend on an address from a header, shared caches must not store it: caches do not know the address.
        """
        self.cache_keys = cache_keys
        self.cache.use_snapshot(cache_keys)
        answers = self.answers
        addressed = self.reads_forwarded and (cache_keys.addressed or self.enrichment is not None)
        self.headers = answers.personal if addressed else answers.evaluation

    def evaluate(self, call: Call, context: Context, names: list[str], everything: bool) -> Response:
        """Return the answer to a context, without evaluation if the caller or the cache has it already (decision 0006)."""
        snapshot = self.holder.current
        if snapshot is None:
            raise not_ready()
        cache_keys = snapshot.cache_keys
        if cache_keys is not self.cache_keys:
            self.use_snapshot(cache_keys)
        self.complete(context)
        if cache_keys.timed or self.always_needs_time:
            context.now = self.clock.now() * 1000.0
        try:
            key = cache_keys.key(context, NAMED if names else ALL if everything else ENABLED, names)
        except TypeError:  # an enricher set a field to a value that is not text: toggles that read it are off
            key = None
        if key is None:
            return self.answer_volatile(snapshot, call, context, names, everything)
        if self.shape.mark:
            key = self.shape.mark + key
        tag = b""
        condition = self.answers.condition(call)
        if condition is not None:
            tag = self.cache.tagger.tag(key)
            if matches(condition, tag):
                return self.answers.not_modified(self.headers, tag)
        entry = self.cache.find(key)
        if entry is not None:
            return self.answer_cached(call, key, entry, names)
        entry = self.run_snapshot(snapshot, context, names, everything)
        if snapshot.memory.faults:
            return self.answer_uncacheable(snapshot, call, entry, names)
        entry.tag = tag if tag else self.cache.tagger.tag(key)
        self.cache.add_repeated(key, entry)
        return self.answer_cached(call, key, entry, names)

    def answer_cached(self, call: Call, key: bytes, entry: CachedAnswer, names: list[str]) -> Response:
        """Return an answer that is fully decided by its canonical bytes, and count the toggles that were asked for by name."""
        if names:
            self.usage.count_all(names, entry.states)
        unpacked = not entry.packed
        response = self.answers.respond_cached(self.headers, call, entry)
        if unpacked and entry.packed and entry.size > 0:
            self.cache.add_packed_size(key, entry)
        return response

    def answer_volatile(self, snapshot: Snapshot, call: Call, context: Context, names: list[str], everything: bool) -> Response:
        """Return an answer that depends on chance or on time. Its tag is computed from its body."""
        if not names and context.session_id is None:
            context.session_id = str(self.random.getrandbits(SESSION_BITS))
        context.entropy = self.random.getrandbits(ENTROPY_BITS)
        return self.answer_uncacheable(snapshot, call, self.run_snapshot(snapshot, context, names, everything), names)

    def answer_uncacheable(self, snapshot: Snapshot, call: Call, entry: CachedAnswer, names: list[str]) -> Response:
        """Return an answer that may differ for the next request: it is volatile, or an error occurred in it."""
        if snapshot.memory.faults:
            self.log_faults(snapshot)
        if names:
            self.usage.count_all(names, entry.states)
        return self.answers.respond(self.headers, call, entry.body)

    def run_snapshot(self, snapshot: Snapshot, context: Context, names: list[str], everything: bool) -> CachedAnswer:
        """Return the snapshot's answer, without a tag. Raises HttpError (413) if it would be huge."""
        if not names:
            pieces = snapshot.listing(context, everything, self.shape)
            return CachedAnswer(b"", b"", self.no_states, pieces)
        body, states = snapshot.named(context, names, self.shape)
        if not body:
            raise answer_too_large()
        return CachedAnswer(b"", body, states)

    def log_faults(self, snapshot: Snapshot) -> None:
        """Log the faults of evaluations, once for each strategy and each toggle (behaviour: Statuses and bodies)."""
        for fault in snapshot.take_faults():
            if self.fault_throttle.allows(f"{fault.kind} {fault.name}"):
                error = locate_error(fault.error)
                self.log.error(FAULT_EVENTS[fault.kind], **{fault.kind: fault.name, "error": error})


class Listing(Handler):
    """GET /proxy and GET /proxy/all, and the same in other dialects."""

    def __init__(self, evaluator: Evaluator, everything: bool) -> None:
        self.evaluator = evaluator
        self.everything = everything
        self.no_names: list[str] = []

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the toggles for the context in the query string. Raises HttpError (400)."""
        evaluator = self.evaluator
        context = evaluator.wire_format.read_query(call.request.query, evaluator.limits)
        return evaluator.answer_context(call, context, self.no_names, self.everything)


class Lookup(Handler):
    """POST /proxy and POST /proxy/all, and the same in other dialects."""

    def __init__(self, evaluator: Evaluator, everything: bool) -> None:
        self.evaluator = evaluator
        self.everything = everything

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the toggles for the context in the body. Raises HttpError (400, 413)."""
        evaluator = self.evaluator
        value = read_json(body, call.media, call.limit, call.depth)
        asked = evaluator.wire_format.read_body(value, evaluator.limits)
        return evaluator.answer_context(call, asked.context, asked.toggles, self.everything)


class SingleLookup(Handler):
    """One toggle by its name, which is the rest of the path below `prefix`, on or off."""

    def __init__(self, evaluator: Evaluator, prefix: str) -> None:
        self.evaluator = evaluator
        self.prefix = prefix

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the toggle for the context in the query string or in the body. Raises HttpError (400, 404, 413)."""
        evaluator = self.evaluator
        name = named_in(call.request.path, self.prefix)
        snapshot = evaluator.holder.current
        if snapshot is None or name not in snapshot.names:
            raise unknown_toggle(call.request.path)
        if call.request.method == POST:
            value = read_json(body, call.media, call.limit, call.depth)
            context = evaluator.wire_format.read_body(value, evaluator.limits).context
        else:
            context = evaluator.wire_format.read_query(call.request.query, evaluator.limits)
        return evaluator.answer_context(call, context, [name], False)
