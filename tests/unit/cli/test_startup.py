"""A failed start reports its reason as text, or as JSON if the program logs JSON."""

from __future__ import annotations

import json

import pytest

from flagsvc.cli.checks import report_errors_as_json
from flagsvc.cli.error_output import JsonError, print_problems, print_problems_as_json
from flagsvc.core.errors import ListenError
from flagsvc.settings.load import resolve
from flagsvc.settings.server import resolve_server
from support.cli_helpers import Flagsvc

ASKED = [
    ({}, {}, False),
    ({"JSON_LOGGER": "true"}, {}, True),
    ({"JSON_LOGGER": " Yes "}, {}, True),
    ({"JSON_LOGGER": "perhaps"}, {}, False),
    ({"JSON_LOGGER": "true"}, {"useJsonLogger": "false"}, False),
    ({"JSON_LOGGER": " "}, {"useJsonLogger": "on"}, True),
]


@pytest.mark.parametrize(("environment", "flags", "wanted"), ASKED)
def test_json_is_asked_for(environment: dict[str, str], flags: dict[str, str], wanted: bool) -> None:
    """The flag wins over the variable. A blank or invalid value does not enable JSON."""
    for resolved in (resolve(environment, None, flags), resolve_server(environment, None, flags)):
        assert resolved.values["useJsonLogger"] is wanted


@pytest.mark.parametrize(
    ("command", "value", "as_json"),
    [("proxy", "true", True), ("server", " On ", True), ("proxy", "perhaps", False), ("config", "true", False)],
)
def test_a_wrong_command_line(command: str, value: str, as_json: bool, flagsvc: Flagsvc) -> None:
    """A program that logs JSON by its variable reports a wrong flag as JSON, too."""
    called = flagsvc(command, "--nix", env={"JSON_LOGGER": value})
    assert called.code == 2 and "unknown option `--nix`" in called.err
    assert called.err.startswith("{") is as_json


def test_an_error_keeps_its_cause() -> None:
    """With JSON the error keeps its cause, which decides the exit code. Without JSON the error is unchanged."""
    cause = ListenError("the port is taken")
    with pytest.raises(JsonError, match="the port is taken") as raised, report_errors_as_json(True):
        raise cause
    assert raised.value.cause is cause
    with pytest.raises(ListenError), report_errors_as_json(False):
        raise cause


def test_problems(capsys: pytest.CaptureFixture[str]) -> None:
    """As text several problems are a list; as JSON each is one line."""
    print_problems("flagsvc server", ["one", "two"])
    assert capsys.readouterr().err == "flagsvc server: 2 problems\n  - one\n  - two\n"
    print_problems_as_json("flagsvc server", ["one", "two"])
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["level"], line["message"]) for line in lines] == [
        ("fatal", "flagsvc server: one"),
        ("fatal", "flagsvc server: two"),
    ]
