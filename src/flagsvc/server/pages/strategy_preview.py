"""What saving a strategy changes, in words and percent, and how two versions of one differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from flagsvc.engine.model import SegmentSpec
from flagsvc.reasons.impact import AGAIN
from flagsvc.server.pages.conditions import constraints_of
from flagsvc.server.pages.strategy_form import impact
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources.flag_sentences import words_of

PARTS: Final = {
    "title": "Title",
    "disabled": "Disabled",
    "rollout": "Rollout, %",
    "stickiness": "Sticks to",
    "group": "Group",
}
"""Field of the form → what people call it."""


def preview_of(
    stored: Json | None, wanted: Json, others: Sequence[Json], segments: Mapping[str, SegmentSpec], *, enabled: bool
) -> Json:
    """Return what a change does. `others` are the other strategies of the flag there, and `enabled` tells whether it is on."""
    found = impact(stored, wanted, segments)
    before = None if found is None or found.before is None else found.before.share
    after = None if found is None or found.after is None else found.after.share
    return {
        "before": "" if stored is None else words_of(stored, segments),
        "after": words_of(wanted, segments),
        "sentences": [] if found is None else found.words(),
        "again": found is not None and found.share.drawn == AGAIN,
        "share": None if before is None or after is None else {"before": before, "after": after},
        "notes": notes_of(stored, wanted, [each for each in others if not each["disabled"]], enabled=enabled),
    }


def notes_of(stored: Json | None, wanted: Json, others: Sequence[Json], *, enabled: bool) -> list[str]:
    """Return what else is to be known: the flag is off, other strategies are active, or none is."""
    was = stored is not None and not stored["disabled"]
    if not enabled:
        return ["The flag is off here, so no user has it now."]
    if others:
        return ["Other strategies of this flag are active here. They may give it to users all the same."]
    if was and wanted["disabled"]:
        return ["It is the last active strategy here, so the flag is switched off."]
    if not was and not wanted["disabled"]:
        return ["No strategy is active here, so the flag is on for everyone now. With this one it is on for fewer."]
    return []


def differences(theirs: Json, mine: Json, segments: Mapping[str, SegmentSpec]) -> list[Json]:
    """Return the parts in which two forms differ, each with both versions in words."""
    found = [(title, theirs[name], mine[name]) for name, title in PARTS.items()]
    names = dict.fromkeys([*theirs["parameters"], *mine["parameters"]])
    found += [(name, theirs["parameters"].get(name, ""), mine["parameters"].get(name, "")) for name in names]
    found.append(("Conditions", condition_words(theirs, segments), condition_words(mine, segments)))
    return [{"part": part, "theirs": show(one), "mine": show(other)} for part, one, other in found if one != other]


def condition_words(shown: Json, segments: Mapping[str, SegmentSpec]) -> str:
    """Return the conditions and segments of a form in words."""
    used = [int(each) if each.isdigit() else each for each in shown["segments"]]
    return words_of({"name": "default", "constraints": constraints_of(shown["conditions"]), "segments": used}, segments)


def show(value: object) -> str:
    """Return a value of a form as a text."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
