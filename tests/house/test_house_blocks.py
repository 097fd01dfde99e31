"""Every block of every page is checked as far as its language can be: it parses, and what it names exists.

test_house_examples.py and integration/test_guides.py run many of them.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from itertools import takewhile
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from flagsvc.cli.parser import find_command, open_command, split_command
from flagsvc.proxy.api.dialects import ROUTES as PROXY_ROUTES
from flagsvc.server.api.routes import ROUTES as SERVER_ROUTES
from flagsvc.server.application import PAGE_ROUTES
from flagsvc.settings.edge import ROWS as EDGE_ROWS
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS
from support.guides import FENCE
from support.needs import program
from support.processes import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [(page.relative_to(ROOT), language, text) for page in PAGES for language, text in FENCE.findall(page.read_text())]
UNCHECKED = {"text", "nginx", "csharp", "dart", "go", "java", "kotlin", "swift"}
"""Output, pictures, files of other servers, and languages that the tests have no compiler for."""
ALL_OPTIONS = (*OPTIONS, *SERVER_OPTIONS)
NAMES = {name for option in ALL_OPTIONS for name in (option.name, f"{option.name}File")}
VARIABLES = {name for option in ALL_OPTIONS for name in option.reads}
VARIABLE = re.compile(r"\bFLAGSVC_[A-Z_]{2,}\b")
OF_AN_ENVIRONMENT = re.compile("FLAGSVC_(?:NAME|PRODUCTION|STAGING)_")
OF_COMMANDS = {"FLAGSVC_FROM_TOKEN", "FLAGSVC_TO_TOKEN"}
"""The variables that `flagsvc.cli.batch.target` makes of the word for a server."""
ELEMENT = re.compile(r"<[A-Z].*>")
DESK = ROOT / "src" / "flagsvc" / "proxy" / "pages"
PAGE_OF_THE_PROXY = re.compile(r'PageRow\("([^"]+)"')
HOST = re.compile(
    r"(?:localhost|127\.0\.0\.1|10\.0\.0\.5|.*flags\.example(?:\.com)?|.*unleash\.example\.com|.*\.internal)(?::\d+)?"
)
"""The hosts that stand for a proxy or a flag server."""


def read_by(command: list[str], text: str) -> None:
    """Have a program parse a text from its standard input."""
    done = subprocess.run([program(command[0]), *command[1:]], input=text, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr


def check_toml(text: str) -> None:
    """Every name is an option, of the process, of an environment or of the flag server."""
    loaded = tomllib.loads(text)
    parts = [loaded, loaded.pop("server", {}), *loaded.pop("environments", {}).values()]
    assert {name for part in parts for name in option_names(part)} <= NAMES


def option_names(table: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in table.items():
        whole = f"{prefix}{name}"
        yield from option_names(value, f"{whole}.") if isinstance(value, dict) and whole not in NAMES else [whole]


def check_variables(text: str) -> None:
    """Every variable is of an option, or of Edge."""
    names = {line.partition("=")[0] for line in text.splitlines() if not line.startswith("#")}
    assert names <= VARIABLES | {name.replace("FLAGSVC_", "UNLEASH_") for name in VARIABLES} | {row.name for row in EDGE_ROWS}


def check_shell(text: str) -> None:
    """The shell reads it, and each call of flagsvc has a command and arguments that exist."""
    read_by(["bash", "-n"], text)
    for words in flagsvc_calls(text):
        name, rest = split_command(words)
        _, parser = open_command(find_command(name, *rest[:1]))
        parser.parse_args(rest)


def flagsvc_calls(text: str) -> Iterator[list[str]]:
    """Give the words behind `flagsvc`, also behind other words of a command, such as `docker run … flagsvc`."""
    for line in text.replace("\\\n", " ").splitlines():
        if "flagsvc" not in line:
            continue
        reader = shlex.shlex(line.replace("$(", " ; "), posix=True, punctuation_chars=True)
        reader.whitespace_split = True
        words = list(reader)
        for number, word in enumerate(words):
            rest = list(takewhile(lambda each: not set(each) <= set("();<>|&"), words[number + 1 :]))
            if word == "flagsvc" and rest and words[number - 1] not in ("-t", "cd", "--name", "install"):
                yield rest


CHECKS: dict[str, Callable[[str], object]] = {
    "sh": check_shell,
    "js": lambda text: read_by(["node", "--input-type=module", "--check"], text),
    "jsx": lambda text: read_by(["node", "--input-type=module", "--check"], ELEMENT.sub("null", text)),
    "python": lambda text: compile(text, "page", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT),
    "json": json.loads,
    "toml": check_toml,
    "yaml": yaml.safe_load,
    "env": check_variables,
    "ini": lambda text: ConfigParser(interpolation=None).read_string(text),
}


@pytest.mark.programs
@pytest.mark.parametrize("language", CHECKS)
def test_blocks_of_a_language(language: str) -> None:
    """Each block of the pages passes the check of its language."""
    texts = [(page, text) for page, each, text in BLOCKS if each == language]
    assert texts
    for page, text in texts:
        try:
            CHECKS[language](text)
        except (Exception, SystemExit) as error:
            raise AssertionError(f"{page}: {error}\n{text}") from error


def test_every_language_has_a_check() -> None:
    """A block in a new language needs a check, or a reason not to have one."""
    assert {language for _, language, _ in BLOCKS} == {*CHECKS, *UNCHECKED}


def test_every_variable_exists() -> None:
    """Each variable that a page names is of an option, or the source, the build or the tests read it."""
    sources = [*(ROOT / "src").rglob("*.py"), ROOT / "setup.py", ROOT / "Makefile", ROOT / "tests" / "conftest.py"]
    read = (VARIABLES | OF_COMMANDS).union(*(VARIABLE.findall(path.read_text()) for path in sources))
    known = {name.removesuffix("_FILE") for name in read}
    for page in PAGES:
        for name in VARIABLE.findall(page.read_text()):
            plain = name.removesuffix("_FILE")
            own = OF_AN_ENVIRONMENT.sub("", plain)
            assert {plain, own, f"FLAGSVC_{own}"} & known or name.endswith("_"), (page, name)


def test_every_path_is_a_route() -> None:
    """Each path that a block asks for at a proxy or a flag server is a route, or the begin of one."""
    rows = [row.path for row in (*PROXY_ROUTES, *SERVER_ROUTES, *PAGE_ROUTES)]
    rows += [f"/ui{path}" for each in DESK.glob("*.py") for path in PAGE_OF_THE_PROXY.findall(each.read_text())]
    asked = [(page, path.removesuffix(".json").rstrip("/").split("/")) for page, _, text in BLOCKS for path in paths(text)]
    assert len(asked) > 30
    for page, parts in asked:
        assert any(begins(row.split("/"), parts) for row in rows), (page, parts)


def begins(row: list[str], parts: list[str]) -> bool:
    """Return whether the path of a route begins with these parts, where a part of the route may be a parameter."""
    return len(parts) <= len(row) and all(own[:1] in (":", "{") or own == part for own, part in zip(row, parts, strict=False))


def paths(text: str) -> Iterator[str]:
    """Give the paths that a block names: of addresses, and of probes."""
    for address in re.findall(r"https?://[^\s'\"`)<>]+", text):
        if HOST.fullmatch(urlsplit(address).netloc):
            yield urlsplit(address).path.rstrip("}")
    yield from re.findall(r"\bpath: (/[^\s,}]*)", text)
