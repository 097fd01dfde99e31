"""Storage of the configuration: folders, servers or none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flagsvc.settings.options import ProxyOptions, secrets_of
from flagsvc.settings.storage import STORAGE, RedisAddress, parse_storage, server_at


@pytest.mark.parametrize("value", ["./cache", "cache/flags", "../cache", ".", "~/cache"])
def test_a_plain_path_is_a_folder(value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A path without a scheme is a folder: it starts at the working directory, with `~` at the home, in a file at its folder."""
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.chdir(tmp_path)
    home = value.startswith("~")
    expected = "/home/me/cache" if home else os.path.normpath(tmp_path / value)
    assert parse_storage(value) == f"file://{expected}"
    inside = STORAGE.relative_to(value, "/etc/flags")
    assert parse_storage(inside) == f"file://{expected if home else os.path.normpath(f'/etc/flags/{value}')}"


@pytest.mark.parametrize(
    ("storage", "server"),
    [
        ("none", None),
        ("file:///var/lib/flags", None),
        ("redis://flags.example.com", RedisAddress("flags.example.com")),
        ("redis://h:7000/", RedisAddress("h", 7000)),
        ("rediss://h/15", RedisAddress("h", tls=True, database=15)),
        ("redis://[::1]:1/0", RedisAddress("::1", 1)),
        ("redis://:p%40ss%2F@h", RedisAddress("h", password="p@ss/")),
        ("redis://us%20er:p@h", RedisAddress("h", user="us er", password="p")),
        ("redis://:@h", RedisAddress("h")),
        ("unix:/run/my%20redis.sock", RedisAddress(path="/run/my redis.sock")),
        ("unix://u:p@/run/redis.sock?db=", RedisAddress(path="/run/redis.sock", user="u", password="p")),
        ("unix:///run/redis.sock?db=4", RedisAddress(path="/run/redis.sock", database=4)),
    ],
)
def test_servers(storage: str, server: RedisAddress | None) -> None:
    """A URL is split into its parts, and the parts are unquoted."""
    assert server_at(storage) == server


def test_addresses() -> None:
    """Messages use this form of a server's address."""
    servers = (RedisAddress("h", 7000), RedisAddress("::1"), RedisAddress(path="/run/redis.sock"))
    assert [server.address for server in servers] == ["h:7000", "[::1]:6379", "/run/redis.sock"]


def test_no_password_is_shown() -> None:
    """The password is neither in the repr of a server, nor in the shown option, nor in the quote of a refused value."""
    server = server_at("redis://someone:very-secret@h/0")
    assert server is not None and server.password == "very-secret" and "very-secret" not in repr(server)
    assert STORAGE.safe("redis://someone:very-secret@h/0") == "redis://***@h/0"
    assert STORAGE.echo("redis://someone:very-secret@h/first") == "`redis://***@h/first`"
    assert STORAGE.echo("redis://someone:very/secret@h:x") == "`redis://***@h:x`"


def options(**given: object) -> ProxyOptions:
    """Return options with all that is required."""
    required = {"flagsvc_url": "http://h/api", "flagsvc_api_token": "token", "client_keys": "key"}
    return ProxyOptions(**(required | given))  # type: ignore[arg-type]


def test_passwords_are_secrets() -> None:
    """The password in the URL is one of the secrets, so the log masks it."""
    found = secrets_of(options(storage="redis://:in-the-url@h", storage_password="beside-it"))
    assert {"in-the-url", "beside-it"} <= set(found)
    assert secrets_of(options(storage="redis://h")) == secrets_of(options(storage="none"))
    assert "in-the-url" not in repr(options(storage="redis://:in-the-url@h"))
