"""What saving a strategy changes, in words and percent, and how two versions of one differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from flagsvc.engine.model import SegmentSpec
from flagsvc.reasons.impact import AGAIN
from flagsvc.reasons.words import DEFAULT, words_of
from flagsvc.server.pages import variants_form
from flagsvc.server.pages.conditions import constraints_of, words_without
from flagsvc.server.pages.strategy_form import drawn_variants, impact, segment_ids
from flagsvc.server.store.checks import Json, fill_parameters

PARTS: Final = {
    "title": "Title",
    "disabled": "Disabled",
    "rollout": "Rollout, %",
    "stickiness": "Sticks to",
    "group": "Group",
}
"""Field of the form → what people call it."""

EVERYONE: Final[Json] = {"name": "default", "disabled": False}
"""What a flag without an active strategy does where it is on."""
OF_FITTING: Final = "The percentages are of the users who fit the conditions."


def preview_of(
    flag: str,
    stored: Json | None,
    wanted: Json,
    others: Sequence[Json],
    segments: Mapping[str, SegmentSpec],
    *,
    enabled: bool,
) -> Json:
    """Return what a change does. `others` are the other strategies of `flag` there. `enabled` tells whether the flag is on.

    A flag that is on without an active strategy is on for everyone.
    """
    active = [each for each in others if not each["disabled"]]
    filled = fill_parameters(wanted["name"], wanted["parameters"], flag, DEFAULT)
    for_all = enabled and not active and (stored is None or stored["disabled"])
    found = impact(EVERYONE if for_all else stored, wanted, segments)
    before = None if found.before is None else found.before.share
    after = None if found.after is None else found.after.share
    counted = bool(found.share.gained or found.share.lost)
    notes = [OF_FITTING] * (counted and bool(wanted["constraints"] or wanted["segments"]))
    return {
        "before": "" if stored is None else words_of(stored, segments, flag),
        "after": words_of(wanted, segments, flag),
        "sentences": found.words(),
        "again": found.share.drawn == AGAIN,
        "share": None if before is None or after is None else {"before": before, "after": after},
        "variants": variants_form.preview(drawn_variants(stored), drawn_variants(wanted | {"parameters": filled})),
        "notes": notes + words_without(wanted["constraints"]) + notes_of(stored, wanted, active, enabled=enabled),
    }


def notes_of(stored: Json | None, wanted: Json, others: Sequence[Json], *, enabled: bool) -> list[str]:
    """Return notes: the flag is off, other strategies are active, or no strategy is."""
    was = stored is not None and not stored["disabled"]
    if not enabled:
        return ["The flag is off here, so no user has it now. This holds once it is on."]
    if others:
        return ["Other strategies of this flag are active here. They may give it to users all the same."]
    if was and wanted["disabled"]:
        return ["It is the last active strategy here, so the flag is switched off."]
    if not was and not wanted["disabled"]:
        return ["No strategy is active here, so the flag is on for everyone now. With this one it is on for those only."]
    return []


def differences(theirs: Json, mine: Json, segments: Mapping[str, SegmentSpec]) -> list[Json]:
    """Return the parts in which two forms differ, each with both versions in words."""
    found = [(title, theirs[name], mine[name]) for name, title in PARTS.items()]
    names = dict.fromkeys([*theirs["parameters"], *mine["parameters"]])
    found += [(name, theirs["parameters"].get(name, ""), mine["parameters"].get(name, "")) for name in names]
    found.append(("Variants", variants_of_form(theirs), variants_of_form(mine)))
    found.append(("Conditions", *tell_apart(conditions_of(theirs), conditions_of(mine), segments)))
    return [{"part": part, "theirs": show(one), "mine": show(other)} for part, one, other in found if one != other]


def variants_of_form(shown: Json) -> str:
    return variants_form.told(shown["variants"], shown[variants_form.STICKS_TO])


def conditions_of(shown: Json) -> Json:
    """Return a strategy for everyone with the conditions and segments of a form."""
    parts = {"constraints": constraints_of(shown["conditions"]), "segments": segment_ids(shown)}
    return {"name": "default", "disabled": False, **parts}


def tell_apart(theirs: Json, mine: Json, segments: Mapping[str, SegmentSpec]) -> tuple[str, str]:
    """Return the conditions of two strategies in words. Where long lists look alike, the second one says what differs."""
    one, other = words_of(theirs, segments), words_of(mine, segments)
    found = impact(theirs, mine, segments) if one == other else None
    more = "" if found is None else " ".join(found.conditions)
    return one, f"{other} ({more})" if more else other


def show(value: object) -> str:
    """Return a value of a form as a text."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
