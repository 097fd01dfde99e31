"""One TOML file for both programs: the flag server reads the table [server], and paths are relative to the file.

The fingerprints of the files that options are read from.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.load import load, resolve
from flagsvc.settings.places import UNREAD, Files, fingerprint, look, read_file
from flagsvc.settings.server import load_server, resolve_server
from support.settings_samples import BASE

HOME = {"XDG_STATE_HOME": "/state"}
BOTH = """
port = 3001
[cors]
maxAge = 5
[server]
port = 4343
logLevel = "info"
"""


@pytest.mark.parametrize("variable", ["FLAGSVC_CONFIG", "UNLEASH_CONFIG", None])
def test_one_file_for_both_programs(variable: str | None, file: Path) -> None:
    """The proxy ignores [server], and the server reads only [server]. Sources name the file and the table. A flag wins."""
    file.write_text(BOTH)
    environment, given = ({variable: str(file)}, None) if variable else ({"FLAGSVC_CONFIG": "/nowhere"}, file)
    proxy = load(BASE | environment, given, {})
    assert (proxy.options.port, proxy.options.cors_max_age, proxy.warnings) == (3001, 5, [])
    server = load_server(HOME | environment, {}, given)
    assert (server.options.port, server.options.log_level, server.warnings) == (4343, "info", [])
    assert server.sources["port"] == f"file {file} [server]"
    assert load_server(HOME | environment | {"PORT": "2"}, {}, given).options.port == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[server]\nprot = 1\n", "unknown option `prot` (file {} [server]); did you mean `port`?"),
        ("[server]\nDATABASE_URL = 1\n", "unknown option `DATABASE_URL` (file {} [server]); did you mean `database`?"),
        (
            "[server]\nclientKeys = ['k']\n",
            "unknown option `clientKeys` (file {} [server]); it is the proxy's, and stands outside of [server]",
        ),
        ("[server]\nport = 'x'\n", "port (file {} [server]): expected a port number from 0 to 65535, got `x`"),
        ("port = 1\n", "configuration file {}: it has no table [server] with the flag server's options"),
        ("server = 1\n", "configuration file {}: it has no table [server] with the flag server's options"),
        ("port = \n", "configuration file {}: not TOML: invalid value (at line 1, column 8)"),
    ],
)
def test_what_is_wrong_in_the_servers_file(text: str, problem: str, file: Path) -> None:
    """A wrong key or value, and a file without the table, raise ConfigurationError."""
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_server(HOME, {}, file)
    assert caught.value.problems == (problem.format(file),)


def test_a_file_of_the_proxys_alone_is_no_mistake_where_a_variable_names_it(file: Path) -> None:
    """FLAGSVC_CONFIG may name a file without [server], because both programs read the variable.
    The server then uses its defaults."""
    file.write_text("port = 1\n")
    loaded = load_server(HOME | {"FLAGSVC_CONFIG": str(file)}, {})
    assert (loaded.options.port, loaded.warnings) == (4242, [])


def test_the_proxy_knows_what_is_the_servers(file: Path) -> None:
    """The problem of a flag server's option outside [server] says where the option belongs."""
    file.write_text("database = 'x'\n")
    assert list(resolve(BASE, file, {}).problems.values()) == [
        f"unknown option `database` (file {file}); it is the flag server's, and stands in [server]"
    ]


PATHS: list[tuple[str, Any, Any]] = [
    ("tlsCert", "tls/cert.pem", "{}/tls/cert.pem"),
    ("upstreamCa", "ca.pem", "{}/ca.pem"),
    ("upstreamCa", "/etc/ca.pem", "/etc/ca.pem"),
    ("customStrategies", ["a.py", "/opt/b.py"], ("{}/a.py", "/opt/b.py")),
    ("expCustomEnrichers", "a.py, b.py", ("{}/a.py", "{}/b.py")),
    ("flagsvcUrl", "file:flags.json", "file://{}/flags.json"),
    ("flagsvcUrl", "file:///flags.json", "file:///flags.json"),
    ("flagsvcUrl", "http://h/api", "http://h/api"),
    ("storage", "file:state/here", "file://{}/state/here"),
    ("storage", "none", "none"),
    ("database", "flags.db", "{}/flags.db"),
    ("database", "sqlite:///flags.db", "sqlite:///{}/flags.db"),
    ("database", "sqlite:////var/flags.db", "sqlite:////var/flags.db"),
    ("database", "~/flags.db", "~/flags.db"),
    ("database", "postgresql://h/flags", "postgresql://h/flags"),
    ("seed", "seed.yaml", "{}/seed.yaml"),
]


@pytest.mark.parametrize(("name", "given", "kept"), PATHS)
def test_relative_paths_go_by_the_file(name: str, given: Any, kept: Any, file: Path) -> None:
    """Relative paths in the file, also in [server], are relative to the folder of the file. Absolute paths do not change."""
    of_the_server = name in ("database", "seed")
    file.write_text(f"{'[server]' if of_the_server else ''}\n{name} = {given!r}\n")
    read = resolve_server(HOME, file, {}) if of_the_server else resolve(BASE if name != "flagsvcUrl" else {}, file, {})
    expected = tuple(each.format(file.parent) for each in kept) if isinstance(kept, tuple) else kept.format(file.parent)
    assert read.values[name] == expected


def test_files_of_secrets_go_by_the_file(file: Path) -> None:
    """The path in an option such as `flagsvcApiTokenFile` is relative to the folder of the file."""
    (file.parent / "token").write_text("t0ken")
    file.write_text("flagsvcApiTokenFile = 'token'\n")
    loaded = load({name: BASE[name] for name in BASE if "TOKEN" not in name}, file, {})
    assert loaded.options.flagsvc_api_token == "t0ken"
    assert str(file.parent / "token") in loaded.files
    assert loaded.sources["flagsvcApiToken"] == f"file {file}, flagsvcApiTokenFile"


def test_paths_of_variables_and_flags_go_by_the_working_directory(file: Path) -> None:
    """Paths in variables and flags are relative to the working directory."""
    file.write_text("port = 1\n")
    resolved = resolve(BASE | {"FLAGSVC_UPSTREAM_CA": "ca.pem"}, file, {"tlsCert": "cert.pem"})
    assert (resolved.values["upstreamCa"], resolved.values["tlsCert"]) == ("ca.pem", "cert.pem")


def test_a_folder_with_odd_characters(tmp_path: Path) -> None:
    """Special characters in the folder's name are escaped in a file: URL."""
    folder = tmp_path / "a b%20"
    folder.mkdir()
    file = folder / "f.toml"
    file.write_text("flagsvcUrl = 'file:flags.json'\n")
    assert resolve({}, file, {}).values["flagsvcUrl"] == f"file://{tmp_path}/a%20b%2520/flags.json"


# ---- fingerprints


def test_what_was_read_is_what_is_there(tmp_path: Path) -> None:
    """`look` returns the recorded fingerprint for an unchanged file, and another for changed content, with nothing of it."""
    path, files = tmp_path / "keys", Files()
    path.write_text("one")
    assert read_file(str(path), files) == b"one"
    assert files == {str(path): look(str(path))}
    path.write_text("two")
    assert files[str(path)] != look(str(path)) == fingerprint(b"two")
    assert b"secret" not in fingerprint(b"secret")


@pytest.mark.parametrize("name", ["nowhere", "folder", "nul\0byte"])
def test_what_cannot_be_read(tmp_path: Path, name: str) -> None:
    """An unreadable file is recorded as `UNREAD`, and `look` returns the same."""
    (tmp_path / "folder").mkdir()
    path, files = str(tmp_path / name), Files()
    with pytest.raises((OSError, ValueError)):
        read_file(path, files)
    assert files == {path: UNREAD} == {path: look(path)}


def test_a_file_that_goes_just_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that vanishes during `look` counts as unreadable and raises no error."""
    monkeypatch.setattr(os.path, "isfile", lambda path: True)
    assert look(str(tmp_path / "gone")) == UNREAD


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    """A pipe is recorded as None, because it can be read only once. `look` does not open a pipe."""
    reading, writing = os.pipe()
    os.write(writing, b"key")
    os.close(writing)
    path, files = f"/dev/fd/{reading}", Files()
    assert read_file(path, files) == b"key"
    os.close(reading)
    assert files == {path: None}
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert look(str(fifo)) == UNREAD
