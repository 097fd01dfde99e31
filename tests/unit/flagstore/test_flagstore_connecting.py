"""What connections to PostgreSQL are made with: a server that is gone without a word is found out."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from flagsvc.flagstore.changes import arguments
from flagsvc.flagstore.connecting import OPTIONS, postgresql_arguments
from flagsvc.flagstore.store import make_engine

KEEPING = {"connect_timeout", "tcp_user_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count"}


def test_every_connection_is_watched() -> None:
    """The pool's connections and the one that hears of changes have the same bounds."""
    engine = make_engine("postgresql://me@db/flags")
    found = arguments(engine)
    assert set(found) == KEEPING | {"application_name", "options"}
    assert found | {"application_name": "x"} == postgresql_arguments(engine.url, "x")


@pytest.mark.parametrize("query", ["connect_timeout=2&application_name=mine", "options=-c%20search_path%3Dours"])
def test_what_the_url_says_wins(query: str) -> None:
    """A setting of the URL is kept; its options stand behind ours."""
    found = postgresql_arguments(make_url(f"postgresql+psycopg://me@db/flags?{query}"), "flagsvc")
    options = "" if "options" not in query else " -c search_path=ours"
    assert found["options"] == OPTIONS + options
    assert ("connect_timeout" in found) is ("connect_timeout" not in query)


def test_sessions_are_set_up(postgresql_url: str) -> None:
    """Waiting for a lock ends, and transactions are READ COMMITTED, whatever the database's own settings are."""
    engine = make_engine(postgresql_url + ("&" if "?" in postgresql_url else "?") + "options=-c%20work_mem%3D1MB")
    with engine.connect() as db:
        shown = [db.execute(text(f"SHOW {name}")).scalar() for name in ("lock_timeout", "work_mem")]
        assert shown == ["30s", "1MB"]
        assert db.execute(text("SHOW transaction_isolation")).scalar() == "read committed"
    engine.dispose()


def test_the_databases_isolation_is_not_taken_over(postgresql_url: str) -> None:
    """A database whose default is another isolation does not change what writers rely on."""
    engine = make_engine(postgresql_url)
    name = engine.url.database
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
        db.execute(text(f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'serializable'"))
    engine.dispose()
    with engine.connect() as db:
        assert db.execute(text("SHOW transaction_isolation")).scalar() == "read committed"
    engine.dispose()
