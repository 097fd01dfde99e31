"""URLs of PostgreSQL are read as libpq reads them, and what cannot work is refused before a connection is made."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.core.errors import DatabaseError
from flagsvc.server.store.engines import database_url, make_engine
from flagsvc.server.store.postgresql import state
from flagsvc.server.store.store import require_listenable

USER = {"user": "u", "dbname": "db"}
A_AT_B = {"application_name": "a@b"}


def connected(url: str) -> dict[str, Any]:
    """Return what the driver gets of a URL."""
    engine = make_engine(url)
    _, named = engine.dialect.create_connect_args(engine.url)
    return {name: value for name, value in named.items() if name != "context"}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgres://u:p%40w@h:5433/db?ssl=true", {"host": "h", "port": 5433, "password": "p@w", "sslmode": "require"}),
        ("postgresql://u@h/db?ssl=0", {"host": "h", "sslmode": "disable"}),
        (
            "postgresql://u@h1:1,h2:2/db?target_session_attrs=read-write",
            {"host": "h1,h2", "port": "1,2", "target_session_attrs": "read-write"},
        ),
        ("postgresql://u@h1,h2:2/db", {"host": "h1,h2", "port": ",2"}),
        ("postgresql://u@h1,h2/db?port=77", {"host": "h1,h2", "port": "77,77"}),
        ("postgresql://u@/db?host=/run/postgresql", {"host": "/run/postgresql"}),
        ("postgresql://u@%2Frun%2Fpostgresql/db", {"host": "/run/postgresql"}),
        ("postgresql://u@[::1]:5/db?schema=flags", {"host": "::1", "port": 5, "schema": "flags"}),
        ("postgresql://u:p/w?d@h:1/db", {"host": "h", "port": 1, "password": "p/w?d"}),
        ("postgresql://u:p@s@t@h:1/db?application_name=a@b", {"host": "h", "port": 1, "password": "p@s@t"} | A_AT_B),
        ("postgresql://h:1/db?application_name=a@b&user=u", {"host": "h", "port": 1, "application_name": "a@b"}),
        ("postgresql://u:s@h/db?password=other", {"host": "h", "password": "other"}),
    ],
)
def test_a_url_means_what_it_means_to_libpq(url: str, expected: dict[str, Any]) -> None:
    """Hosts, ports, sockets and parameters reach the driver; `ssl` of other drivers becomes `sslmode`."""
    assert connected(url) == USER | expected
    assert "other" not in str(database_url(url)) and "p@w" not in str(database_url(url))


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("postgresql://h/db?ssl=maybe", "the parameter `ssl` of the database's URL is true or false, and not `maybe`"),
        ("postgresql://h/db?sslmod=require", "the parameter `sslmod` .* is not known to PostgreSQL: did you mean `sslmode`"),
        ("postgresql://h:abc/db", "the database's URL is not understood"),
        ("postgresql://u:secret@[::1/db", "the database's URL is not understood"),
        ("postgresql://u:secret@h/db?host=a,b&port=1,2,3", "the database's URL is not understood"),
        ("postgresql://u:secret@/db?port=1,2", "the database's URL is not understood"),
        ("postgresql://u:secret%00@h:1/db", "the database's URL is not understood"),
        ("postgresql://u:secret@\0h:1/db", "the database's URL is not understood"),
    ],
)
def test_a_url_that_cannot_work_is_refused(url: str, why: str) -> None:
    """The message says what is wrong, and shows no secret."""
    with pytest.raises(DatabaseError, match=why) as refused:
        database_url(url)
    assert "secret" not in str(refused.value)


def test_a_search_path_without_a_schema_is_refused() -> None:
    """The message says how to name the schema."""
    with pytest.raises(DatabaseError, match="search path `nowhere` of the database names no schema that exists"):
        state(None, "nowhere")


@pytest.mark.parametrize(("database", "listen"), [("flags.db", "postgresql://h/db"), ("postgresql://h/db", "flags.db")])
def test_only_postgresql_is_listened_to(database: str, listen: str) -> None:
    """A URL to listen at beside a file, or of a file, is refused."""
    with pytest.raises(DatabaseError, match="only PostgreSQL has a URL to listen at"):
        require_listenable(database, listen)
