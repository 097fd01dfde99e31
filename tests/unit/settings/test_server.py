"""The flag server's options: rows that are not in each other's way, precedence, files of secrets, every problem at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from pathlib import Path

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.load import load
from flagsvc.settings.option import Option
from flagsvc.settings.render import default_text
from flagsvc.settings.server import BY_FIELD, ServerOptions, load_server, server_reference
from flagsvc.settings.server_table import SERVER_OPTIONS
from flagsvc.settings.table import BY_NAME
from support.settings_samples import SAMPLES

ROOT = Path(__file__).resolve().parents[3]
HOME = {"XDG_STATE_HOME": "/state"}

THE_PROXYS = {row.name for row in SERVER_OPTIONS if row is BY_NAME.get(row.name)}
NAMED = {row.name: row for row in SERVER_OPTIONS}
VALID: dict[str, tuple[str, object]] = {
    **{name: SAMPLES[name] for name in THE_PROXYS},
    "port": ("8080", 8080),
    "host": ("127.0.0.1", "127.0.0.1"),
    "basePath": ("flags/", "/flags"),
    "bodyLimit": ("2 MB", 2 * 1024 * 1024),
    "database": ("postgresql://me:word@db/flags", "postgresql://me:word@db/flags"),
    "seed": ("/etc/seed.yaml", "/etc/seed.yaml"),
    "seedMode": ("ADD", "add"),
    "useJsonLogger": ("true", True),
}
REFUSED = {
    "port": "70000",
    "host": "no host",
    "basePath": "a b",
    "keepAliveTimeout": "0",
    "shutdownGrace": "soon",
    "maxConnections": "0",
    "requestMemory": "0",
    "headerTimeout": "0",
    "bodyTimeout": "0",
    "writeTimeout": "0",
    "headerLimit": "much",
    "tlsCert": "with\tcontrol",
    "tlsKey": "with\tcontrol",
    "tlsKeyPassword": "with\tcontrol",
    "tlsMinVersion": "1.1",
    "tlsClientCa": "with\tcontrol",
    "tlsHandshakeTimeout": "0",
    "socketMode": "rw",
    "bodyLimit": "much",
    "database": "with\tcontrol",
    "seed": "with\tcontrol",
    "seedMode": "replace",
    "useJsonLogger": "perhaps",
    "logLevel": "loud",
}


@pytest.mark.parametrize("option", [row for row in SERVER_OPTIONS if row.needs], ids=lambda option: option.name)
def test_an_option_without_the_one_it_needs_is_refused(option: Option) -> None:
    """It would have no effect; the problem names both."""
    with pytest.raises(ConfigurationError, match=f"has no effect without {option.needs}; give both, or neither"):
        load_server(HOME, {option.name: VALID[option.name][0]})


def test_every_row_is_an_option_in_code_and_has_a_sample() -> None:
    """Rows, fields of ServerOptions and the samples of these tests are the same options."""
    assert {field.name for field in fields(ServerOptions)} == set(BY_FIELD)
    assert {option.name for option in SERVER_OPTIONS} == set(VALID) == set(REFUSED)


def test_no_two_rows_share_a_name_a_flag_or_a_variable() -> None:
    """Whatever is given means one option."""
    for names in (
        [option.flag for option in SERVER_OPTIONS],
        [variable.name for option in SERVER_OPTIONS for variable in option.variables],
    ):
        assert not [name for name, times in Counter(names).items() if times > 1]


@pytest.mark.parametrize("option", SERVER_OPTIONS, ids=lambda option: option.name)
def test_an_option_is_read_from_its_variables_and_its_flag(option: Option) -> None:
    """Each way gives the value; the flag wins over the variable, and the source is told."""
    text, value = VALID[option.name]
    around = HOME | ({NAMED[option.needs].reads[0]: VALID[option.needs][0]} if option.needs else {})
    for variable in option.variables:
        if not variable.holds_path:
            loaded = load_server(around | {variable.name: text}, {})
            assert getattr(loaded.options, option.field) == value
            assert loaded.sources[option.name] == f"environment {variable.name}"
    loaded = load_server(around | {option.reads[0]: REFUSED[option.name]}, {option.name: text})
    assert getattr(loaded.options, option.field) == value
    assert loaded.sources[option.name] == f"flag {option.flag}"


def test_without_anything_given_the_defaults_hold() -> None:
    """The port is the real server's, and the database is a file in the user's state folder."""
    loaded = load_server(HOME, {})
    assert loaded.options == ServerOptions(database="/state/flagsvc/flags.db")
    assert set(loaded.sources.values()) == {"default"}
    assert loaded.warnings == []
    assert loaded.options.port == 4242


def test_every_problem_is_told_at_once() -> None:
    """All refused values stand in one error, each with where it came from, and none with a password."""
    given = {option.name: REFUSED[option.name] for option in SERVER_OPTIONS} | {"database": "postgres://me:hunter2\t@x"}
    with pytest.raises(ConfigurationError) as caught:
        load_server(HOME, given)
    assert len(caught.value.problems) == len(SERVER_OPTIONS)
    assert "hunter2" not in str(caught.value)
    for option, problem in zip(SERVER_OPTIONS, caught.value.problems, strict=True):
        assert problem.startswith(f"{option.name} (flag {option.flag}): expected ")


def test_the_database_may_stand_in_a_file(tmp_path: Path) -> None:
    """A file holds the URL; the value itself wins over it, which is warned of; a file that is missing is a problem."""
    secret = tmp_path / "database"
    secret.write_text("postgresql://me:word@db/flags\n")
    environment = HOME | {"FLAGSVC_DATABASE_URL_FILE": str(secret)}
    assert load_server(environment, {}).options.database == "postgresql://me:word@db/flags"
    both = load_server(environment | {"FLAGSVC_DATABASE_URL": "flags.db"}, {})
    assert both.options.database == "flags.db"
    assert len(both.warnings) == 1
    with pytest.raises(ConfigurationError, match="cannot read"):
        load_server(HOME, {"databaseFile": str(tmp_path / "none")})


def test_the_options_show_no_password() -> None:
    """The text of the options masks the credentials of the database."""
    shown = repr(ServerOptions(database="postgresql://me:hidden@db/flags?password=hidden", tls_key_password="hidden"))
    assert "hidden" not in shown
    assert "port=4242" in shown


def test_neither_program_warns_of_the_others_variables() -> None:
    """Both may share a file of variables; one that nobody reads is named, with the nearest one that is."""
    shared = {"FLAGSVC_URL": "http://x/api", "FLAGSVC_API_TOKEN": "t", "FLAGSVC_PROXY_CLIENT_KEYS": "k"}
    assert load_server(HOME | shared, {}).warnings == []
    loaded = load(HOME | shared | {"FLAGSVC_DATABASE_URL": "x", "UNLEASH_SERVER_PORT": "1"}, None, {})
    assert loaded.warnings == []
    (warning,) = load_server(HOME | {"FLAGSVC_DATABASE_URLS": "x"}, {}).warnings
    assert "did you mean `FLAGSVC_DATABASE_URL`?" in warning


def test_what_kubernetes_sets_for_a_service_of_that_name_is_no_option() -> None:
    """A service `flagsvc-server` puts FLAGSVC_SERVER_PORT=tcp://… into every pod: the port stays the default."""
    loaded = load_server(HOME | {"FLAGSVC_SERVER_PORT": "tcp://10.0.0.1:4242"}, {})
    assert (loaded.options.port, loaded.warnings) == (4242, [])


def test_the_reference_page_is_what_the_rows_say() -> None:
    """docs/reference/server-options.md is up to date (`make docs`), and names every option and its default."""
    page = server_reference()
    assert (ROOT / "docs" / "reference" / "server-options.md").read_text() == page
    for option in SERVER_OPTIONS:
        assert f"| `{option.name}` |" in page
        assert default_text(option) in page
