"""The two defaults that depend on the machine."""

from __future__ import annotations

import os
import pwd
import socket

import pytest

from flagsvc.settings import defaults


def no_entry(uid: int) -> None:
    """Stand for a user that the machine does not know, as in many containers."""
    raise KeyError(uid)


def test_instance_id_is_user_and_host() -> None:
    """An instance is called by its user and its host (behaviour: Odd values)."""
    assert defaults.instance_id({}) == f"{pwd.getpwuid(os.getuid()).pw_name}-{socket.gethostname()}"


@pytest.mark.parametrize(
    ("environment", "user"),
    [
        ({"LOGNAME": "ann", "USER": "ben"}, "ann"),
        ({"USER": "ben"}, "ben"),
        ({}, str(os.getuid())),
        ({"USER": "ä\n"}, "__"),
    ],
)
def test_instance_id_of_a_user_without_entry(
    environment: dict[str, str], user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a user without an entry, as in containers, there is still a name that fits into a header."""
    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    monkeypatch.setattr(socket, "gethostname", lambda: "")
    assert defaults.instance_id(environment) == f"{user}-localhost"


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({"XDG_STATE_HOME": "/state", "HOME": "/home/ann"}, "file:///state/flagsvc"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/home/ann"}, "file:///home/ann/.local/state/flagsvc"),
        ({"HOME": "/home/ann b"}, "file:///home/ann%20b/.local/state/flagsvc"),
        ({"HOME": "relative"}, "none"),
        ({"HOME": "/a\nb"}, "none"),
        ({"HOME": "/a\udcff"}, "none"),
    ],
)
def test_storage_is_in_the_state_folder(environment: dict[str, str], url: str) -> None:
    """The storage follows the XDG rules. If there is no usable path, nothing is stored."""
    assert defaults.storage(environment) == url


def test_storage_without_home_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without HOME the user's entry has the folder. Without an entry nothing is stored."""
    home = pwd.getpwuid(os.getuid()).pw_dir
    assert defaults.storage({}) == f"file://{home.rstrip('/')}/.local/state/flagsvc"
    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    assert defaults.storage({}) == "none"


def test_the_host_name_is_what_hostname_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The strategy applicationHostname compares with HOSTNAME; if that is unset or empty, with the machine's name."""
    monkeypatch.setattr(socket, "gethostname", lambda: "machine")
    assert [defaults.host_name(each) for each in ({"HOSTNAME": "named"}, {"HOSTNAME": ""}, {})] == [
        "named",
        "machine",
        "machine",
    ]
