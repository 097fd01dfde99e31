"""Database migrations: the steps produce the schema of the code, once, however many servers start."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, bindparam, column, insert, inspect, select, table, text, update

from flagsvc.core.errors import DatabaseError
from flagsvc.server.store.columns import Json, UtcDateTime
from flagsvc.server.store.engines import make_engine
from flagsvc.server.store.migrate import VERSION_TABLE, alembic_config, known_versions, migrate
from flagsvc.server.store.schema import (
    METADATA,
    addons,
    context_fields,
    environments,
    events,
    features,
    projects,
    strategy_types,
    tag_types,
)
from support.processes import ROOT

STARTER = """
import sys
sys.path.insert(0, sys.argv[1])
from flagsvc.server.store.migrate import migrate
from flagsvc.server.store.engines import make_engine
engine = make_engine(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
migrate(engine)
print("migrated", flush=True)
"""


@pytest.fixture
def engine(empty_url: str) -> Iterator[Engine]:
    """Give an engine on an empty database."""
    made = make_engine(empty_url)
    yield made
    made.dispose()


def test_a_migrated_database_is_what_the_code_knows(engine: Engine) -> None:
    """The steps create exactly the tables, columns, indexes, keys and cascades of the schema."""
    migrate(engine)
    with engine.connect() as db:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        assert compare_metadata(MigrationContext.configure(db, opts=options), METADATA) == []
        primary = {name: inspect(db).get_pk_constraint(name)["constrained_columns"] for name in METADATA.tables}
        found = {
            (name, *key["constrained_columns"], key["options"].get("ondelete"), key["options"].get("onupdate"))
            for name in METADATA.tables
            for key in inspect(db).get_foreign_keys(name)
        }
    wanted = {
        (table.name, *(column.name for column in key.columns), key.ondelete, key.onupdate)
        for table in METADATA.tables.values()
        for key in table.foreign_key_constraints
    }
    assert primary == {name: [column.name for column in table.primary_key] for name, table in METADATA.tables.items()}
    assert found == wanted


def test_a_new_database_holds_what_data_sets_refer_to(engine: Engine) -> None:
    """The default project, two environments, built-in strategy types, context fields and the tag type exist from the start."""
    migrate(engine)
    with engine.connect() as db:
        names = {
            table.name: set(db.execute(select(table.primary_key.columns[0])).scalars())
            for table in (projects, environments, strategy_types, context_fields, tag_types, features)
        }
        built_in = db.execute(select(strategy_types.c.built_in).distinct()).scalars().all()
    assert names == {
        "projects": {"default"},
        "environments": {"development", "production"},
        "strategy_types": {"default", "flexibleRollout", "remoteAddress", "applicationHostname"},
        "context_fields": {"appName", "currentTime", "environment", "sessionId", "userId"},
        "tag_types": {"simple"},
        "features": set(),
    }
    assert built_in == [True]


def test_migrating_again_changes_nothing(engine: Engine) -> None:
    """What a user changed in a database stays when the server starts again."""
    migrate(engine)
    with engine.begin() as db:
        db.execute(update(projects).values(name="Ours"))
        db.execute(context_fields.delete().where(context_fields.c.name == "appName"))
    migrate(engine)
    with engine.connect() as db:
        assert db.execute(select(projects.c.name)).scalars().all() == ["Ours"]
        assert "appName" not in db.execute(select(context_fields.c.name)).scalars().all()


def test_a_database_of_a_newer_version_is_refused(engine: Engine) -> None:
    """An older server does not change a newer database, and reports its version."""
    migrate(engine)
    with engine.begin() as db:
        db.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(DatabaseError, match=r"the schema `9999`.*a newer version made it"):
        migrate(engine)


def test_a_database_of_another_program_is_refused(engine: Engine) -> None:
    """A database with tables of the same names that flagsvc did not create is refused."""
    with engine.begin() as db:
        db.execute(text("CREATE TABLE features (name TEXT)"))
        db.execute(text("INSERT INTO features VALUES ('theirs')"))
    with pytest.raises(DatabaseError, match="tables that flagsvc did not make: `features`"):
        migrate(engine)
    with engine.connect() as db:
        assert inspect(db).get_table_names() == ["features"]


def test_a_step_that_fails_leaves_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps run in one transaction: a database is migrated or unchanged."""

    def upgrade(config: Config, target: str) -> None:
        real(config, target)
        raise RuntimeError("the machine goes down")

    real = command.upgrade
    monkeypatch.setattr(command, "upgrade", upgrade)
    with pytest.raises(RuntimeError):
        migrate(engine)
    with engine.connect() as db:
        assert inspect(db).get_table_names() == []
    monkeypatch.undo()
    migrate(engine)


def test_threads_may_migrate_different_databases_at_once(tmp_path: Path) -> None:
    """Two servers in one process do not disturb each other's steps."""
    engines = [make_engine(str(tmp_path / f"{number}.db")) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(migrate, engines))
    for each in engines:
        with each.begin() as db:
            db.execute(insert(environments).values(name="staging", type="test", sort_order=1, enabled=True, protected=False))
        each.dispose()


def test_processes_may_start_at_once_on_an_empty_database(empty_url: str) -> None:
    """Six servers start together on an empty database; it is migrated once, and each server finds it migrated."""
    line = [sys.executable, "-c", STARTER, str(ROOT / "src"), empty_url]
    pipe = subprocess.PIPE
    programs = [subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(6)]
    try:
        for program in programs:
            assert program.stdout is not None and program.stdout.readline() == "ready\n"
        for program in programs:
            assert program.stdin is not None
            program.stdin.write("go\n")
            program.stdin.flush()
        said = [program.communicate(timeout=60) for program in programs]
    finally:
        for program in programs:
            program.kill()
            program.wait()
    assert [out for out, _ in said] == ["migrated\n"] * 6, said
    engine = make_engine(empty_url)
    with engine.connect() as db:
        assert len(db.execute(select(environments)).all()) == 2
    engine.dispose()


def test_events_of_older_versions_are_moved(engine: Engine) -> None:
    """What an older event of a deletion or of a segment says of the state before is found in its new place."""
    old = (
        ("segment-updated", {"before": {"name": "a"}, "after": {"name": "b"}}),
        ("tag-type-deleted", {"name": "t"}),
        ("tag-type-created", {"name": "t"}),
    )
    with engine.connect().execution_options(flagsvc_writing=True) as db, db.begin():
        command.upgrade(alembic_config(db), "0003")
        row = "INSERT INTO events (type, created_at, created_by, data) VALUES (:type, :moment, 'me', :data)"
        typed = text(row).bindparams(bindparam("moment", type_=UtcDateTime()), bindparam("data", type_=Json))
        now = datetime(2026, 1, 1, tzinfo=UTC)
        db.execute(typed, [{"type": kind, "moment": now, "data": data} for kind, data in old])
    migrate(engine)
    with engine.connect() as db:
        found = db.execute(select(events.c.type, events.c.before, events.c.data, events.c.tags).order_by(events.c.id)).all()
    assert [tuple(each) for each in found] == [
        ("segment-updated", {"name": "a"}, {"name": "b"}, []),
        ("tag-type-deleted", {"name": "t"}, None, []),
        ("tag-type-created", None, {"name": "t"}, []),
    ]


def test_who_changed_an_older_webhook_last(engine: Engine) -> None:
    """The last event of a webhook tells who changed the webhook last; without such an event it is not known."""
    changes: tuple[tuple[str, int | None, object], ...] = (
        ("addon-config-created", 5, {"id": 1}),
        ("addon-config-created", 5, {"id": 2}),
        ("addon-config-updated", -42, {"id": 2}),
        ("addon-config-deleted", 6, {"id": 1}),
        ("addon-config-updated", 7, ["odd"]),
    )
    row = {
        "provider": "webhook",
        "enabled": True,
        "parameters": {},
        "events": [],
        "projects": [],
        "environments": [],
        **dict.fromkeys(("created_at", "updated_at"), datetime(2026, 1, 1, tzinfo=UTC)),
        "dropped": 0,
    }
    with engine.connect().execution_options(flagsvc_writing=True) as db, db.begin():
        command.upgrade(alembic_config(db), "0007")
        known = [addons.c[name] for name in row]
        older = table(addons.name, *(column(each.name, each.type) for each in known))
        db.execute(insert(older), [row] * 3)
        for kind, author, data in changes:
            moment = row["created_at"]
            db.execute(insert(events).values(type=kind, created_at=moment, created_by="me", created_by_id=author, data=data))
    migrate(engine)
    with engine.connect() as db:
        assert list(db.execute(select(addons.c.changed_by_id).order_by(addons.c.id)).scalars()) == [5, -42, None]


def test_the_versions_are_those_of_alembic() -> None:
    """A start reads the known versions from the names of files, without Alembic; they are the versions of the steps in them."""
    steps = ScriptDirectory.from_config(alembic_config()).walk_revisions()
    assert known_versions() == tuple(step.revision for step in steps)


def test_a_start_on_a_current_database_does_without_alembic(sqlite_url: str) -> None:
    """Alembic takes a sixth of a start's processor time."""
    code = "import sys; from flagsvc.server.store.migrate import migrate; from flagsvc.server.store.engines import make_engine"
    code += f"; migrate(make_engine({sqlite_url!r})); assert 'alembic' not in sys.modules"
    environment = {"PYTHONPATH": str(ROOT / "src"), "PATH": ""}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
