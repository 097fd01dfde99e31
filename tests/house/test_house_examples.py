"""The examples of the pages work: Python blocks run, commands are accepted, printed output is the real one."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from flagsvc.cli import main
from flagsvc.cli.parser import find_command, open_command, split_command

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *(page for name in ("how-to", "reference") for page in sorted((ROOT / "docs" / name).glob("*.md")))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"# (\w+\.(?:py|env|yaml))\n")
ENOUGH = {"FLAGSVC_URL": "http://127.0.0.1:9/api", "FLAGSVC_API_TOKEN": "t", "FLAGSVC_PROXY_CLIENT_KEYS": "k"}


ASKING = ("validate", "import", "export", "move", "flags", "server")
"""Commands that ask or serve, with options of their own: their arguments are parsed; integration/ runs them."""
MIGRATE = "migrate"
"""The command that reads what other programs read: where a page has its output, it runs with the files of the page."""
SHELL = (">", "|")
"""Words of a shell that end the words of a command."""
ELSEWHERE = ("connect-an-sdk.md", "first-day.md")
"""Pages whose programs need a server: integration/test_guides.py runs them."""


class Shown(NamedTuple):
    """A command of a page: its variables, its words, and the output that is printed below it, if any."""

    env: dict[str, str]
    words: list[str]
    output: str

    def __str__(self) -> str:
        """Return the command as the name of its test."""
        return " ".join(self.words)


def blocks(page: Path, *languages: str) -> list[str]:
    return [text for language, text in FENCE.findall(page.read_text()) if language in languages]


def borrowed() -> dict[str, Any]:
    """Return the names that blocks use and leave to their reader."""

    async def tier_of(user: str | None) -> str:
        return f"tier of {user}"

    customers = SimpleNamespace(tier_of=tier_of)
    return {"token": "some-token", "customers": customers, "asynccontextmanager": contextlib.asynccontextmanager}


def commands(page: Path) -> Iterator[Shown]:
    """Give the calls of `flagsvc` in the blocks of a page."""
    for text in blocks(page, "sh", ""):
        exported: dict[str, str] = {}
        lines = text.replace("\\\n", " ").splitlines()
        for number, line in enumerate(lines):
            with contextlib.suppress(ValueError):  # a picture is no command
                words = shlex.split(line.removeprefix("$ "), comments=True)
                exported |= assignments(words[1:]) if words[:1] == ["export"] else {}
                own = assignments(words)
                if words[len(own) : len(own) + 1] == ["flagsvc"]:
                    output = "\n".join(lines[number + 1 :]) if line.startswith("$ ") else ""
                    yield Shown(exported | own, of_the_command(words[len(own) + 1 :]), output)


def of_the_command(words: list[str]) -> list[str]:
    """Return the words before the one with which a shell sends the output elsewhere."""
    return list(itertools.takewhile(lambda word: word not in SHELL, words))


def assignments(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        if not re.match(r"[A-Z_]+=", word):
            break
        name, _, found[name] = word.partition("=")
    return found


SHOWN = [(page, shown) for page in PAGES for shown in commands(page)]


def understood(command: str, *arguments: str) -> bool:
    """Return whether the parser of a command takes these arguments; what it does not take raises."""
    name, rest = split_command([command, *arguments])
    _, parser = open_command(find_command(name, *rest[:1]))
    return parser.parse_args(rest) is not None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a working directory with our examples and no option in the environment."""
    for name in os.environ:
        if name.startswith(("FLAGSVC_", "UNLEASH_", "EXP_", "CORS_")) or name in ("PORT", "LOG_LEVEL"):
            monkeypatch.delenv(name)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


OF_PYTHON = [page for page in PAGES if blocks(page, "python") and page.name not in ELSEWHERE]


@pytest.mark.parametrize("page", OF_PYTHON, ids=lambda page: page.name)
def test_python_blocks_run(page: Path, folder: Path) -> None:
    """Each block runs, with made-up values for what it leaves to its reader."""
    names = borrowed()
    for number, text in enumerate(blocks(page, "python")):
        exec(compile(text, f"{page.name}, block {number + 1}", "exec"), names)


@pytest.mark.parametrize(("page", "shown"), SHOWN, ids=lambda item: item.name if isinstance(item, Path) else str(item))
def test_commands_are_understood(
    page: Path, shown: Shown, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`evaluate` and `migrate` print what the page says, line by line, on both outputs.

    What would serve or ask is tried by `config` with the same options.
    """
    for text in blocks(page, "python", "env", "yaml"):
        if named := FILE_NAME.match(text):
            (folder / named[1]).write_text(text)
    enough = {} if "FLAGSVC_ENVIRONMENTS" in shown.env else ENOUGH
    for name, value in (enough | shown.env).items():
        monkeypatch.setenv(name, value)
    if shown.words[0] in ASKING or (shown.words[0] == MIGRATE and not shown.output):
        assert understood(*shown.words)
        return
    if shown.words[0] == MIGRATE:
        assert main(shown.words) == 0
        printed = capsys.readouterr()
        assert printed.out.rstrip() == shown.output.rstrip()
        assert printed.err in blocks(page, "text"), "the page shows every line"
        return
    monkeypatch.setattr("flagsvc.cli.programs.check_certificates", id)  # pages name files that their readers have
    command = "evaluate" if shown.words[0] == "evaluate" else "config"
    code = main([command, *shown.words[1:]])
    printed = capsys.readouterr()
    assert (code, printed.err) == (0, "")
    assert "warning" not in printed.out
    if shown.output:
        assert printed.out.rstrip() == shown.output.rstrip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_curl_takes_the_addresses_as_they_are(page: Path) -> None:
    """Brackets and braces in an address are patterns to curl, but for `-g`: without it such a line fails in every shell."""
    for text in blocks(page, "sh"):
        for line in text.replace("\\\n", " ").splitlines():
            if line.startswith("curl "):
                words = shlex.split(line)
                addresses = [word for word in words if re.match(r"https?://", word)]
                assert addresses
                assert "-g" in words or not re.search(r"[][{}]", "".join(addresses)), line


def test_the_pages_have_examples() -> None:
    """If the pages change their form, these tests must not pass with nothing to check."""
    found = {(page.name, shown.words[0], bool(shown.output)) for page, shown in SHOWN}
    assert {("commands.md", "evaluate", True), ("README.md", "proxy", False)} <= found
    assert {("custom-strategies.md", "evaluate", False), ("context-enrichers.md", "proxy", False)} <= found
    assert {("move-over-from-edge.md", MIGRATE, True), ("move-over-from-the-reference.md", MIGRATE, True)} <= found
    assert {("move-flags-between-servers.md", name, False) for name in ("validate", "import", "export")} <= found
