"""A backup of another proxy becomes our storage, under the key that a proxy with the result looks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flagsvc.cli.migrate import translate_reference
from flagsvc.cli.migrating.backups import choose_folder, list_callers, read_backup, seed
from flagsvc.cli.migrating.edge import translate_edge
from flagsvc.cli.migrating.migration import Migration, read_options
from flagsvc.core.errors import ConfigurationError
from flagsvc.proxy.configuration.stores import FileStore, StoredDocument
from flagsvc.proxy.generations.feeds import make_storage_key
from flagsvc.settings.options import ProxyOptions
from support.evaluating import feature

ONE = {"UPSTREAM_URL": "https://flags.example.com", "TOKENS": "*:development.s3cret"}


def document(*features: object) -> dict[str, Any]:
    """Return a document as Edge writes it."""
    return {"version": 2, "features": list(features), "segments": [], "query": {"environment": "development"}}


DEVELOPMENT = document(feature("first", project="shop"), feature("second", project="billing"), feature("ü", project="default"))


def token(text: str, kind: str, environment: str, projects: list[str], status: str | None = "Validated") -> dict[str, Any]:
    """Return an entry of Edge's list of tokens."""
    return {"token": text, "type": kind, "environment": environment, "projects": projects, "status": status}


TOKENS = [
    token("*:development.s3cret", "backend", "development", ["*"]),
    token("*:development.s3cret-web", "frontend", "development", ["*"]),
    token("[]:development.s3cret-two", "client", "development", ["shop", "billing"]),
    token("*:production.s3cret-web", "frontend", "production", ["*"]),
    token("*:development.s3cret-bad", "frontend", "development", ["*"], "Invalid"),
    token("*:*.s3cret-admin", "admin", "development", ["*"]),
    {"token": "shop:development.s3cret-shop", "type": "frontend", "projects": ["shop"]},
    {"token": 7},
    "odd",
]


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Give a folder as Edge writes it."""
    folder = tmp_path / "edge"
    folder.mkdir()
    pairs = [["development", DEVELOPMENT], ["production", document(feature("third"))]]
    (folder / "unleash_features.json").write_text(json.dumps(pairs, ensure_ascii=False))
    (folder / "unleash_tokens.json").write_text(json.dumps(TOKENS))
    (folder / "unleash_last_event_ids.json").write_text("{}")
    return folder


def stored(migration: Migration, folder: Path, environment: str = "") -> dict[str, Any] | None:
    """Return the document that a proxy finds in a folder."""
    options = ProxyOptions.of(read_options(migration.merged(environment)).values)
    data = FileStore(folder).get(make_storage_key(options, environment))
    return None if data is None else json.loads(StoredDocument.unpack(data).body)


def test_one_environment(backup: Path, tmp_path: Path) -> None:
    """The document of the token's environment is stored whole, and --into is the storage of the result."""
    migration = translate_edge(ONE, "")
    folder = choose_folder(migration, str(tmp_path / "state"))
    assert seed(migration, read_backup(str(backup)), folder, force=False) == [("", 3, 0)]
    assert migration.options["storage"] == folder.as_uri() and folder == tmp_path / "state"
    assert stored(migration, folder) == DEVELOPMENT


def test_several_environments(backup: Path, tmp_path: Path) -> None:
    """Each token gets the flags that it would get from the upstream: those of its environment and its projects."""
    tokens = "shop:development.s3cret-a,[]:development.s3cret-two,*:production.s3cret-b"
    migration = translate_edge(ONE | {"TOKENS": tokens, "BACKUP_FOLDER": str(backup)}, "")
    folder = choose_folder(migration, None)
    assert folder == backup
    found = seed(migration, read_backup(str(backup)), folder, force=False)
    assert found == [("development-shop", 1, 0), ("development-several", 2, 0), ("production", 1, 0)]
    names = {name: [each["name"] for each in (stored(migration, folder, name) or {})["features"]] for name, _, _ in found}
    assert names == {"development-shop": ["first"], "development-several": ["first", "second"], "production": ["third"]}


def test_several_projects_that_no_list_has(backup: Path, tmp_path: Path) -> None:
    """Without Edge's list of tokens the projects of `[]` are unknown: all flags are stored."""
    (backup / "unleash_tokens.json").unlink()
    migration = translate_edge(ONE | {"TOKENS": "[]:development.s3cret-two"}, "")
    (result,) = seed(migration, read_backup(str(backup)), tmp_path / "state", force=False)
    assert result.flags == 3


def test_the_reference(tmp_path: Path) -> None:
    """The one document of the reference is stored for its proxy, with what is malformed in it."""
    (tmp_path / "unleash-backup-unleash-proxy.json").write_text(json.dumps(document(feature("first"), {"name": None}, "odd")))
    given = {"UNLEASH_URL": "https://h/api", "UNLEASH_API_TOKEN": "t", "UNLEASH_PROXY_CLIENT_KEYS": "k"}
    migration = translate_reference(given)
    assert seed(migration, read_backup(str(tmp_path)), tmp_path / "state", force=False) == [("", 3, 2)]


def test_what_is_stored_is_not_lost(backup: Path, tmp_path: Path) -> None:
    """A configuration that a proxy has stored is newer than a backup: it is replaced by force alone."""
    migration, state = translate_edge(ONE, ""), tmp_path / "state"
    seed(migration, read_backup(str(backup)), state, force=False)
    with pytest.raises(ConfigurationError, match="already: `--force` replaces it"):
        seed(migration, read_backup(str(backup)), state, force=False)
    seed(migration, read_backup(str(backup)), state, force=True)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (ONE | {"TOKENS": "*:staging.s3cret"}, "the backup has nothing for environment `staging`; it has `development`"),
        (ONE | {"TOKENS": "s3cret"}, "the backup has nothing for a token without an environment"),
        (ONE | {"TOKENS": "*:development.a,*:staging.s3cret"}, "environment `staging`"),
        (ONE | {"UPSTREAM_URL": "x"}, "flagsvcUrl is required"),
        ({"UPSTREAM_URL": "https://h"}, "flagsvcApiToken is required"),
        ({"BOOTSTRAP_FILE": "/f.json"}, "a proxy that reads a file needs no backup"),
    ],
)
def test_what_cannot_be_stored(given: dict[str, str], problem: str, backup: Path, tmp_path: Path) -> None:
    """If the document of one environment is missing, nothing is stored. The message has no secret."""
    with pytest.raises(ConfigurationError, match=problem) as raised:
        seed(translate_edge(given, ""), read_backup(str(backup)), tmp_path / "state", force=False)
    assert not (tmp_path / "state").exists() and "s3cret" not in str(raised.value)


@pytest.mark.parametrize(("more", "into"), [({}, None), ({"REDIS_URL": "redis://h"}, None), ({}, "a\nb")])
def test_no_folder(more: dict[str, str], into: str | None) -> None:
    """Only a folder can be written: without one in the result, the user has to name it, with a name that a path can have."""
    with pytest.raises(ConfigurationError, match="name it with `--into`"):
        choose_folder(translate_edge(ONE | more, ""), into)


BROKEN = [
    ("{", "is not JSON"),
    ("7", "is no list of environments with their documents"),
    ('["a"]', "is no list of environments with their documents"),
    ('[[1, {}]]', "is no list of environments with their documents"),
    ('[["development", {}]]', "is no client-features document"),
    ('{"development": 7}', "is no client-features document"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "problem"), BROKEN)
def test_a_backup_that_is_none(text: str, problem: str, tmp_path: Path) -> None:
    """What is no backup is refused with the name of the file."""
    (tmp_path / "unleash_features.json").write_text(text)
    with pytest.raises(ConfigurationError, match=problem) as raised:
        read_backup(str(tmp_path))
    assert "unleash_features.json" in str(raised.value)


def test_a_folder_without_a_backup(tmp_path: Path) -> None:
    """The message says what was looked for; two documents of the reference are one too many."""
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ConfigurationError, match=r"looked for unleash_features.json \(Unleash Edge\) and unleash-backup-"):
            read_backup(str(folder))
    for name in ("a", "b"):
        (tmp_path / f"unleash-backup-{name}.json").write_text("{}")
    with pytest.raises(ConfigurationError, match="several backups"):
        read_backup(str(tmp_path))


def test_older_form(tmp_path: Path) -> None:
    """A mapping of environments is read like a list of pairs."""
    (tmp_path / "unleash_features.json").write_text(json.dumps({"development": DEVELOPMENT}))
    assert read_backup(str(tmp_path)) == ({"development": DEVELOPMENT}, [])


def test_callers_of_one_environment(backup: Path) -> None:
    """Valid tokens of callers are listed by their kind, without tokens of other environments."""
    migration = translate_edge(ONE | {"PRETRUSTED_TOKENS": "s3cret-key@development"}, "")
    assert list_callers(migration, read_backup(str(backup)).tokens) == 4
    assert migration.options["clientKeys"] == ["s3cret-key", "*:development.s3cret-web", "shop:development.s3cret-shop"]
    assert migration.options["expServerSideSdkConfig.tokens"] == ["*:development.s3cret", "[]:development.s3cret-two"]


def test_callers_of_several_environments(backup: Path) -> None:
    """Each token is listed in one table."""
    migration = translate_edge(ONE | {"TOKENS": "shop:development.a,*:development.b,*:production.c"}, "")
    assert list_callers(migration, read_backup(str(backup)).tokens) == 5
    listed = {name: table.get("clientKeys") for name, table in migration.environments.items()}
    assert listed == {
        "development-shop": ["shop:development.s3cret-shop"],
        "development": ["*:development.s3cret-web"],
        "production": ["*:production.s3cret-web"],
    }
