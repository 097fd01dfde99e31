"""Calls the command in this process, with an environment that has only what a test gives."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import pytest

from support.cli_helpers import Called, Flagsvc
from support.fake_admin import FakeAdmin, fake_admin


@pytest.fixture
def flagsvc(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Flagsvc:
    """Return a function that calls `flagsvc` with arguments and, as `env`, the only options in the environment.

    A start does not warn of an interpreted engine, so that both forms of the package print the same.
    """

    from flagsvc.cli import main, programs  # not above: this file is read before the sources are on the path
    from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS
    from flagsvc.settings.unread import FOREIGN

    monkeypatch.setattr(programs, "engine_form", lambda: "compiled")

    def call(*arguments: str, env: Mapping[str, str] | None = None) -> Called:
        read = {variable.name for option in (*OPTIONS, *SERVER_OPTIONS) for variable in option.variables} | set(FOREIGN)
        for name in os.environ:
            if name in read or name.startswith(("FLAGSVC_", "UNLEASH_")):
                monkeypatch.delenv(name)
        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        code = main(list(arguments))
        return Called(code, *capsys.readouterr())

    return call


@pytest.fixture
def admin() -> Iterator[FakeAdmin]:
    """Give a flag server that answers as a test says."""
    with fake_admin() as fake:
        yield fake
