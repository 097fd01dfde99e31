"""The command line of Edge as its variables."""

from __future__ import annotations

import shlex

import pytest

from flagsvc.cli.migrating.edge_commands import EdgeCommand, is_edge_command, read_edge_command

COMMANDS = [
    ("edge --upstream-url http://a --tokens x", EdgeCommand("edge", {"UPSTREAM_URL": "http://a", "TOKENS": "x"})),
    ("edge --upstream-url=http://a -t x -t y,z", EdgeCommand("edge", {"UPSTREAM_URL": "http://a", "TOKENS": "x,y,z"})),
    ("-p 1 -b /x edge -p key -b folder", EdgeCommand("edge", {
        "PORT": "1", "BASE_PATH": "/x", "PRETRUSTED_TOKENS": "key", "BACKUP_FOLDER": "folder"})),
    ("offline -b file -c a -f b -r 5", EdgeCommand("offline", {
        "BOOTSTRAP_FILE": "file", "CLIENT_TOKENS": "a", "FRONTEND_TOKENS": "b", "RELOAD_INTERVAL": "5"})),
    ("edge -f5 -m=7 -u=http://a", EdgeCommand("edge", {
        "FEATURES_REFRESH_INTERVAL_SECONDS": "5", "METRICS_INTERVAL_SECONDS": "7", "UPSTREAM_URL": "http://a"})),
    ("edge -s --trust-proxy --redis-secure=false", EdgeCommand("edge", {
        "SKIP_SSL_VERIFICATION": "true", "TRUST_PROXY": "true", "REDIS_SECURE": "false"})),
    ("edge -H 'A: 1' -H 'B: 2'", EdgeCommand("edge", {"CUSTOM_CLIENT_HEADERS": "A: 1,B: 2"})),
    ("tini -- /unleash-edge edge -w 4", EdgeCommand("edge", {"WORKERS": "4"})),
    ("--workers edge", EdgeCommand("edge", {})),
    ("edge --what s3cret --port 5 -Zs3cret - word", EdgeCommand("edge", {"PORT": "5"}, ("--what", "-Z"), 2)),
    ("health -e http://a -c ca.pem", EdgeCommand("health", {"EDGE_URL": "http://a", "CA_CERTIFICATE_FILE": "ca.pem"})),
    ("edge --port", EdgeCommand("edge", {})),
    ("", EdgeCommand("", {})),
]  # fmt: skip


@pytest.mark.parametrize(("line", "command"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_what_it_says(line: str, command: EdgeCommand) -> None:
    """Options stand before and behind the subcommand, in long and short form. What is unknown is named without its value."""
    assert read_edge_command(shlex.split(line)) == command


@pytest.mark.parametrize(
    ("line", "is_edge"),
    [("edge", True), ("--port 1 offline", True), ("/unleash-edge", True), ("node dist/start.js", False), ("", False)],
)
def test_which_command_is_edges(line: str, is_edge: bool) -> None:
    """The name of the program, or a subcommand, says that a command line is Edge's."""
    assert is_edge_command(shlex.split(line)) is is_edge


def test_many_words() -> None:
    """The time for a command line grows with its length, not with its square."""
    found = read_edge_command(["edge", *["-t", "a"] * 200_000, *["x"] * 200_000])
    assert found.variables["TOKENS"].count("a") == found.stray == 200_000
