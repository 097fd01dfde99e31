"""Try: the whole explanation of what the served snapshot answers to a context, with custom strategies and enrichers.

The context is in the body of one request. It is kept nowhere, logged nowhere, and part of no address.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any, Final

from flagsvc.core.log import Throttle
from flagsvc.engine.context import FIELDS, Context
from flagsvc.engine.parts import Part
from flagsvc.engine.reads import Reads
from flagsvc.engine.snapshot import Snapshot
from flagsvc.http.answers import Answer
from flagsvc.http.messages import HttpError
from flagsvc.http.reached_limits import Reached
from flagsvc.proxy.api.enrich import CONTEXT, EnricherError, Enrichment
from flagsvc.proxy.api.evaluation import DEFAULT_ENVIRONMENT
from flagsvc.proxy.api.query import ContextLimits
from flagsvc.proxy.api.wire_format import WireFormat
from flagsvc.proxy.pages.flags import describe_place
from flagsvc.proxy.pages.page import PageCall, PageRow, Scene, ShownEnvironment
from flagsvc.proxy.pages.unfolding import Kept, UnfoldedConfigurations
from flagsvc.reasons.steps import Step, WholeExplanation, tell
from flagsvc.reasons.whole import explain_whole

EXPLAINED: Final = 20
"""The most flags that are explained at once."""
LISTED: Final = 200
"""The most further flags that are listed without an explanation."""
OFFERED: Final = 40
"""The most fields that the form offers by name."""
FREE_ROWS: Final = 2
"""Empty rows for other fields."""
MAX_FIELDS: Final = 300
MAX_BODY: Final = 100 * 1024
ENTROPY_BITS: Final = 62
OF_FIELD: Final = "field."
"""In front of the name of a field in the form."""
OF_TIME: Final = "currentTime"
NOT_OFFERED: Final = "properties"
"""The object that holds all properties is no field that a person fills in."""
ENRICHER_SECONDS: Final = 60.0
"""Seconds between two log lines about one failure of an enricher."""


def try_rows(configurations: UnfoldedConfigurations, scene: Scene) -> tuple[PageRow, ...]:
    """Return the rows of the form and of its answer."""
    enrichments = Enrichments(scene)

    async def show(call: PageCall) -> Answer:
        shown = call.environment(call.given("environment"))
        kept = await configurations.find(shown, call.slices)
        form = await describe_form(call, shown, kept, call.given("flag"), {})
        return Answer(form | {"result": None, "problems": []})

    async def evaluate(call: PageCall) -> Answer:
        shown = call.environment(call.form.text("environment"))
        kept = await configurations.find(shown, call.slices)
        flag, fields = call.form.text("flag"), read_fields(call)
        form = await describe_form(call, shown, kept, flag, fields)
        try:
            given = read_context(shown, fields)
            given.now = scene.clock.now() * 1000.0
            context = complete(await enrich(given, shown, enrichments), scene, shown)
            given = complete(given, scene, shown)
        except HttpError as refused:
            problems = [f"{place.rpartition('/')[2]} {rule}" for place, rule in refused.problems] or [refused.message]
            return Answer(form | {"result": None, "problems": problems}, status=refused.status)
        result = await explain(call, kept, context, flag)
        result |= {"context": context.as_dict(), "enriched": context.as_dict() != given.as_dict()}
        return Answer(form | {"result": result, "problems": []})

    return (
        PageRow("/try", "try.html", show),
        PageRow("/try", "try.html", evaluate, method=b"POST", limit=MAX_BODY),
    )


async def describe_form(call: PageCall, shown: ShownEnvironment, kept: Kept, flag: str, given: dict[str, str]) -> dict[str, Any]:
    """Return what the form offers: the fields that flags read, and the fields that were given."""
    snapshot = kept.unfolded.compiled.snapshot
    offered = await offered_fields(call, snapshot, flag)
    fields = [{"name": name, "value": given.get(name, "")} for name in offered]
    others = [{"name": name, "value": value} for name, value in given.items() if name not in offered]
    others += [{"name": "", "value": ""}] * FREE_ROWS
    return {**describe_place(call, shown, kept), "flag": flag, "fields": fields, "others": others}


async def offered_fields(call: PageCall, snapshot: Snapshot, flag: str) -> list[str]:
    """Return the fields that flags read, standard ones first: those of the named flag and its parents, or of all flags."""
    every: dict[int, Reads] = {}
    of: dict[str, Part] = {}
    for part in snapshot.lineage.parts:
        if part.reads is not None:
            every[id(part.reads)] = part.reads
        if part.toggle is not None:
            of[part.toggle.name] = part
        await call.slices.rest()
    if flag not in of:
        return fields_of(every.values())
    chosen = [of[flag], *(of[each.feature] for each in of[flag].dependencies if each.feature in of)]
    return fields_of(part.reads for part in chosen if part.reads is not None)


def fields_of(every: Iterable[Reads]) -> list[str]:
    """Return the fields that a person can fill in, standard ones first; only those if nothing is read."""
    reads = Reads()
    for each in every:
        reads.merge(each)
    found = set(reads.fields)
    if reads.rollouts or reads.draws:
        found |= {"userId", "sessionId"}
    if reads.moments:
        found.add(OF_TIME)
    if reads.any_field or not found:
        found |= set(FIELDS)
    found.discard(NOT_OFFERED)
    return sorted(found, key=lambda name: (FIELDS.get(name, len(FIELDS) + 1), name))[:OFFERED]


def read_fields(call: PageCall) -> dict[str, str]:
    """Return the fields of the form that are not empty, by name. Raises HttpError (400) for too many."""
    form = call.form
    pairs = [(name.removeprefix(OF_FIELD), values[0]) for name, values in form.items() if name.startswith(OF_FIELD)]
    pairs += zip((each.strip() for each in form.texts("name")), form.texts("value"), strict=False)
    found = {name: value for name, value in pairs if name and value}
    if len(found) > MAX_FIELDS:
        raise HttpError(400, f"the form has more than {MAX_FIELDS} fields", [])
    return found


def read_context(shown: ShownEnvironment, fields: dict[str, str]) -> Context:
    """Return the context of some fields, read as the body of a caller is. Raises HttpError (400)."""
    settings = shown.settings
    limits = ContextLimits(settings.context_properties_limit, settings.context_value_limit, settings.toggle_limit)
    context = WireFormat().read_body({"context": fields}, limits).context
    if OF_TIME in fields and context.current_time is None:
        raise HttpError(400, "currentTime: expected a date, such as 2026-12-24 or 2026-12-24T18:00:00Z", [])
    return context


def complete(context: Context, scene: Scene, shown: ShownEnvironment) -> Context:
    """Return a context with what a caller need not send, and the moment and the draw of this evaluation."""
    settings = shown.settings
    context.app_name = settings.app_name if context.app_name is None else context.app_name
    context.environment = settings.environment or context.environment or DEFAULT_ENVIRONMENT
    context.now = scene.clock.now() * 1000.0
    context.entropy = secrets.randbits(ENTROPY_BITS)
    return context


class Enrichments:
    """The enrichers of each environment. They are kept, so that the bound on hanging enrichers holds over all requests."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._throttle, self._reached = Throttle(scene.clock, ENRICHER_SECONDS), Reached()
        self._made: dict[str, tuple[ShownEnvironment, Enrichment]] = {}

    def find(self, shown: ShownEnvironment) -> Enrichment:
        """Return the enrichers of an environment. Those of its former configuration are forgotten."""
        settings = shown.settings
        known = self._made.get(shown.name)
        if known is not None and known[0].enrichers is shown.enrichers and known[0].settings is settings:
            return known[1]
        made = Enrichment(
            shown.enrichers,
            self._scene.log,
            self._throttle,
            self._reached,
            seconds=settings.enricher_timeout / 1000.0,
            lenient=settings.enricher_failure == CONTEXT,
        )
        self._made[shown.name] = shown, made
        return made


async def enrich(context: Context, shown: ShownEnvironment, enrichments: Enrichments) -> Context:
    """Return a context after every enricher, which get a copy. Raises HttpError (500) if one fails; the log says why."""
    if not shown.enrichers:
        return context.replace()
    try:
        found = await enrichments.find(shown).apply(context.replace(properties=dict(context.properties)))
    except EnricherError as error:
        raise HttpError(500, f"the context enricher {error} failed; the log says why", []) from None
    return found.replace()


async def explain(call: PageCall, kept: Kept, context: Context, flag: str) -> dict[str, Any]:
    """Return the answer of every toggle, and the whole explanation of those whose name has `flag` in it, in slices."""
    snapshot = kept.unfolded.compiled.snapshot
    wanted = flag.casefold()
    fitting = [name for name in kept.names if wanted in name.casefold()]
    if flag in snapshot.toggles:
        fitting.remove(flag)
        fitting.insert(0, flag)
    on = 0
    answers: dict[str, bool] = {}
    for name in kept.names:
        answers[name] = snapshot.decide(context, name)[0]
        on += answers[name]
        snapshot.take_faults()  # before callers are served again: these are not theirs
        await call.slices.rest()
    explained = []
    for name in fitting[:EXPLAINED]:
        [whole] = explain_whole(kept.unfolded, context, [name])
        explained.append(describe(whole, as_data=call.wants_data))
        await call.slices.rest()
    others = fitting[EXPLAINED : EXPLAINED + LISTED]
    return {
        "total": len(kept.names),
        "on": on,
        "fitting": len(fitting),
        "explained": explained,
        "others": [{"name": name, "enabled": answers[name]} for name in others],
    }


def describe(whole: WholeExplanation, *, as_data: bool) -> dict[str, Any]:
    """Return an explanation: its fields as data, or its steps as lines."""
    if as_data:
        return whole.to_json()
    inputs = [name for name, took_part in (("the time", whole.by_time), ("chance", whole.by_chance)) if took_part]
    return {
        "name": whole.name,
        "enabled": whole.enabled,
        "variant": whole.variant,
        "decided": whole.decided,
        "steps": [describe_step(step, reached=True) for step in whole.steps],
        "turning": whole.turning_words(),
        "inputs": " and ".join(inputs),
    }


def describe_step(step: Step, *, reached: bool) -> dict[str, Any]:
    """Return a step as a line with those inside. A step that is not reached says so, if the step around it is reached."""
    return {
        "words": tell(step),
        "answer": step.answer,
        "skipped": reached and not step.reached,
        "inner": [describe_step(each, reached=step.reached) for each in step.inner()],
    }
