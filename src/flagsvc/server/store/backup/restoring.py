"""Restores a backup into a database of either kind, in one transaction (decision 0031).

The schema is first that of the backup, then the newest one, so a backup of an older version is migrated as a database is.

Variants that an earlier version took from a seed or a PATCH are mended, so that every backup of one's own server restores. A mended
variant is what the engine has read so far, so clients get the same. Only weights whose total has a fraction are rounded.
`values.py` checks the variant afterwards.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, BinaryIO, Final, NamedTuple, TypeAlias

from sqlalchemy import Connection, TableClause, create_engine, delete, insert, inspect, select, update
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from sqlalchemy.sql.ddl import DropTable

from flagsvc.core.errors import BackupError
from flagsvc.engine.model import VariantSpec
from flagsvc.engine.parse import parse_variants
from flagsvc.http.shapes.exact import problems
from flagsvc.server.store import schema
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.backup.lines import Header, LineReader, Row
from flagsvc.server.store.backup.tables import COUNTED, Values, read_tables, set_sequences
from flagsvc.server.store.backup.values import decode_row, refused
from flagsvc.server.store.columns import UtcDateTime
from flagsvc.server.store.migrate import (
    NEWEST,
    VERSION_TABLE,
    known_versions,
    read_known_version,
    upgrade,
    wait_for_migrations,
)
from flagsvc.server.store.schema import METADATA
from flagsvc.server.store.seed import keys
from flagsvc.server.store.seed.once import USED, count_existing_rows, is_first_token
from flagsvc.server.store.store import Store, Tx, read_revision
from flagsvc.server.store.upsert import CHUNK_SIZE, upsert
from flagsvc.settings.kinds import printable

WebhookProblem: TypeAlias = Callable[[Mapping[str, Any]], str]
AT_ONCE = 64 * 1024 * 1024
"""The most bytes of rows in memory that go into one statement, but for one larger row."""


def check_backup(source: BinaryIO) -> Header:
    """Read a whole backup, and return its header. Raises BackupError where it is damaged, or of a newer version."""
    reader = LineReader(source)
    header = reader.header
    if header.schema not in known_versions():
        raise BackupError(
            f"the backup has the schema `{printable(header.schema)}`, and this version of flagsvc knows up to "
            f"`{known_versions()[0]}`: restore it with flagsvc {printable(header.program)}, which made it, or a newer version"
        )
    for name in sorted(set(header.sequences) - set(COUNTED)):
        raise BackupError(f"line 1 of the backup: `sequences` has a table without numbers: `{printable(name)}`")
    for _ in reader.rows():
        pass
    return header


class Restored(NamedTuple):
    """What a restore has written: the number of rows by table, and a sentence for each row that is not as in the backup."""

    counts: Counter[str]
    notes: list[str]


def restore_backup(
    store: Store, source: BinaryIO, actor: Actor, webhook_problem: WebhookProblem, *, replace: bool = False
) -> Restored:
    """Make a database what it was when a backup was written, and return what was written.

    `webhook_problem` says what this version refuses of the parameters of a webhook, empty for nothing. Such a webhook is disabled.

    All sessions end. The revision grows, so proxies and other servers see a change. Raises BackupError, without `replace` also for
    a database in use, and `DatabaseError`. Then nothing has changed.
    """
    with store.writing(actor, "command") as tx:
        reader = LineReader(source)
        emptied = _empty(tx, reader.header.schema, replace=replace)
        revision = max(emptied.revision, reader.header.revision)
        done = _insert_rows(tx.db, reader, webhook_problem)
        set_sequences(tx.db, reader.header.sequences.items())
        upgrade(tx.db, NEWEST)
        upsert(tx, schema.used_answers, emptied.used_answers, {})
        tx.db.execute(update(schema.revision).values(number=revision))
        header = reader.header
        summary = {
            "createdAt": printable(header.created),
            "version": printable(header.program),
            "rows": done.counts.total(),
        }
        tx.record_event("backup-restored", data=summary)
    return done


class Emptied(NamedTuple):
    """What a database had that a restore keeps: its revision, and the used answers of identity providers."""

    revision: int = 0
    used_answers: Sequence[Mapping[str, Any]] = ()


def _empty(tx: Tx, version: str, *, replace: bool) -> Emptied:
    """Leave the tables of a version of the schema without a row, and return what the database had that is kept."""
    db = tx.db
    wait_for_migrations(db)
    found = read_known_version(db)
    kept = Emptied()
    if found is not None:
        revision = read_revision(db)
        _lock_tables(db, "EXCLUSIVE" if found == version else "ACCESS EXCLUSIVE")
        held = "" if replace else describe_use(tx, found)
        if held:
            raise BackupError(f"the database is in use, it has {held}: --replace deletes all that is in it")
        kept = Emptied(revision, _read_used_answers(db))
    if found != version:
        _drop_tables(db)
        upgrade(db, version)
    for table in reversed(read_tables(db)):
        db.execute(delete(table))
    return kept


def _lock_tables(db: Connection, mode: str) -> None:
    """Keep others from writing usage, the last use of tokens, and used answers. On SQLite the transaction alone does so."""
    if db.dialect.name == "postgresql":
        names = ", ".join(f'"{name}"' for name in inspect(db).get_table_names() if name in METADATA.tables)
        db.exec_driver_sql(f"LOCK TABLE {names} IN {mode} MODE")


def _read_used_answers(db: Connection) -> Sequence[Mapping[str, Any]]:
    """Return the used answers; none where the schema is older than their table."""
    there = inspect(db).has_table(schema.used_answers.name)
    return [dict(row) for row in db.execute(select(schema.used_answers)).mappings()] if there else []


def _drop_tables(db: Connection) -> None:
    """Drop the tables of another version of the schema, if there are any."""
    for table in reversed(METADATA.sorted_tables):
        db.execute(DropTable(table, if_exists=True))
    db.exec_driver_sql(f"DROP TABLE IF EXISTS {VERSION_TABLE}")


def _insert_rows(db: Connection, reader: LineReader, webhook_problem: WebhookProblem) -> Restored:
    tables = {table.name: table for table in read_tables(db)}
    done = Restored(Counter(), [])
    for name, rows in groupby(reader.rows(), key=lambda row: row.table):
        if name not in tables:
            raise BackupError(f"the backup has rows of a table that its schema does not have: `{printable(name)}`")
        for chunk in _chunks(rows):
            for row in chunk:
                done.notes.extend(mend(row))
            decoded = [(row, decode_row(tables[name], row)) for row in chunk]
            if name == schema.addons.name:
                done.notes.extend(_disable_refused(decoded, webhook_problem))
            _insert(db, tables[name], decoded)
            done.counts[name] += len(chunk)
    return done


def _disable_refused(rows: Sequence[tuple[Row, Values]], webhook_problem: WebhookProblem) -> Iterator[str]:
    """Disable the webhooks that an older version took and this one refuses, and yield a sentence for each."""
    for row, values in rows:
        problem = webhook_problem(values["parameters"]) if values["enabled"] else ""
        if problem:
            values["enabled"] = False
            yield f"line {row.line} of the backup: the webhook {values['id']} is disabled now: {printable(problem, 300)}"


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield rows in lists that are small in number, and in memory but for one large row."""
    chunk: list[Row] = []
    weight = 0
    for row in rows:
        chunk.append(row)
        weight += row.weight
        if len(chunk) == CHUNK_SIZE or weight > AT_ONCE:
            yield chunk
            chunk, weight = [], 0
    if chunk:
        yield chunk


def _insert(db: Connection, table: TableClause, rows: Sequence[tuple[Row, Values]]) -> None:
    """Insert rows. Where the database does not take them, insert each alone, so that the error names its line."""
    try:
        with db.begin_nested():
            db.execute(insert(table), [values for _, values in rows])
    except (IntegrityError, DataError) as error:
        for each in rows if len(rows) > 1 else ():
            _insert(db, table, [each])
        raise _not_taken(db, table, *rows[0], error) from None


def _not_taken(db: Connection, table: TableClause, row: Row, values: Values, error: DBAPIError) -> BackupError:
    for key in METADATA.tables[table.name].foreign_key_constraints:
        held = {each: values.get(each.parent.name) for each in key.elements}
        found = select(key.referred_table).where(*(each.column == value for each, value in held.items()))
        if None not in held.values() and db.execute(found).first() is None:
            place = ", ".join(each.parent.name for each in held)
            return refused(row, f"expected the key of a row of `{key.referred_table.name}`", place)
    reason = printable(str(error.orig).splitlines()[0], 200)
    return BackupError(f"line {row.line} of the backup: the database does not take it as a row of `{table.name}`: {reason}")


COLUMNS: Final = (("feature_environments", "variants"), ("strategies", "variants"))
"""Tables with variants, and their columns."""


def mend(row: Row) -> Iterator[str]:
    """Mend the variants of a row that do not fit the shape, and yield a sentence for each row that is changed."""
    for table, column in COLUMNS:
        given = row.values.get(column)
        if row.table != table or not isinstance(given, list) or not all(map(_is_weighted, given)):
            continue
        if next(problems(keys.VARIANTS, given), None) is None:
            continue
        specs = parse_variants({"variants": given}, column)
        mended = [_mended(each, spec) for each, spec in zip(given, specs, strict=True)]
        if mended != given:
            row.values[column] = mended
            names = ", ".join(printable(each.name, 50) for each in specs[:5])
            yield f"line {row.line} of the backup: odd values of the variants {names} are mended"


def _is_weighted(variant: object) -> bool:
    """Return whether a value is a variant with a number as its weight, which every version has asked for."""
    weight = variant.get("weight") if isinstance(variant, dict) else None
    return isinstance(weight, int | float) and not isinstance(weight, bool)


def _mended(variant: dict[str, Any], spec: VariantSpec) -> dict[str, Any]:
    """Return a variant with the whole weight, the payload of texts and the overrides of texts that the engine reads."""
    mended = variant | {"weight": spec.weight}
    if "payload" in variant:
        mended["payload"] = {"type": "string", "value": ""} | (spec.payload or {})
    if spec.payload is None:
        mended.pop("payload", None)
    if "overrides" in variant:
        mended["overrides"] = [{"contextName": each.field, "values": list(each.values)} for each in spec.overrides]
    return mended


FIRST = {"users": 1, "tokens": 1}
"""What a first start adds: an administrator and a token."""
COUNTED_APART = frozenset((*(table.name for table in USED), schema.events.name))
"""The tables that are counted as at a start with a seed; and the history, which a first start begins."""
SHOWN = 3
"""The most names of rows in a message."""


def describe_use(tx: Tx, version: str) -> str:
    """Return what a database of a version of the schema has besides what a first start makes; nothing if that is all."""
    there = count_existing_rows(tx)
    counted = {} if there == FIRST and is_first_token(tx) else there
    others = _other_rows(tx.db, version)
    return ", ".join(
        [
            *(f"{count} {name}" for name, count in counted.items()),
            *(f"{len(names)} {table} ({_shown(names)})" for table, names in others.items()),
        ]
    )


def _shown(names: list[str]) -> str:
    quoted = [f"`{printable(name)}`" for name in sorted(names)]
    return ", ".join([*quoted[:SHOWN], *(["…"] if quoted[SHOWN:] else [])])


def _other_rows(db: Connection, version: str) -> dict[str, list[str]]:
    """Return the names of the rows that a new database does not have, or has with other values, by table."""
    new = _new_rows(version)
    found = {name: set(rows) - set(new[name]) for name, rows in _rows_of(db).items()}
    return {name: [json.loads(row)[0] for row in rows] for name, rows in found.items() if rows}


def _new_rows(version: str) -> Mapping[str, list[str]]:
    """Return the rows of a new database of a version of the schema."""
    engine = create_engine("sqlite://")
    try:
        with engine.begin() as db:
            upgrade(db, version)
            return _rows_of(db)
    finally:
        engine.dispose()


def _rows_of(db: Connection) -> dict[str, list[str]]:
    tables = [table for table in read_tables(db) if table.name not in COUNTED_APART]
    return {table.name: [_comparable(table, row) for row in db.execute(select(table))] for table in tables}


def _comparable(table: TableClause, row: Any) -> str:
    """Return a row as a text without its times; it begins with what names the row."""
    key = " ".join(str(row._mapping[each.name]) for each in schema.METADATA.tables[table.name].primary_key)
    values = {each.name: row._mapping[each.name] for each in table.c if not isinstance(each.type, UtcDateTime)}
    return json.dumps([key, values], sort_keys=True)
