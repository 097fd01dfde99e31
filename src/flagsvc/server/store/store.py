"""The database of the flag server: transactions, and the revision.

Writers run one after the other, on SQLite with its write lock, on PostgreSQL with an advisory lock. So the revision counts
commits in their order, and a check within a transaction still holds when it commits. Transactions that only record usage do not
take PostgreSQL's advisory lock; SQLite has one lock for all writers. A transaction that raises is rolled back.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias, cast
from uuid import uuid4

from sqlalchemy import Connection, Engine, Table, func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError, UnwritableError
from flagsvc.core.log import Logger, describe_error
from flagsvc.core.tracing import child, running
from flagsvc.http.counts import Histogram
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.changed_flags import ChangedFlags
from flagsvc.server.store.connections import READING, RETRY_S, WRITING
from flagsvc.server.store.engines import database_url, describe_place, make_engine
from flagsvc.server.store.errors import bad_data
from flagsvc.server.store.event_views import Way
from flagsvc.server.store.migrate import migrate, require_current, require_known, require_ours
from flagsvc.server.store.outbox import find_receivers, queue_events
from flagsvc.server.store.revision_listener import CHANNEL, RevisionListener, watch_changes
from flagsvc.server.store.schema import events, feature_tags, revision
from flagsvc.server.store.sqlite_file import SqliteFiles, guard_connections
from flagsvc.server.store.writability import (
    MOVED,
    Obstacle,
    Writability,
    describe_database_error,
    find_obstacle,
    find_present_obstacle,
)

WRITER_LOCK_KEY = 0x666C6167
"""The key of PostgreSQL's advisory lock for writers."""
READ_TRIES = 250
"""How often a read looks for a connection that is open, every 20 ms."""
Prepare: TypeAlias = Callable[[Engine], None]
"""Makes a database ready for use, or checks that it is. Raises `DatabaseError`."""


@dataclass
class Tx:
    """One transaction: its connection, its time (UTC, after the wait for writers) and its actor; None for the server itself.

    `way` says how its changes come about, and `action` identifies them together. `revision` is that of its commit, 0 before. Its
    begin took `waited_s` seconds.
    """

    db: Connection
    now: datetime
    actor: Actor | None = None
    way: Way = "api"
    action: str = field(default_factory=lambda: str(uuid4()))
    pending_events: list[dict[str, Any]] = field(default_factory=list)
    revision: int = 0
    waited_s: float = 0.0

    def record_event(
        self,
        kind: str,
        *,
        project: str | None = None,
        environment: str | None = None,
        feature: str | None = None,
        before: Any = None,
        data: Any = None,
    ) -> None:
        """Record a change of a kind of `event_kinds.py`; it is stored when the transaction commits.

        `before` is the state before the change, read in this transaction, and `data` the present state; None for nothing. Without a
        difference nothing is recorded.
        """
        if before is not None and before == data:
            return
        row = {"type": kind, "project": project, "environment": environment, "feature": feature}
        who = self.actor
        by = {"created_by": "system" if who is None else who.name, "created_by_id": None if who is None else who.id}
        how = {"token": None if who is None else who.token, "way": self.way, "action": self.action}
        self.pending_events.append(row | by | how | {"before": before, "data": data, "created_at": self.now})

    def positions(self, table: Table, count: int = 1) -> range:
        """Return the next `count` positions for new rows of a table."""
        last = self.db.execute(select(func.coalesce(func.max(table.c.position), 0))).scalar_one()
        return range(last + 1, last + 1 + count)


CHANGE, RECORD = "change", "record"
COMMITS = (CHANGE, RECORD)
"""The kinds of transactions that write: they change flags, or only record usage and the like."""


class StoreFigures:
    """What transactions did: `commits` by kind, `errors` of the database, and how long changes waited for their `turns`.

    `waiting` threads wait for a connection now.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.commits = dict.fromkeys(COMMITS, 0)
        self.errors = 0
        self.waiting = 0
        self.turns = Histogram()

    def add(self, *, commit: str = "", error: int = 0, waiting: int = 0) -> None:
        """Add to the numbers."""
        with self.lock:
            if commit:
                self.commits[commit] += 1
            self.errors += error
            self.waiting += waiting

    def add_turn(self, seconds: float) -> None:
        with self.lock:
            self.turns.add(seconds)


class Store:
    """A database of flags. Transactions may run in any thread; every failure of the database raises `DatabaseError`.

    `figures` tells what they have done.
    """

    def __init__(self, engine: Engine, clock: Clock, log: Logger, listen: str | None = None) -> None:
        self.engine = engine
        self.figures = StoreFigures()
        self._listen = listen
        self._clock = clock
        self._log = log
        self._notified = 0
        self._lock = threading.Lock()
        self._notify_lock = threading.RLock()
        self._watchers: list[Callable[[int], None]] = []
        self.changed = ChangedFlags()
        self._listener: RevisionListener | None = None
        self.writability = Writability(describe_place(engine.url), clock)
        self._files = None if self._is_postgresql else SqliteFiles(str(engine.url.database))
        if self._files is not None:
            guard_connections(engine, self._refuse_if_moved)

    def reading(self) -> AbstractContextManager[Tx]:
        """Return a read-only transaction with one consistent view of the database."""
        return self._transaction(None, {READING: True})

    @contextmanager
    def recording(self, actor: Actor | None = None) -> Iterator[Tx]:
        """Yield a transaction for data that changes no flag: usage, registrations, the last use of tokens."""
        with self._transaction(actor, {WRITING: True}) as tx:
            yield tx
            store_events(tx.db, tx.pending_events)
        self.figures.add(commit=RECORD)

    @contextmanager
    def writing(self, actor: Actor | None, way: Way = "api") -> Iterator[Tx]:
        """Yield a transaction that changes flags, after all earlier writers. Its commit is a new revision; watchers get it."""
        with self._transaction(actor, {WRITING: True}) as tx:
            self._wait_for_writers(tx)
            tx.way = way
            yield tx
            store_events(tx.db, tx.pending_events)
            tx.revision = self._increment_revision(tx.db)
        self.figures.add(commit=CHANGE)
        self.changed.note(tx.revision, tx.pending_events)
        self.notify_watchers(tx.revision)

    @contextmanager
    def dry_run(self, actor: Actor | None) -> Iterator[Tx]:
        """Yield a transaction like `writing`, and always roll it back: no change, no event, no new revision."""
        with self._transaction(actor, {WRITING: True}) as tx:
            self._wait_for_writers(tx)
            yield tx
            tx.db.rollback()

    def _wait_for_writers(self, tx: Tx) -> None:
        """Wait for earlier writers. On SQLite the transaction has already waited when it began."""
        began = self._clock.monotonic()
        if self._is_postgresql:
            tx.db.execute(select(func.pg_advisory_xact_lock(WRITER_LOCK_KEY)))
            tx.now = self.now()
        self.figures.add_turn(tx.waited_s + self._clock.monotonic() - began)

    def revision(self) -> int:
        """Return how many transactions changed flags, on all servers of this database."""
        with self.reading() as tx:
            return read_revision(tx.db)

    def watch(self, callback: Callable[[int], None]) -> None:
        """Call `callback` with the revision after each change, by this or another server. The call may come from any thread."""
        with self._lock:
            self._watchers.append(callback)
            if self._listener is None:
                self._listener = watch_changes(self.engine, self._listen, self.notify_watchers, self._log)

    def notify_watchers(self, number: int) -> None:
        """Call the watchers with a revision, once. All of them have been called when this returns, also by another thread."""
        with self._notify_lock:
            with self._lock:
                if number <= self._notified:
                    return
                self._notified = number
                watchers = list(self._watchers)
            for watcher in watchers:
                try:
                    watcher(number)
                except Exception as error:  # the change is committed, so its author must not see an error
                    self._log.error("a watcher of changes failed", revision=number, error=describe_error(error))
                    with self._lock:  # notify again with the next change, or when the revision is next read
                        self._notified = min(self._notified, number - 1)

    def close(self) -> None:
        """Stop watching, and close every connection."""
        if self._listener is not None:
            self._listener.close()
        self.engine.dispose()
        if self._files is not None:
            self._files.close()

    @property
    def pool(self) -> QueuePool:
        """The connections to the database."""
        return cast(QueuePool, self.engine.pool)

    @property
    def _is_postgresql(self) -> bool:
        return self.engine.dialect.name == "postgresql"

    @contextmanager
    def _transaction(self, actor: Actor | None, options: dict[str, Any]) -> Iterator[Tx]:
        """Yield a transaction; commit it unless the block raises.

        A change is not acknowledged if the file has moved before its commit was complete.
        """
        writes = WRITING in options
        try:
            if writes:
                self._refuse_if_moved()
            with running(child("transaction")), self._connect(writes=writes).execution_options(**options) as db:
                began = self._clock.monotonic()
                with db.begin():
                    yield Tx(db, self.now(), actor, waited_s=self._clock.monotonic() - began)
            if writes:
                self._refuse_if_moved()
        except SQLAlchemyError as error:
            self.figures.add(error=1)
            obstacle = find_obstacle(error) if writes else None
            raise (DatabaseError(describe_database_error(error)) if obstacle is None else self._refusal(obstacle)) from error

    def _connect(self, *, writes: bool) -> Connection:
        """Return a connection. While no new one may be opened, because the file has moved, a read waits for an open one."""
        self.figures.add(waiting=1)
        try:
            for _ in range(0 if writes else READ_TRIES):
                with suppress(UnwritableError):
                    return self.engine.connect()
                time.sleep(RETRY_S)
            return self.engine.connect()
        finally:
            self.figures.add(waiting=-1)

    def look(self) -> None:
        """Note it if the files of an SQLite database have moved."""
        if self._files is not None and self._files.have_moved():
            self.writability.note(MOVED)

    def probe(self, commit: bool) -> None:
        """Try to write, with `commit` up to the disk, and note what is in the way. While the database is away, nothing is noted.

        Once the database can be written again, every connection is opened again: an old connection may still be read-only.
        """
        if self._files is not None and self._files.have_moved():
            self.writability.note(MOVED)
            return
        try:
            obstacle = find_present_obstacle(self.engine, commit=commit)
        except SQLAlchemyError:
            return
        if obstacle is None and self.writability.obstacle is not None:
            self.engine.dispose()
        self.writability.note(obstacle)

    def _refuse_if_moved(self) -> None:
        """Raise UnwritableError if the files of an SQLite database have moved."""
        if self._files is not None and self._files.have_moved():
            raise self._refusal(MOVED)

    def _refusal(self, obstacle: Obstacle) -> UnwritableError:
        self.writability.note(obstacle)
        return UnwritableError(obstacle.why)

    def now(self) -> datetime:
        """Return the time (UTC)."""
        return datetime.fromtimestamp(self._clock.now(), UTC)

    def _increment_revision(self, db: Connection) -> int:
        """Increment the revision, notify the other servers at commit, and return it."""
        db.execute(update(revision).values(number=revision.c.number + 1))
        number = read_revision(db)
        if self._is_postgresql:
            db.execute(select(func.pg_notify(CHANNEL, str(number))))
        return number


def read_revision(db: Connection) -> int:
    """Return the revision as a transaction sees it."""
    return int(db.execute(select(revision.c.number)).scalar_one())


def open_store(database: str, clock: Clock, log: Logger, listen: str | None = None) -> Store:
    """Open and migrate a database, given as a URL or the path of an SQLite file. Raises `DatabaseError`.

    `listen` is a URL of the same database on PostgreSQL at which changes are listened for, past a pooler.
    """
    if listen is not None:
        require_listenable(database, listen)
    return _open(database, clock, log, migrate, listen)


def require_listenable(database: str, listen: str) -> None:
    """Raise `DatabaseError` unless a database and the URL to listen at are both of PostgreSQL."""
    for name, each in (("database", database), ("URL to listen at", listen)):
        if database_url(each).get_backend_name() != "postgresql":
            raise DatabaseError(f"only PostgreSQL has a URL to listen at, and the {name} is a file")


def open_existing_store(database: str, clock: Clock, log: Logger, prepare: Prepare = require_current) -> Store:
    """Open a database that exists, and change nothing in it. `prepare` checks its schema: it must be this version's one.

    Raises `DatabaseError`, also for a file that does not exist, and for an older or newer schema.
    """
    url = database_url(database)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise DatabaseError(
            f"there is no database: the file `{url.database}` does not exist; a start of `flagsvc server` creates it"
        )
    return _open(database, clock, log, prepare)


def open_known_store(database: str, clock: Clock, log: Logger) -> Store:
    """Open a database that exists with the schema of this version or an older one. Raises `DatabaseError` for any other one."""
    return open_existing_store(database, clock, log, require_known)


def open_any_store(database: str, clock: Clock, log: Logger) -> Store:
    """Open a database that is empty or has the schema of this version or an older one, and change nothing in it.

    Raises `DatabaseError` for any other one.
    """
    return _open(database, clock, log, require_ours)


def _open(database: str, clock: Clock, log: Logger, prepare: Prepare, listen: str | None = None) -> Store:
    """Open a database after `prepare`. Raises `DatabaseError`."""
    engine = make_engine(database)
    try:
        prepare(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        place = f" (the file `{engine.url.database}`)" if engine.dialect.name == "sqlite" else ""
        raise DatabaseError(describe_database_error(error) + place) from error
    except BaseException:
        engine.dispose()
        raise
    return Store(engine, clock, log, listen)


AT_ONCE = 500
"""The most flags of one query."""
MOST_TAGS = 1_000_000
"""The most tags that the events of a transaction hold together: each event holds all tags of its flag."""


def store_events(db: Connection, pending: Sequence[dict[str, Any]]) -> None:
    """Store events, each with the tags that its feature now has. Raises CallerError (400) for too many of both."""
    if not pending:
        return
    found = read_tags(db, sorted({row["feature"] for row in pending if row["feature"] is not None}))
    rows = [row | {"tags": found.get(row["feature"], [])} for row in pending]
    held = sum(len(row["tags"]) for row in rows)
    if held > MOST_TAGS:
        raise bad_data(
            f"The events of this change would hold {held:,} tags, and at most {MOST_TAGS:,} are stored at once: each of them "
            "holds all tags of its feature. Change fewer features, or fewer of their tags, at once."
        )
    receivers = find_receivers(db)
    if not receivers:
        db.execute(insert(events), rows)
        return
    stored = db.execute(insert(events).returning(events.c.id, sort_by_parameter_order=True), rows).scalars()
    queue_events(db, receivers, list(zip(stored, rows, strict=True)))


def read_tags(db: Connection, names: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """Return the tags of features by type and value, by feature."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    tag = feature_tags.c
    for start in range(0, len(names), AT_ONCE):
        these = tag.feature.in_(names[start : start + AT_ONCE])
        query = select(tag.feature, tag.type, tag.value).where(these).order_by(tag.type, tag.value)
        for row in db.execute(query):
            found[row.feature].append({"value": row.value, "type": row.type})
    return found
