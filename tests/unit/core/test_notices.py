"""The lines on standard output: text for a person, or one line of JSON each."""

from __future__ import annotations

import json

import pytest

from flagsvc.core.notices import Notice, make_notice_printer, print_notices

NOTICES = [Notice("ready"), Notice("first start", {"token": "t"}, "First start:\n\n  a token, t")]


def test_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    """A notice is printed as its text, or as its event if it has no text."""
    print_notices(NOTICES, make_notice_printer(as_json=False))
    assert capsys.readouterr().out == "ready\nFirst start:\n\n  a token, t\n"


def test_a_secret_is_for_terminals(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a terminal shows may hold a secret. Text that goes anywhere else, and JSON, have nothing of it."""
    notice = Notice("first start", text="First start", on_terminal="the secret")
    for terminal, expected in ((False, "First start\n"), (True, "the secret\n")):
        monkeypatch.setattr("sys.stdout.isatty", lambda shows=terminal: shows)
        make_notice_printer(as_json=False)(notice)
        assert capsys.readouterr().out == expected
        make_notice_printer(as_json=True)(notice)
        assert "secret" not in capsys.readouterr().out


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Each notice is one line of JSON with time, level, message and fields."""
    print_notices(NOTICES, make_notice_printer(as_json=True))
    ready, first = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (
        set(ready) == {"time", "level", "message", "always"} and ready["always"] is True and ready["message"] == "ready"
    )
    assert (first["level"], first["message"], first["token"]) == ("info", "first start", "t")
