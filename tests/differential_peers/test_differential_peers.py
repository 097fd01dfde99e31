"""What `flagsvc migrate` prints for a peer answers the peer's callers as the peer did, but for a list of exclusions.

The reference runs beside ours. Unleash Edge is no package of a registry that tests use, so its answers are recorded
(`edge_recording`). Where the variable EDGE names its program, the recording is compared with it.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import edge_recording
import peer_exclusions
import pytest
from peer_compare import Figures, Records, compare, explain
from peer_meaning import Record
from peer_rows import Exclusion, Row
from peer_runs import ask_ours, ask_peer, edge_program
from peer_scenes import EDGE, REFERENCE, SCENES, Scene

from support import needs, processes

REPORT = processes.ROOT / ".cache" / "peers-compared.md"
LEAST = 90
"""So many requests must be answered as by the peer, without any exclusion."""
DIALECTS = {
    "/proxy": "`/proxy`",
    "/Proxy": "`/proxy`",
    "//proxy": "`/proxy`",
    "/api/client": "server-side API",
    "/api": "frontend API",
    "/edge": "tokens",
    "": "operations",
}
"""Beginning of a path → what it belongs to."""
WAYS = [
    pytest.param(scene, written, printed, id=f"{scene.name}-{written}-{printed}".replace(" ", "-"))
    for scene in SCENES
    for written, printed in scene.ways
]
TABLE = {name: each for name, each in vars(peer_exclusions).items() if isinstance(each, Exclusion)}


@functools.cache
def answers_of(scene: Scene) -> Records:
    """Return what the peer of a scene answers."""
    return edge_recording.read()[scene.name] if scene.peer == EDGE else ask_peer(scene)


@functools.cache
def compared(scene: Scene, written: str, printed: str) -> Figures:
    """Return how our answers compare, started from the peer's configuration in one form, and as another one."""
    theirs = answers_of(scene)
    found = ask_ours(scene, written, printed, theirs)
    return compare(scene.rows, theirs, found, is_ordered=scene.peer == REFERENCE)


@pytest.mark.parametrize(("scene", "written", "printed"), WAYS)
def test_ours_answers_as_the_peer_did(scene: Scene, written: str, printed: str) -> None:
    """Every answer is the peer's, or what the exclusions of its row say; and each exclusion is needed there."""
    figures = compared(scene, written, printed)
    if figures.problems:
        pytest.fail("\n".join(figures.problems), pytrace=False)


if edge_program() or not needs.everything():  # no registry that CI uses has Edge

    @pytest.mark.parametrize("scene", [scene for scene in SCENES if scene.peer == EDGE], ids=lambda scene: scene.name)
    def test_the_recording_is_true(scene: Scene) -> None:
        """Edge itself answers as recorded, where the variable EDGE names it."""
        if not edge_program():
            pytest.skip("the variable EDGE names no program; its answers are recorded")
        found = ask_peer(scene)
        assert {title: each for title, each in found.items() if each != answers_of(scene)[title]} == {}
        assert found.keys() == answers_of(scene).keys()


def test_every_exclusion_is_in_use() -> None:
    """An exclusion of the table is one of a row, with the reason that the table has; titles of rows are unique."""
    used = {each.name for scene in SCENES for row in scene.rows for each in row.but}
    assert used == {each.name for each in TABLE.values()}
    reasons = {(each.name, each.reason) for scene in SCENES for row in scene.rows for each in row.but}
    assert reasons == {(each.name, each.reason) for each in TABLE.values()}
    for scene in SCENES:
        assert [title for title, times in Counter(row.title for row in scene.rows).items() if times > 1] == []


def test_the_figures(record_property: Callable[[str, object], None]) -> None:
    """At least 90 requests are answered alike without any exclusion; all figures are written down."""
    found = {scene: compared(scene, *scene.ways[0]) for scene in SCENES}
    lines = list(page(found))
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n".join([*lines, ""]))
    record_property("summary", "\n".join(["", *lines]))
    assert sum(figures.agreeing for figures in found.values()) >= LEAST
    assert not [problem for figures in found.values() for problem in figures.problems]


def page(found: dict[Scene, Figures]) -> Iterator[str]:
    """Yield the lines of the report: a table of the scenes, one of the dialects, and one of the exclusions."""
    yield from table("scene", {scene.name: list(scene.rows) for scene in found})
    yield ""
    yield from table("dialect", by_dialect(row for scene in found for row in scene.rows))
    yield from ("", "| exclusion | requests | reason | in |", "|---|---|---|---|")
    times = sum((figures.excluded for figures in found.values()), Counter[str]())
    for each in TABLE.values():
        yield f"| {each.name} | {times[each.name]} | {each.reason} | {each.source} |"


def by_dialect(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return rows by the beginning of their path."""
    found: dict[str, list[Row]] = {name: [] for name in DIALECTS.values()}
    for row in rows:
        found[next(name for part, name in DIALECTS.items() if row.path.startswith(part))].append(row)
    return found


def table(title: str, groups: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yield a table of groups of rows: how many agree without an exclusion."""
    yield from (f"| {title} | requests | as the peer | with an exclusion |", "|---|---|---|---|")
    for name, rows in {**groups, "together": [row for each in groups.values() for row in each]}.items():
        agreeing = sum(not row.but for row in rows)
        yield f"| {name} | {len(rows)} | {agreeing} | {len(rows) - agreeing} |"


FLAGS = {"status": 200, "toggles": "a -b c=red"}
ALIKE = Row("alike", "/proxy")
SHORTER = Exclusion("shorter", "ours leaves one out", "", {"toggles.a": None})
OTHER = Exclusion("other", "ours answers another one", "", {}, "alike")


@pytest.mark.parametrize(
    ("row", "ours", "problems"),
    [
        (ALIKE, FLAGS, []),
        (ALIKE, FLAGS | {"toggles": "c=red a -b"}, ["order"]),
        (ALIKE, FLAGS | {"status": 404}, ["status"]),
        (ALIKE, FLAGS | {"toggles": "a b c=red"}, ["order", "toggles.b"]),
        (ALIKE, FLAGS | {"toggles": "a -b c=blue"}, ["order", "toggles.c"]),
        (ALIKE._replace(but=(SHORTER,)), {"status": 200, "toggles": "-b c=red"}, ["order"]),
        (ALIKE._replace(but=(SHORTER,)), FLAGS, ["toggles.a"]),
        (ALIKE._replace(but=(OTHER,)), FLAGS, ["not needed any more"]),
        (Row("refused", "/proxy", but=(OTHER,)), FLAGS, []),
        (Row("refused", "/proxy", but=(OTHER,)), {"status": 404}, ["order", "status", *(f"toggles.{each}" for each in "abc")]),
        (Row("refused", "/proxy"), {"status": 404, "etag": True}, ["etag"]),
    ],
)  # fmt: skip
def test_the_comparison(row: Row, ours: Record, problems: list[str]) -> None:
    """It finds each field that differs, and each exclusion that explains nothing."""
    theirs: Records = {"alike": FLAGS, "refused": {"status": 404}}
    found = explain(row, theirs, {row.title: ours}, is_ordered=True)
    assert [line.split(": ")[1] for line in found] == problems
