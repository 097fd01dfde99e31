"""How changes of a flag itself are undone: its description, its archiving, its creation and its end."""

from __future__ import annotations

from typing import Any

from flagsvc.server.store.checks import Json
from flagsvc.server.store.event_kinds import Side
from flagsvc.server.store.resources import feature_archive, features, whole_features
from flagsvc.server.store.resources.dependencies import children_of, have_dependencies
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.changes import Change
from flagsvc.server.store.undo.subjects import Path, Subject, of_flag

DESCRIPTION = "description"


def read_description(tx: Tx, change: Change) -> Side:
    """Return the description of the flag."""
    row = features.find(tx, change.feature or "")
    return None if row is None else features.metadata(row)


def restore_description(tx: Tx, change: Change) -> None:
    """Describe the flag as it was."""
    features.put_back(tx, change.feature or "", change.before or {})


def read_stale(tx: Tx, change: Change) -> Side:
    """Return whether the flag is stale."""
    row = features.find(tx, change.feature or "")
    return None if row is None else {"stale": row.stale}


def restore_stale(tx: Tx, change: Change) -> None:
    """Mark the flag as stale or not, as it was."""
    row = features.find(tx, change.feature or "")
    if row is not None:
        features.set_stale(tx, row.project, [row.name], stale=(change.before or {})["stale"])


def read_archiving(tx: Tx, change: Change) -> Side:
    """Return since when the flag is archived and where it is on; and the flags that depend on it if the undo archives it again."""
    row = features.find(tx, change.feature or "")
    if row is None:
        return None
    state = feature_archive.archive_state(tx, row)
    found: Json = {name: state[name] for name in change.after or {}}
    children = children_of(tx, [row.name]) if (change.before or {}).get("archivedAt") else []
    return found | ({"children": children} if children else {})


def restore_archiving(tx: Tx, change: Change) -> None:
    """Archive or revive the flag, as it was; a revived one is on where it was on."""
    feature_archive.put_back_state(tx, change.feature or "", change.before or {})


def archiving_paths(change: Change) -> tuple[Path, ...]:
    """Return the paths of the archiving and of the switches."""
    flag = change.feature or ""
    return ("flag", flag, DESCRIPTION, "archived"), ("flag", flag, "in")


def read_flag(tx: Tx, change: Change) -> Side:
    """Return the flag with the members that the event holds; with all of it if the flag has more than its event tells."""
    row = features.find(tx, change.feature or "")
    if row is None:
        return None
    whole = whole_features.read_whole(tx, [row])[row.name]
    held = change.after or {}
    needed: Json = {"hasDependencies": True} if have_dependencies(tx, [row.name]) else {}
    more = {name for name in whole if name not in held and not _is_bare(name, whole[name])}
    return {name: value for name, value in whole.items() if name in held or name in more} | needed


def _is_bare(name: str, value: Any) -> bool:
    """Return whether a member of a flag is as that of a new flag."""
    if name == "environments":
        return all(state == whole_features.OFF for state in value.values())
    return name in ("createdBy", "createdById", "position") or not value


def restore_flag(tx: Tx, change: Change) -> None:
    """Delete the flag that was created; else create it as it was."""
    if change.before is not None:
        whole_features.put_back(tx, change.before)
        return
    row = features.find(tx, change.feature or "")
    feature_archive.remove_rows(tx, [] if row is None else [row])


DESCRIBED = Subject("description", read_description, restore_description, of_flag(DESCRIPTION))
STALE = Subject("mark as stale", read_stale, restore_stale, of_flag(DESCRIPTION, "stale"))
ARCHIVING = Subject("flag", read_archiving, restore_archiving, archiving_paths)
FLAG = Subject("flag", read_flag, restore_flag, of_flag())
