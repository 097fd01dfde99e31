"""For any command line the program ends with a defined exit code and without a traceback."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from fuzzing.commands import ROWS, CommandFolder
from fuzzing.rows import Row, run
from support.processes import clean_environment, flagsvc


@pytest.fixture(scope="module")
def admin_address_server(tmp_path_factory: pytest.TempPathFactory) -> CommandFolder:
    """A folder with odd files."""
    return CommandFolder(tmp_path_factory.mktemp("odd"))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_any_call_ends_in_order(admin_address_server: CommandFolder, row: Row[CommandFolder]) -> None:
    """Exit codes 0, 1 and 2 only; no trace, no secret; options that are accepted make a proxy that answers."""
    run(row, admin_address_server)


ODD_NAMES = rb"""{"version": 2, "features": [
  {"name": "\ud800x", "enabled": true, "strategies": []},
  {"name": "\u043a\u043b\u044e\u0447 \ud83e\udde6", "enabled": true, "strategies": [],
   "variants": [{"name": "\u00e9", "weight": 1, "payload": {"type": "string", "value": "\u00fc"}}]}]}"""


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
@pytest.mark.parametrize("switches", ["", "--json", "--explain", "--explain --json", "--all --json"])
def test_characters_that_cannot_be_shown(admin_address_server: CommandFolder, switches: str, encoding: str) -> None:
    """A character that standard output does not have, or half a surrogate pair, is shown as an escape; JSON stays JSON."""
    called = admin_address_server.call(["evaluate", "-", *switches.split()], {}, given=ODD_NAMES, encoding=encoding)
    assert (called.code, called.err) == (0, "")
    if "--json" in switches:
        names = [toggle["name"] for toggle in json.loads(called.out)["toggles"]]
        assert names == ["\ud800x", "\u043a\u043b\u044e\u0447 \U0001f9e6"]
    else:
        assert "\\ud800x" in called.out
        assert ("\u043a\u043b\u044e\u0447" if encoding == "utf-8" else "\\u043a\\u043b\\u044e\\u0447") in called.out


@pytest.mark.parametrize("option", [b"--context", b"--toggle", b"--custom-strategies", b"--exp-custom-enrichers", b""])
def test_arguments_that_are_no_utf8(tmp_path: Path, option: bytes) -> None:
    """Any bytes can stand on the command line of a process."""
    document = tmp_path / "document.json"
    document.write_bytes(ODD_NAMES)
    argument = b"a\xff=\xfe" if option == b"--context" else b"\xff\xfe"
    command = [*flagsvc(), b"evaluate", str(document), *([option, argument] if option else [argument])]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False, env=clean_environment(tmp_path))  # type: ignore[arg-type]
    assert done.returncode == (0 if option == b"--context" else 2), done.stderr
    assert b"Traceback" not in done.stdout + done.stderr


WRONG = {
    "an enricher that raises": (
        ["evaluate", "-", "--exp-custom-enrichers", "enrichers.py"],
        b"{}",
        "a context enricher raised RuntimeError: no",
    ),
    "an enricher that returns nothing": (["evaluate", "-", "--exp-custom-enrichers", "nothing.py"], b"{}", "not a Context"),
    "a URL with a byte that is no character": (["evaluate", "http://127.0.0.1:1/\udcff"], b"", "a character that no URL has"),
    "a number of thousands of digits": (["evaluate", "-"], b"[" + b"7" * 5000 + b"]", "a number has too many digits"),
    "lists in lists": (["evaluate", "-"], b"[" * 100_000, "nested too deeply"),
}
"""Calls that once ended in a traceback → the present message."""


@pytest.mark.parametrize("name", list(WRONG))
def test_what_was_found_once(admin_address_server: CommandFolder, name: str) -> None:
    """An error that a fuzz test found does not come back: one line says what is wrong, and the exit code is 2."""
    arguments, given, words = WRONG[name]
    called = admin_address_server.call(
        [str(admin_address_server.folder / each) if each.endswith(".py") else each for each in arguments], {}, given=given
    )
    assert called.code == 2
    assert words in called.err
    assert called.err.count("\n") == 1


@pytest.mark.parametrize(("payload", "shown"), [('{"value": "x"}', "a x"), ('{"type": "string"}', "a (string)"), ("{}", "a")])
def test_a_payload_without_all_its_parts(admin_address_server: CommandFolder, payload: str, shown: str) -> None:
    """A payload without type or value is shown as far as possible."""
    variants = '[{"name": "a", "weight": 1, "payload": %s}]' % payload  # noqa: UP031 - braces are JSON's
    document = '{"features": [{"name": "f", "enabled": true, "strategies": [], "variants": %s}]}' % variants  # noqa: UP031
    called = admin_address_server.call(["evaluate", "-", "--toggle", "f"], {}, given=document.encode())
    assert (called.code, called.out) == (0, f"f  on   variant {shown}\n")
