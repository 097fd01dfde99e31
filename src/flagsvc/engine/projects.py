"""A part of a snapshot: the toggles of some projects, for callers whose key is of these projects only.

Nothing is compiled for it. Toggles, predicates and memory are those of the whole snapshot.
"""

from __future__ import annotations

from flagsvc.engine.digest import combined
from flagsvc.engine.features import Toggle
from flagsvc.engine.lists import ListViews, ListViewsBuilder
from flagsvc.engine.parts import Part
from flagsvc.engine.reads import Reads
from flagsvc.engine.snapshot import Snapshot


def restrict(snapshot: Snapshot, projects: frozenset[str]) -> Snapshot:
    """Return the snapshot without the toggles of other projects. A toggle without a project belongs to every project.

    A toggle whose parent is of another project is decided as in the whole snapshot.
    """
    parts: dict[str, Part] = {}
    for part in snapshot.lineage.parts:
        if part.toggle is not None:
            parts[part.toggle.name] = part
    toggles: dict[str, Toggle] = {}
    names: dict[str, frozenset[str]] = {}
    reads = Reads()
    merged: set[int] = set()
    for name, toggle in snapshot.toggles.items():
        part = parts[name]
        if part.project and part.project not in projects:
            continue
        toggles[name] = toggle
        names[name] = snapshot.names[name]
        if toggle.constant < 0:
            add_reads(reads, part, merged)
            for parent in [parts[each.feature] for each in part.dependencies if each.feature in parts]:
                add_reads(reads, parent, merged)
    revision = combined([snapshot.revision.encode(), *[project.encode() for project in sorted(projects)]])
    made = Snapshot(
        revision,
        toggles,
        names,
        {},
        snapshot.memory,
        reads,
        False,
        snapshot.lineage,
        snapshot.lists,
        revision,
    )
    made.unknown_suffix = snapshot.unknown_suffix
    for shape_name, view in snapshot.views.items():
        made.views[shape_name] = restrict_view(view, toggles, revision)
    return made


def restrict_view(view: ListViews, toggles: dict[str, Toggle], scope: str) -> ListViews:
    """Return the list answers of these toggles in the shape of other ones."""
    builder = ListViewsBuilder(view.shape, None, toggles, scope)
    for toggle in toggles.values():
        builder.add(toggle)
    return builder.finish()


def add_reads(reads: Reads, part: Part, merged: set[int]) -> None:
    """Add what a part reads, unless an equal one is among the `merged`."""
    if part.reads is not None and id(part.reads) not in merged:
        merged.add(id(part.reads))
        reads.merge(part.reads)
