"""Shared by the tests of the command line."""

from __future__ import annotations

from collections.abc import Callable

from support.processes import Called as Called

Flagsvc = Callable[..., Called]
"""A call of `flagsvc` with arguments and, as `env`, the only options in the environment."""

ENOUGH = {"FLAGSVC_URL": "http://127.0.0.1:9/api", "FLAGSVC_API_TOKEN": "t0ken", "FLAGSVC_PROXY_CLIENT_KEYS": "k3y"}
"""An environment that is enough for a start."""
