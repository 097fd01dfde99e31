"""`flagsvc config` and `flagsvc proxy` with several environments: what is shown, checked and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli_helpers import Flagsvc
from support.pki import Authority, written

TABLES = """
port = 8080
{0}
[environments.a]
flagsvcUrl = "file:flags.json"
clientKeys = ["s3cret-a"]
[environments.b]
flagsvcUrl = "https://flags.example.com/api"
flagsvcApiToken = "s3cret-token"
clientKeys = ["s3cret-b"]
{1}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a future configuration file."""
    return tmp_path / "flagsvc.toml"


def test_what_is_in_effect(flagsvc: Flagsvc, file: Path) -> None:
    """A good configuration is shown as text and as JSON, with secrets masked, and the exit code is 0."""
    file.write_text(TABLES.format("", "cors.origin = ['https://b']"))
    for way in ((), ("--all",), ("--json",)):
        called = flagsvc("config", "--config", str(file), *way)
        assert (called.code, called.err) == (0, "")
        assert "s3cret" not in called.out and "https://b" in called.out
    assert list(json.loads(called.out)["environments"]) == ["a", "b"]


def test_files_of_environments_are_checked(flagsvc: Flagsvc, file: Path, tmp_path: Path) -> None:
    """A file of code or a certificate of one environment is loaded; its problem names the environment and the option."""
    certificate = written(tmp_path, "own.pem", Authority().issue().both)
    wrong = ("customStrategies = 'none.py'", "upstreamKey = 'none.pem'", "upstreamCa = 'none.pem'")
    file.write_text(TABLES.format(f"upstreamCert = '{certificate}'", "\n".join(wrong)))
    called = flagsvc("config", "--config", str(file))
    assert called.code == 2
    assert [line.removeprefix("  - ") for line in called.err.splitlines() if line.startswith("  - ")] == [
        f"environments.b: customStrategies (file {file} [environments.b]): custom strategies file `{tmp_path}/none.py`"
        " does not exist",
        f"environments.b: upstreamKey: cannot read `{tmp_path}/none.pem`: no such file or directory",
        f"environments.b: upstreamCa: cannot read `{tmp_path}/none.pem`: no such file or directory",
    ]


def test_what_all_inherit_is_told_once(flagsvc: Flagsvc, file: Path) -> None:
    """A problem of the process is not one of each environment."""
    file.write_text(TABLES.format("customStrategies = 'none.py'", ""))
    called = flagsvc("config", "--config", str(file))
    assert called.err.splitlines() == [
        f"flagsvc config: customStrategies (file {file}): custom strategies file `{file.parent}/none.py` does not exist"
    ]


def test_a_start_that_is_refused(flagsvc: Flagsvc, file: Path) -> None:
    """`flagsvc proxy` ends with exit code 2 and every problem, those of files included, and shows no secret."""
    file.write_text(
        TABLES.format("[environments.c]\nclientKeys = ['s3cret-b']", "customStrategies = 'none.py'\nprot = 1")
    )
    called = flagsvc("proxy", "--config", str(file))
    assert called.code == 2 and "s3cret" not in called.out + called.err
    assert [line.strip().split(" ")[1:3] for line in called.err.splitlines() if line.startswith("  - ")] == [
        ["unknown", "option"],
        ["environments.c:", "flagsvcUrl"],
        ["environments.c:", "flagsvcApiToken"],
        ["environments:", "a"],
        ["environments.b:", "customStrategies"],
    ]


@pytest.mark.parametrize("command", ["proxy", "config"])
@pytest.mark.parametrize(
    "arguments",
    [("--environments", "s3cret"), ("--environments=s3cret",), ("--environments-file", "s3cret"), ("--environments",)],
)
def test_no_flag_sets_environments(command: str, arguments: tuple[str, ...], flagsvc: Flagsvc) -> None:
    """Somebody who tries is told where environments are set, and the value is not shown."""
    flag = arguments[0].partition("=")[0]
    assert flagsvc(command, *arguments) == (
        2,
        "",
        f"flagsvc {command}: unknown option `{flag}`; several environments are tables [environments.NAME] in the file of "
        "--config, or FLAGSVC_ENVIRONMENTS names them: see `flagsvc help proxy`\n",
    )


def test_the_help_says_where_environments_are_set(flagsvc: Flagsvc) -> None:
    """The head of the long help names both ways, and says that there is no flag. The short help is short."""
    head = " ".join(flagsvc("proxy", "--help").out.partition("\noptions:")[0].split())
    for name in ("[environments.NAME]", "FLAGSVC_ENVIRONMENTS", "FLAGSVC_PRODUCTION_API_TOKEN", "no --environments"):
        assert name in head
    assert "FLAGSVC_ENVIRONMENTS" not in flagsvc("proxy", "-h").out
