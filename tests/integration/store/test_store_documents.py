"""The client-features documents: their content, and when the database is read again."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Table, update

from flagsvc.core.errors import DatabaseError
from flagsvc.server.store.client_features import read_environment_features
from flagsvc.server.store.documents import DOCUMENT_OVERHEAD, RETRY_S, ClientDocument, DocumentCache, DocumentQuery, Documents
from flagsvc.server.store.schema import dependencies, features, segments, strategies
from flagsvc.server.store.store import Store, Tx, open_store
from flagsvc.testing import FakeClock, RecordingLog
from support.stored_flags import Flags

NOW = datetime(2026, 1, 2, tzinfo=UTC)
EU = {"contextName": "region", "operator": "IN", "values": ["eu"]}
US = {"contextName": "region", "operator": "IN", "values": ["us"]}
OWN = {"contextName": "userId", "operator": "IN", "values": ["7"]}
VARIANT = {"name": "green", "weight": 1000, "weightType": "variable", "stickiness": "default"}
DEVELOPMENT = DocumentQuery("development")


@pytest.fixture
def log() -> RecordingLog:
    """Give the log that the store and the documents write to."""
    return RecordingLog()


@pytest.fixture
def store(database_url: str, log: RecordingLog) -> Iterator[Store]:
    """Give an empty database of each kind."""
    store = open_store(database_url, FakeClock(), log)
    yield store
    store.close()


@pytest.fixture
def clock() -> FakeClock:
    """Give the clock of the documents."""
    return FakeClock()


@pytest.fixture
def documents(store: Store, clock: FakeClock, log: RecordingLog) -> Documents:
    """Give the documents of the store."""
    return Documents(store, clock, log)


def write(store: Store, *features: str, put: Callable[[Flags], None] | None = None) -> None:
    """Put features of these names, or what `put` says, into the store."""
    flags = Flags()
    for name in features:
        flags.feature(name, on=["development"])
    if put is not None:
        put(flags)
    with store.writing(None) as tx:
        flags.put(tx)


def read(document: ClientDocument) -> Any:
    """Return the document as JSON."""
    return json.loads(document.body)


def names(document: ClientDocument) -> list[str]:
    """Return the names of the features in a document."""
    return [feature["name"] for feature in read(document)["features"]]


def many(flags: Flags) -> None:
    """Make a feature of every kind."""
    flags.segment("eu", EU)
    flags.segment("us", US)
    flags.segment("unused", US)
    flags.feature(
        "full",
        project="other",
        on=["development"],
        description="all of it",
        impression_data=True,
        stale=True,
        variants=[VARIANT],
        tags=[("simple", "red"), ("simple", "a:b")],
        strategies=[
            {"name": "last", "sort_order": 9, "title": "shown nowhere", "parameters": {"n": 5, "t": "x", "nothing": None}},
            {"name": "first", "segments": ["us", "eu"], "constraints": [OWN], "variants": [VARIANT], "sort_order": -1},
            {"name": "off", "disabled": True, "segments": ["eu"]},
            {"name": "elsewhere", "environment": "production"},
        ],
    )
    flags.feature("gone", archived_at=NOW)
    flags.feature("child", type="kill-switch")
    for parent, enabled in (("full", True), ("child-free", False)):
        flags.add(dependencies, child="child", parent=parent, enabled=enabled, variants=["green"])
    flags.feature("child-free")


def test_a_document_holds_what_clients_need(store: Store, documents: Documents) -> None:
    """Features are in order of creation, as on the real server; archived features, disabled strategies and titles are left out."""
    write(store, put=many)
    document = read(documents.get(DEVELOPMENT))
    full, child, free = document["features"]
    strategies = [
        {"name": "first", "constraints": [OWN], "parameters": {}, "variants": [VARIANT], "segments": [2, 1]},
        {"name": "last", "constraints": [], "parameters": {"n": "5", "t": "x", "nothing": ""}, "variants": []},
    ]
    flags = {"type": "release", "enabled": True, "project": "other", "stale": True, "description": "all of it"}
    assert full == {"name": "full", "impressionData": True, "strategies": strategies, "variants": [VARIANT], **flags}
    parents = [{"feature": "child-free", "enabled": False}, {"feature": "full", "enabled": True, "variants": ["green"]}]
    assert sorted(child["dependencies"], key=lambda each: each["feature"]) == parents
    assert (child["type"], child["enabled"], child["description"]) == ("kill-switch", False, None)
    assert (free["name"], "dependencies" in free) == ("child-free", False)
    segments = [{"id": 1, "name": "eu", "constraints": [EU]}, {"id": 2, "name": "us", "constraints": [US]}]
    assert (document["version"], document["segments"]) == (2, segments)


@pytest.mark.parametrize(
    ("table", "column", "value", "left"),
    [
        (strategies, "constraints", 5, ["child", "child-free"]),
        (strategies, "parameters", [], ["child", "child-free"]),
        (segments, "constraints", {}, ["child", "child-free"]),
        (dependencies, "variants", 5, ["full", "child-free"]),
    ],
)
def test_a_broken_row_harms_only_its_flag(
    store: Store, documents: Documents, log: RecordingLog, table: Table, column: str, value: Any, left: list[str]
) -> None:
    """A flag that was edited by hand and cannot be read is left out, with a line in the log; the others are served."""
    write(store, put=many)
    with store.writing(None) as tx:
        tx.db.execute(update(table).values({column: value}))
    for inline in (False, True):
        assert names(documents.get(DocumentQuery("development", inline=inline))) == left
    assert log.at("warn") == ["flags are left out, what is stored of them cannot be read"]


def test_another_environment_has_its_own_state(store: Store, documents: Documents) -> None:
    """State, strategies and variants are those of the environment; in an unknown environment every feature is off."""
    write(store, put=many)
    full = read(documents.get(DocumentQuery("production")))["features"][0]
    assert (full["enabled"], [each["name"] for each in full["strategies"]], full["variants"]) == (False, ["elsewhere"], [])
    nowhere = read(documents.get(DocumentQuery("nowhere")))["features"]
    assert [(each["enabled"], each["strategies"]) for each in nowhere] == [(False, [])] * 3


def test_segments_stand_in_the_strategies_for_sdks_that_know_none(store: Store, documents: Documents) -> None:
    """Without a list of segments, a strategy has its own constraints and then those of its segments, in order."""
    write(store, put=many)
    document = read(documents.get(DocumentQuery("development", inline=True)))
    first = document["features"][0]["strategies"][0]
    assert (first["constraints"], "segments" in first, "segments" in document) == ([OWN, US, EU], False, False)
    assert document["query"] == {"environment": "development", "inlineSegmentConstraints": True}


def write_more(store: Store, name: str, place: int = 100) -> None:
    """Add a feature after others, at a place in the order."""
    flags = Flags(placed=place)
    flags.feature(name)
    with store.writing(None) as tx:
        flags.put(tx)


def test_a_change_of_another_server_arrives(store: Store, documents: Documents, database_url: str) -> None:
    """The server notices commits of another server in the same database."""
    write(store, "one")
    documents.get(DEVELOPMENT)
    told = threading.Event()
    store.watch(lambda revision: told.set() if documents.get_cached(DEVELOPMENT) is None else None)
    other = open_store(database_url, FakeClock(), RecordingLog())
    write_more(other, "two")
    other.close()
    assert told.wait(10)
    assert names(documents.get(DEVELOPMENT)) == ["one", "two"]


def test_a_change_elsewhere_changes_no_bytes(store: Store, documents: Documents) -> None:
    """A document that a change leaves as it was keeps its bytes and its tag, so that clients get 304."""
    write(store, put=many)
    before = documents.get(DocumentQuery("production", projects=("default",)))
    with store.writing(None) as tx:
        tx.db.execute(update(features).where(features.c.name == "full").values(description="another"))
    assert documents.get(DocumentQuery("production", projects=("default",))) is before
    assert documents.get(DocumentQuery("production", projects=("other",))) is not before


class Failing:
    """A store that fails, counts how often it was read, or makes its readers wait."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.changed = store.changed
        self.broken = False
        self.reads = 0
        self.may_read = threading.Event()
        self.may_read.set()

    def watch(self, changed: Callable[[int], None]) -> None:
        """Call back on changes."""
        self._store.watch(changed)

    @contextmanager
    def _reading(self) -> Iterator[Tx]:
        self.reads += 1
        assert self.may_read.wait(10)
        if self.broken:
            raise DatabaseError("the database failed: gone")
        with self._store.reading() as tx:
            yield tx

    def reading(self) -> AbstractContextManager[Tx]:
        """Give a transaction, or fail."""
        return self._reading()


@pytest.fixture
def failing(store: Store) -> Failing:
    """Give a store that can be made to fail."""
    return Failing(store)


@pytest.fixture
def frail(failing: Failing, clock: FakeClock, log: RecordingLog) -> Documents:
    """Give the documents of a store that can be made to fail."""
    return Documents(failing, clock, log)  # type: ignore[arg-type]


def test_the_old_documents_are_served_while_the_database_is_away(
    store: Store, failing: Failing, frail: Documents, clock: FakeClock, log: RecordingLog
) -> None:
    """Without the database the last document is served. Reads are retried at most once a second, with one log line."""
    write(store, "one")
    before = frail.get(DEVELOPMENT)
    write_more(store, "two")
    failing.broken, failing.reads = True, 0
    assert [frail.get(DEVELOPMENT) for _ in range(3)] == [before] * 3
    assert names(frail.get(DocumentQuery("development", prefix="o"))) == ["one"]
    assert (failing.reads, log.at("warn")) == (1, ["the database cannot be read, the last documents are served"])
    asyncio.run(clock.advance(RETRY_S))
    assert frail.get(DEVELOPMENT) is before
    assert (failing.reads, len(log.at("warn"))) == (2, 1)
    failing.broken = False
    asyncio.run(clock.advance(RETRY_S))
    assert names(frail.get(DEVELOPMENT)) == ["one", "two"]
    assert log.at("warn")[-1:] == ["the database can be read again"]


def test_without_any_document_the_failure_is_told(failing: Failing, frail: Documents) -> None:
    """If nothing was read yet, the error of the database is raised."""
    failing.broken = True
    with pytest.raises(DatabaseError):
        frail.get(DEVELOPMENT)


def test_one_thread_reads_for_all(store: Store, failing: Failing, frail: Documents) -> None:
    """Many threads that ask after a change wait for one read and get the same document."""
    write(store, *(f"feature-{number}" for number in range(50)))
    failing.may_read.clear()
    found: list[ClientDocument] = []
    threads = [threading.Thread(target=lambda: found.append(frail.get(DEVELOPMENT))) for _ in range(8)]
    for thread in threads:
        thread.start()
    failing.may_read.set()
    for thread in threads:
        thread.join(10)
    assert (len(found), failing.reads) == (8, 1)
    assert {document.tag for document in found} == {found[0].tag}


def test_readers_and_writers_at_once(store: Store, documents: Documents) -> None:
    """A read after a write sees the write, also with parallel readers and writers."""
    missed: list[str] = []

    def work(number: int) -> None:
        for turn in range(3):
            name = f"feature-{number}-{turn}"
            write_more(store, name, 100 + number * 10 + turn)
            if name not in names(documents.get(DEVELOPMENT)):
                missed.append(name)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    write(store, "one")
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (missed, len(names(documents.get(DEVELOPMENT)))) == ([], 13)


def test_the_shelf_keeps_within_its_bound() -> None:
    """The least recently used document goes first; the sum of bytes stays bounded; an older revision replaces nothing.

    Each document counts with an overhead, so that a bound of bytes bounds small documents, too.
    """
    record_store = DocumentCache(max_bytes=2 * (100 + DOCUMENT_OVERHEAD) + 50)
    made = {name: ClientDocument(name.encode() * 90, b"p" * 10, name, b"", 1) for name in "abc"}
    queries = {name: DocumentQuery(name) for name in made}
    record_store.put(queries["a"], 1, made["a"])
    record_store.put(queries["b"], 1, made["b"])
    assert record_store.find(queries["a"], 1) is made["a"]
    record_store.put(queries["c"], 1, made["c"])
    assert [record_store.find_stale(query) for query in queries.values()] == [made["a"], None, made["c"]]
    record_store.put(queries["a"], 0, made["b"])
    assert (record_store.find(queries["a"], 1), record_store.find(queries["a"], 2)) == (made["a"], None)


def test_only_what_has_changed_is_encoded_again(store: Store) -> None:
    """A read takes over the entries of the read before. What is stored of a feature, and what segments contain, decides."""
    write(store, put=many)
    everything: list[Callable[[Tx], object]] = [
        lambda tx: tx.db.execute(update(features).where(features.c.name == "full").values(description="other")),
        lambda tx: tx.db.execute(update(strategies).where(strategies.c.feature == "full").values(parameters={"rollout": "7"})),
        lambda tx: tx.db.execute(update(dependencies).values(enabled=False)),
        lambda tx: tx.db.execute(update(segments).where(segments.c.name == "eu").values(constraints=[US])),
    ]
    with store.reading() as tx:
        before = read_environment_features(tx, "development")
        same = read_environment_features(tx, "development", before)
    assert all(same.entries[name] is entry for name, entry in before.entries.items())
    for change in everything:
        with store.writing(None) as tx:
            change(tx)
        with store.reading() as tx:
            after, alone = (read_environment_features(tx, "development", each) for each in (before, None))
        assert after == alone and after != before, "it is as if nothing had been read before"
        before = after
