"""Flags: which the served configuration has, how they come out in words, and how often they were on and off since the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

from flagsvc.http.answers import Answer
from flagsvc.http.messages import HttpError
from flagsvc.proxy.pages.page import PageCall, PageRow, ShownEnvironment, moment
from flagsvc.proxy.pages.unfolding import Kept, UnfoldedConfigurations
from flagsvc.reasons.unfolded import Unfolded, UnfoldedFeature, UnfoldedStrategy
from flagsvc.reasons.words import DEFAULT, ROLLOUTS, dependency_words, rollout_of, strategy_words, variants_words

PAGE_SIZE: Final = 50
OUTCOMES: Final = {True: "on for everyone", False: "off for everyone", None: "depends"}
"""Whether a toggle always comes out on or off; None if that depends on the context."""
FACTS: Final = ("type", "project", "description")
"""Texts of a flag that a document may have beside what decides."""


def flag_rows(configurations: UnfoldedConfigurations) -> tuple[PageRow, ...]:
    async def show_list(call: PageCall) -> Answer:
        shown = call.environment(call.given("environment"))
        kept = await configurations.find(shown, call.slices)
        query = call.given("q")
        names = [name for name in kept.names if query.casefold() in name.casefold()] if query else kept.names
        await call.slices.rest()
        flags = []
        page, place = choose_page(call, names)
        for name in page:
            flags.append(describe_flag(kept.unfolded, shown, name))
            await call.slices.rest()
        kept_query = {name: text for name, text in (("q", query), ("environment", shown.name)) if text}
        return Answer(
            {
                **describe_place(call, shown, kept),
                "flags": flags,
                **place,
                "q": query,
                "address": urlencode(kept_query),
            }
        )

    async def show_flag(call: PageCall) -> Answer:
        shown = call.environment(call.given("environment"))
        kept = await configurations.find(shown, call.slices)
        [name] = call.params
        if name not in kept.unfolded.compiled.snapshot.toggles:
            raise HttpError(404, "the served configuration has no such flag", [])
        flag = describe_flag(kept.unfolded, shown, name)
        return Answer({**describe_place(call, shown, kept), "flag": flag})

    return (PageRow("/flags", "flags.html", show_list), PageRow("/flags/:name", "flag.html", show_flag))


def describe_place(call: PageCall, shown: ShownEnvironment, kept: Kept) -> dict[str, Any]:
    """Return the configuration of a page, and the names of all environments."""
    return {
        "environment": shown.name,
        "environments": [name for name in call.scene.list_environments() if name],
        "shortRevision": kept.short,
        "revision": kept.revision,
    }


def choose_page(call: PageCall, names: Sequence[str]) -> tuple[Sequence[str], dict[str, int]]:
    """Return the names on the page that a call asks for, the first one by default; and what the page tells of all pages."""
    text = call.given("page")
    number = max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else 1
    place = {"total": len(names), "page": number, "pages": max(1, -(-len(names) // PAGE_SIZE))}
    return names[(number - 1) * PAGE_SIZE : number * PAGE_SIZE], place


def describe_flag(unfolded: Unfolded, shown: ShownEnvironment, name: str) -> dict[str, Any]:
    """Return a flag of the snapshot in words. What it says of itself comes from the document."""
    toggle = unfolded.compiled.snapshot.toggles[name]
    outcome = toggle.outcomes[toggle.constant].enabled if toggle.constant >= 0 else None
    feature = unfolded.feature(name)
    yes, no = shown.asked.since_start(name)
    changed = shown.changes.changed_in(name)
    raw = unfolded.raw.get(name, [{}])[-1]
    told = raw if isinstance(raw, dict) else {}
    return {
        "name": name,
        **{fact: told[fact] if isinstance(told.get(fact), str) else "" for fact in FACTS},
        "stale": told.get("stale") is True,
        "outcome": outcome,
        "words": OUTCOMES[outcome],
        **({"enabled": False, "strategies": [], "variants": "", "needs": []} if feature is None else rule(unfolded, feature)),
        "asked": {"yes": yes, "no": no},
        "changedIn": None
        if changed is None
        else {
            "shortRevision": changed.short,
            "revision": changed.revision,
            "when": moment(changed.since),
            "first": changed.is_first,
        },
    }


def rule(unfolded: Unfolded, feature: UnfoldedFeature) -> dict[str, Any]:
    spec = feature.spec
    return {
        "enabled": spec.enabled,
        "strategies": [describe_strategy(unfolded, each) for each in feature.strategies],
        "variants": words_of_variants(spec.variants),
        "needs": [{"feature": each.feature, "words": dependency_words(each)} for each in spec.dependencies],
    }


def describe_strategy(unfolded: Unfolded, strategy: UnfoldedStrategy) -> dict[str, Any]:
    """Return a strategy in words, with the share of a rollout."""
    spec, custom = strategy.spec, unfolded.options.custom_strategies
    is_rollout = spec.name in ROLLOUTS and spec.name not in custom
    return {
        "id": strategy.identity or "",
        "title": strategy.title or "",
        "name": spec.name,
        "words": strategy_words(spec, unfolded.segments, disabled=strategy.disabled, custom=custom),
        "share": rollout_of(spec).share if is_rollout else None,
        "variants": words_of_variants(spec.variants),
    }


def words_of_variants(variants: list[Any]) -> str:
    """Return variants in words; empty without any."""
    return variants_words(variants, variants[0].stickiness or DEFAULT) if variants else ""
