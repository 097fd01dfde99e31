"""The defaults that depend on the machine."""

from __future__ import annotations

import os
import pwd
import socket

import pytest

from flagsvc.settings import defaults


def no_entry(uid: int) -> None:
    """Raise KeyError, as for a user without an entry, which is common in containers."""
    raise KeyError(uid)


def test_instance_id_is_user_and_host() -> None:
    """The instance id consists of the user and the host (behaviour: Odd values)."""
    assert defaults.instance_id({}) == f"{pwd.getpwuid(os.getuid()).pw_name}-{socket.gethostname()}"


@pytest.mark.parametrize(
    ("environment", "user"),
    [({"LOGNAME": "ann", "USER": "ben"}, "ann"), ({"USER": "ben"}, "ben"), ({}, str(os.getuid())), ({"USER": "ä\n"}, "__")],
)
def test_instance_id_of_a_user_without_entry(environment: dict[str, str], user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without an entry still gets a name that is valid in a header."""
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
    """The default storage follows the XDG rules. Without a valid path it is `none`."""
    assert defaults.storage(environment) == url


def test_storage_without_home_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without HOME, the home folder comes from the user's entry. Without an entry the storage is `none`."""
    home = pwd.getpwuid(os.getuid()).pw_dir
    assert defaults.storage({}) == f"file://{home.rstrip('/')}/.local/state/flagsvc"
    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    assert defaults.storage({}) == "none"


def test_the_host_name_is_what_hostname_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host name is HOSTNAME, or the machine's name if HOSTNAME is unset or empty."""
    monkeypatch.setattr(socket, "gethostname", lambda: "machine")
    found = [defaults.host_name(each) for each in ({"HOSTNAME": "named"}, {"HOSTNAME": ""}, {})]
    assert found == ["named", "machine", "machine"]
