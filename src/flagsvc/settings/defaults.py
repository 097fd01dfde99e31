"""Defaults that depend on the machine: its name, the id of this instance, and the folder of the state."""

from __future__ import annotations

import os
import pwd
import re
import socket
from collections.abc import Mapping

from flagsvc.settings.network import file_url


def instance_id(environment: Mapping[str, str]) -> str:
    """Return the user's and the host's name as `user-host`, fit for a header (behaviour: Odd values)."""
    name = f"{_user(environment)}-{socket.gethostname() or 'localhost'}"
    return re.sub(r"[^!-~]", "_", name)


def host_name(environment: Mapping[str, str]) -> str:
    """Return what the strategy applicationHostname compares with: HOSTNAME where it is set, else the machine's name."""
    return environment.get("HOSTNAME") or socket.gethostname()


def _user(environment: Mapping[str, str]) -> str:
    """Return the user's name; in a container whose user has no entry, what LOGNAME or USER says, else the number."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return environment.get("LOGNAME") or environment.get("USER") or str(os.getuid())


def storage(environment: Mapping[str, str]) -> str:
    """Return the per-user state folder as a `file:` URL; `none` for a user without a home."""
    try:
        return file_url(folder) if (folder := _state(environment)) else "none"
    except ValueError:
        return "none"


def database(environment: Mapping[str, str]) -> str:
    """Return the path of the flag server's SQLite file: in the per-user state folder, or here for a user without a home."""
    return os.path.join(_state(environment), "flags.db")


def _state(environment: Mapping[str, str]) -> str:
    """Return the per-user state folder of flagsvc; the empty text for a user without a home."""
    state = environment.get("XDG_STATE_HOME", "")
    folder = state if os.path.isabs(state) else os.path.join(_home(environment), ".local", "state")
    return os.path.join(folder, "flagsvc") if os.path.isabs(folder) else ""


def _home(environment: Mapping[str, str]) -> str:
    """Return the home of the user, or the empty text for a user without a home."""
    try:
        return environment.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
