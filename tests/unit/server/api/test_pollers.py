"""Who polls: what each instance has, since when, and when it counts as gone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.server.api.pollers import MAX_NAME, MAX_POLLERS, SILENT_S, Pollers, count_arrived
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
    """Each name, instance and query is one of its own; one without any name is not noted."""
    pollers = Pollers()
    for who in ((b"a", b"1", None), (b"a", b"2", None), (b"b", b"1", None)):
        pollers.note(QUERY, who, document(1), 0.0)
        pollers.note(OTHER, who, document(1), 0.0)
    pollers.note(QUERY, (None, None, None), document(1), 0.0)
    assert len(pollers.list_all()) == 6


def test_names_and_numbers_are_bounded() -> None:
    """Callers cannot fill the memory: long names are cut, and the instance that was silent longest is forgotten."""
    pollers = Pollers()
    for number in range(MAX_POLLERS + 10):
        pollers.note(QUERY, (b"%d" % number + b"x" * 1000, b"y" * 1000, b"z" * 1000), document(1), float(number))
    every = pollers.list_all()
    assert len(every) == MAX_POLLERS and every[-1].app_name.startswith("10x")
    assert {len(each.app_name) for each in every} == {len(each.sdk) for each in every} == {MAX_NAME}


def test_a_very_long_query_is_not_kept() -> None:
    """A caller that makes up filters cannot fill the memory with them."""
    pollers = Pollers()
    for query in (DocumentQuery("a", prefix="x" * 1001), DocumentQuery("a", tags=(("t", "x" * 1001),))):
        pollers.note(query, (b"app", None, None), document(1), 0.0)
    assert pollers.list_all() == []


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
