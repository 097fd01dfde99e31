"""The flag server's options: unique names, precedence, files of secrets, and all problems together."""

from __future__ import annotations

from pathlib import Path

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.load import load
from flagsvc.settings.option import Option
from flagsvc.settings.server import ServerOptions, load_server
from flagsvc.settings.table import SERVER_OPTIONS
from support.option_samples import SERVER_SAMPLES, wrong

HOME = {"XDG_STATE_HOME": "/state"}

NAMED = {row.name: row for row in SERVER_OPTIONS}
REFUSED = {option.name: wrong(option) for option in SERVER_OPTIONS}


@pytest.mark.parametrize("option", [row for row in SERVER_OPTIONS if row.needs], ids=lambda option: option.name)
def test_an_option_without_the_one_it_needs_is_refused(option: Option) -> None:
    """An option without the option that it needs is a problem that names both."""
    with pytest.raises(ConfigurationError, match=f"has no effect without {option.needs}; give both, or neither"):
        load_server(HOME, {option.name: SERVER_SAMPLES[option.name][0]})


def needed_by(option: Option) -> dict[str, str]:
    """Return the variables of all options that an option needs, also indirectly."""
    if not option.needs:
        return {}
    other = NAMED[option.needs]
    return {other.reads[0]: SERVER_SAMPLES[other.name][0]} | needed_by(other)


@pytest.mark.parametrize("option", SERVER_OPTIONS, ids=lambda option: option.name)
def test_an_option_is_read_from_its_variables_and_its_flag(option: Option) -> None:
    """Each variable and the flag set the value. The flag wins, and the source is recorded."""
    text, value = SERVER_SAMPLES[option.name]
    around = HOME | needed_by(option)
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
    """One error has all refused values with their sources, and no password."""
    given = {option.name: REFUSED[option.name] for option in SERVER_OPTIONS} | {"database": "postgres://me:hunter2\t@x"}
    with pytest.raises(ConfigurationError) as caught:
        load_server(HOME, given)
    assert len(caught.value.problems) == len(SERVER_OPTIONS)
    assert "hunter2" not in str(caught.value)
    for option, problem in zip(SERVER_OPTIONS, caught.value.problems, strict=True):
        assert problem.startswith(f"{option.name} (flag {option.flag}): expected ")


def test_the_database_may_stand_in_a_file(tmp_path: Path) -> None:
    """A file may hold the URL. The value itself wins over the file with a warning. A missing file is a problem."""
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
    """The repr of the options masks passwords."""
    database = "postgresql://me:hidden@db/flags?password=hidden"
    shown = repr(ServerOptions(database=database, tls_cert="cert.pem", tls_key_password="hidden", port=1))
    assert "hidden" not in shown
    assert "port=1" in shown


def test_code_takes_texts_and_tells_every_problem() -> None:
    """`ServerOptions` parses values as the loader does, and reports all problems together."""
    assert ServerOptions(port="8080", body_limit="2 MB").body_limit == 2 * 1024 * 1024  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError) as caught:
        ServerOptions(port=70_000, seed_mode="add", databse="x")  # type: ignore[call-arg]
    assert [problem.partition(" ")[0] for problem in caught.value.problems] == ["unknown", "port:", "seed_mode:"]


def test_which_variables_give_a_warning() -> None:
    """A variable that neither program reads gives a warning with the nearest name, but none that Kubernetes sets for a service."""
    shared = {"FLAGSVC_URL": "http://x/api", "FLAGSVC_API_TOKEN": "t", "FLAGSVC_PROXY_CLIENT_KEYS": "k"}
    assert load_server(HOME | shared, {}).warnings == []
    loaded = load(HOME | shared | {"FLAGSVC_DATABASE_URL": "x", "UNLEASH_SERVER_PORT": "1"}, None, {})
    assert loaded.warnings == []
    (warning,) = load_server(HOME | {"FLAGSVC_DATABASE_URLS": "x"}, {}).warnings
    assert "did you mean `FLAGSVC_DATABASE_URL`?" in warning
    of_kubernetes = load_server(HOME | {"FLAGSVC_SERVER_PORT": "tcp://10.0.0.1:4242"}, {})
    assert (of_kubernetes.options.port, of_kubernetes.warnings) == (4242, [])
