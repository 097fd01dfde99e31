"""Compares what ours answered with what the peer answered, row by row, under the exclusions of the row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from peer_meaning import Record
from peer_rows import Exclusion, Row

Records: TypeAlias = Mapping[str, Record]
WORDS = ("toggles", "features")
"""Fields of words, one for each flag."""
TABLES = ("payloads", "changed", "tokens", "cors", "counted")
"""Fields with members."""
ENDS = "~"


def explain(row: Row, theirs: Records, ours: Records, *, is_ordered: bool) -> list[str]:
    """Return what is wrong with a row, a line each: exclusions that change nothing, and fields that are not as they must be."""
    peer, found = flat(theirs[row.title], is_ordered=is_ordered), flat(ours[row.title], is_ordered=is_ordered)
    wanted, idle = want(row, theirs, is_ordered=is_ordered)
    differing = [name for name in sorted(wanted.keys() | found.keys()) if wanted.get(name) != found.get(name)]
    return [
        *(f"{row.title}: not needed any more: {name}" for name in idle),
        *(
            f"{row.title}: {name}: the peer says {peer.get(name)!r}, ours {found.get(name)!r}, wanted {wanted.get(name)!r}"
            for name in differing
        ),
    ]


def want(row: Row, theirs: Records, *, is_ordered: bool) -> tuple[dict[str, Any], list[str]]:
    """Return the fields that ours must have, and the names of the exclusions that change nothing."""
    wanted, idle = flat(theirs[row.title], is_ordered=is_ordered), []
    for exclusion in row.but:
        before = dict(wanted)
        apply(exclusion, wanted, theirs, is_ordered=is_ordered)
        if before == wanted:
            idle.append(exclusion.name)
    return wanted, idle


def apply(exclusion: Exclusion, wanted: dict[str, Any], theirs: Records, *, is_ordered: bool) -> None:
    """Change what is wanted of ours to what the exclusion says."""
    if exclusion.like:
        wanted.clear()
        wanted.update(flat(theirs[exclusion.like], is_ordered=is_ordered))
    for name, value in exclusion.ours.items():
        for known in [each for each in wanted if each == name or each.startswith(f"{name}.")]:
            del wanted[known]
        if value is not None:
            wanted.update(flat({name: value}, is_ordered=is_ordered))


def flat(record: Record, *, is_ordered: bool) -> dict[str, Any]:
    """Return a record with a field for each flag, token, header and application."""
    found: dict[str, Any] = {}
    for name, value in record.items():
        if name in WORDS and isinstance(value, str):
            found |= {f"{name}.{bare(word)}": word for word in value.split() if not word.endswith(ENDS)}
            found |= {"order": value} if name == "toggles" and is_ordered else {}
        elif name in TABLES:
            found |= {f"{'features' if name == 'changed' else name}.{key}": each for key, each in value.items()}
        else:
            found[name] = value
    return found


def bare(word: str) -> str:
    """Return the name in a word."""
    return word.strip("-!").partition("=")[0]
