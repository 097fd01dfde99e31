"""Who polls: what each instance has, since when, and when it counts as gone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.server.api.pollers import (
    KEPT_COMMITS,
    KEPT_DOCUMENTS,
    MAX_NAME,
    MAX_POLLERS,
    SILENT_S,
    Arrival,
    Commit,
    Pollers,
    count_arrived,
    find_arrival,
)
from flagsvc.server.store.documents import ClientDocument, DocumentQuery

QUERY = DocumentQuery("production")
OTHER = DocumentQuery("development")


def document(revision: int) -> ClientDocument:
    """Return the document of a revision."""
    return ClientDocument(b"", None, f"digest-{revision}", b"", revision)


def test_an_instance_has_what_it_got_last() -> None:
    """A new document begins a new time; the same one goes on, under the revision that it came with."""
    pollers = Pollers()
    who = (b"web", b"i-1", b"flagsvc:1")
    for now, revision in ((100.0, 1), (115.0, 1), (130.0, 2)):
        pollers.note(QUERY, who, document(revision), now)
    [found] = pollers.list_all()
    assert (found.app_name, found.instance_id, found.sdk) == ("web", "i-1", "flagsvc:1")
    assert (found.revision, found.since, found.polled, found.interval) == (2, 130.0, 130.0, 15.0)
    same = ClientDocument(b"", None, "digest-2", b"", 9)
    pollers.note(QUERY, who, same, 145.0)
    [found] = pollers.list_all()
    assert (found.revision, found.since, found.polled) == (2, 130.0, 145.0)


def test_instances_are_apart() -> None:
    """Each name, instance and query is one of its own; one without any name is not noted, nor a very long query."""
    pollers = Pollers()
    for who in ((b"a", b"1", None), (b"a", b"2", None), (b"b", b"1", None)):
        pollers.note(QUERY, who, document(1), 0.0)
        pollers.note(OTHER, who, document(1), 0.0)
    pollers.note(QUERY, (None, None, None), document(1), 0.0)
    assert len(pollers.list_all()) == 6
    pollers = Pollers()
    for query in (DocumentQuery("a", prefix="x" * 1001), DocumentQuery("a", tags=(("t", "x" * 1001),))):
        pollers.note(query, (b"app", None, None), document(1), 0.0)
    assert pollers.list_all() == []


def test_names_and_numbers_are_bounded() -> None:
    """Callers cannot fill the memory: long names are cut, and the instance that was silent longest is forgotten."""
    pollers = Pollers()
    for number in range(MAX_POLLERS + 10):
        pollers.note(QUERY, (b"%d" % number + b"x" * 1000, b"y" * 1000, b"z" * 1000), document(1), float(number))
    every = pollers.list_all()
    assert len(every) == MAX_POLLERS and every[-1].app_name.startswith("10x")
    assert {len(each.app_name) for each in every} == {len(each.sdk) for each in every} == {MAX_NAME}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3)), min_size=1, max_size=40))
def test_what_has_arrived(polls: list[tuple[int, int]]) -> None:
    """Of the instances that still poll, those count that have the newest document of their query."""
    pollers, last = Pollers(), {}
    for moment, (number, revision) in enumerate(polls):
        pollers.note(QUERY, (b"app", b"%d" % number, None), document(revision), float(moment))
        last[number] = revision
    wanted = sum(revision == 3 for revision in last.values()), len(last)
    assert count_arrived(pollers.list_all(), {QUERY: "digest-3"}, float(len(polls))) == wanted
    assert count_arrived(pollers.list_all(), {QUERY: "digest-3"}, 4 * SILENT_S + 4 * len(polls)) == (0, 0)


COMMIT = Commit(5, 100.0)


@pytest.mark.parametrize(
    ("polls", "wanted"),
    [
        ([], (0, 0, False, None, 0)),
        ([(3, 90.0)], (1, 0, False, None, 1)),
        ([(3, 90.0), (5, 100.25)], (1, 1, True, 0.25, 0)),
        ([(3, 90.0), (5, 100.25), (5, 115.0), (7, 130.0)], (1, 1, True, 0.25, 0)),
        ([(3, 90.0), (7, 103.0)], (1, 1, True, 3.0, 0)),
        ([(3, 90.0), (3, 105.0)], (1, 1, False, None, 0)),
        ([(3, 90.0), (5, 99.9)], (1, 1, True, 0.0, 0)),
        ([(6, 120.0)], (1, 1, True, None, 0)),
        ([(3, 90.0), *((each, 100.0 + each) for each in range(5, 6 + KEPT_DOCUMENTS))], (1, 1, True, None, 0)),
        ([(3, 100.0 - SILENT_S - 1)], (0, 0, False, None, 0)),
        ([(3, 100.0 - SILENT_S - 1), (5, 101.0)], (1, 1, True, 1.0, 0)),
    ],
)
def test_where_a_change_is(polls: list[tuple[int, float]], wanted: tuple[int, int, bool, float | None, int]) -> None:
    """An instance that has polled since the commit has the change. The time counts to its first poll with another document."""
    pollers = Pollers()
    for revision, now in polls:
        pollers.note(QUERY, (b"app", None, None), document(revision), now)
    found = find_arrival(pollers.list_all(), COMMIT)
    assert (*found[:4], len(found.missing)) == wanted


def test_the_last_of_several_decides_the_time() -> None:
    """The seconds count to the last instance that has the change."""
    pollers = Pollers()
    for name, moments in ((b"a", (90.0, 100.5)), (b"b", (90.0, 104.0)), (b"c", (90.0,))):
        for revision, now in zip((3, 5), moments, strict=False):
            pollers.note(QUERY, (name, None, None), document(revision), now)
    found = find_arrival(pollers.list_all(), COMMIT)
    assert found[:4] == Arrival(3, 2, True, 4.0, ())[:4] and [each.app_name for each in found.missing] == ["c"]


def test_a_commit_of_another_server() -> None:
    """Its revision is not known, so only who has polled since its moment counts, without a time."""
    pollers = Pollers()
    for name, now in ((b"a", 99.0), (b"b", 101.0)):
        pollers.note(QUERY, (name, None, None), document(9), now)
    found = find_arrival(pollers.list_all(), Commit(None, 100.0))
    assert found[:4] == (2, 1, True, None) and [each.app_name for each in found.missing] == ["a"]


def test_the_last_commits_are_remembered() -> None:
    """The oldest one is forgotten first."""
    pollers = Pollers()
    for number in range(KEPT_COMMITS + 1):
        pollers.note_commit(str(number), Commit(number, 0.0))
    assert pollers.find_commit("0") is None and pollers.find_commit("1") == Commit(1, 0.0)
