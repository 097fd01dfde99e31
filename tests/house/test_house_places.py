"""ARCHITECTURE.md, CONTRIBUTING.md and the docstrings of packages say where things are: every path and name in them exists."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "flagsvc"
PAGES = {
    "ARCHITECTURE.md": (ROOT / "ARCHITECTURE.md").read_text(),
    "CONTRIBUTING.md": (ROOT / "CONTRIBUTING.md").read_text().partition("## Where a line belongs")[2].partition("\n## ")[0],
}
"""Page → its text that says where things are."""
PACKAGES = sorted(SOURCES.rglob("__init__.py"))

FILE = re.compile(r"(?<![\w/.*{-])((?:[\w*-]+/)*[\w*]+\.(?:py|md|html|js)|(?:[a-z_]\w*/)+)(?![\w/{])")
"""A file or a folder, with or without backticks; `*` stands for any text."""
LISTED = re.compile(r"(?m)^ *([a-z_]\w*) {2,}\S")
"""A module at the beginning of a line of a list."""
FENCE = re.compile(r"(?ms)^```$.*?^```$")
CODE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(.*\))?")
"""A name, with or without a call behind it."""
TEXT = re.compile(r"""(["'])([A-Za-z_][\w.]*)\1""")
"""A text of the source that may be a name."""
IN_FILE = re.compile(r"`(\w+)(?:\.\w+)?(?:\(\))?` (?:in|of) `?((?:\w+/)*\w+\.py)")
"""A name, and the file that has it."""


@cache
def defined(path: Path) -> dict[str, set[str]]:
    """Return the names that a module defines; each class with its members, all others with none. Parameters count as members."""
    found: dict[str, set[str]] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = members(node) | {base for each in node.bases for base in [f"<{ast.unparse(each)}"]}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found[node.name] = parameters(node)
        else:
            found |= {name: set() for name in targets(node)}
    return found


def members(owner: ast.ClassDef) -> set[str]:
    """Return the methods and fields of a class, also those that its methods set, and the parameters of its methods."""
    found = {name for each in owner.body for name in targets(each)}
    for node in ast.walk(owner):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= {node.name} | parameters(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}


def targets(node: ast.AST) -> Iterator[str]:
    wholes = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    yield from (each.id for whole in wholes for each in ast.walk(whole) if isinstance(each, ast.Name))


@cache
def everywhere(folder: Path = SOURCES) -> dict[str, set[str]]:
    """Return what all modules below a folder define; classes of one name together."""
    found: dict[str, set[str]] = {}
    for path in folder.rglob("*.py"):
        for name, own in defined(path).items():
            found[name] = found.get(name, set()) | own
    return found


@cache
def texts() -> set[str]:
    """Return the texts of the source that may be names: of options, variables, metrics, and fields."""
    return {text for path in SOURCES.rglob("*.py") for _, text in TEXT.findall(path.read_text())}


def has(owner: str, member: str) -> bool:
    """Return whether a class, or a class that it inherits from, has a member."""
    own = everywhere().get(owner, set())
    return member in own or any(has(each[1:].split("[")[0].split(".")[-1], member) for each in own if each[:1] == "<")


def is_place(name: str, folder: Path) -> bool:
    """Return whether a file or folder is in a package, in all of the package, or in the repository."""
    return any(next(each.glob(name), None) is not None for each in (folder, SOURCES, ROOT, ROOT / "tests"))


def is_name(name: str, folder: Path) -> bool:
    """Return whether the source has a name: a module, a definition, a member of a class, or what users write and see."""
    if (SOURCES.parent / name.replace(".", "/")).with_suffix(".py").exists():
        return True
    owner, _, member = name.rpartition(".")
    if owner:
        return has(owner.rpartition(".")[2], member) or f"{owner}.{member}" in texts()
    modules = {path.stem for path in folder.rglob("*.py")} | {path.parent.name for path in folder.rglob("__init__.py")}
    known = everywhere() if re.search(r"[A-Z_]", name) else everywhere(folder)
    inside = {each for own in known.values() for each in own}
    return name in modules or name in known or name in inside or {name, name.removesuffix("_total")} & texts() != set()


def wrong(text: str, folder: Path) -> list[str]:
    """Return what a text names that does not exist: files, modules of its lists, names, and names that a file does not have."""
    found = [name for name in FILE.findall(text) if not is_place(name, folder)]
    modules = (name for name in LISTED.findall(text))
    found += [name for name in modules if not is_place(f"{name}.py", folder) and not is_place(f"{name}/", folder)]
    names = (match[1] for code in CODE.findall(text) if (match := NAME.fullmatch(code)) and len(match[1]) > 1)
    found += [name for name in names if not is_place(name, folder) and not is_name(name, folder)]
    for name, place in IN_FILE.findall(text):
        homes = [path for each in (folder, SOURCES, ROOT) for path in each.glob(place)]
        if homes and not any(name in defined(path) for path in homes):
            found.append(f"{name} in {place}")
    return found


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: str(path.parent.relative_to(SOURCES.parent)))
def test_what_the_docstring_of_a_package_names_exists(path: Path) -> None:
    """`help(flagsvc.proxy)` leads somewhere: each file, module, class and function is there, in the file that is named."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert text
    assert not wrong(text, path.parent)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_exists(page: str) -> None:
    """So it is with the map and with the page for contributors. Their paths go from src/flagsvc/, tests/, or the repository."""
    text = FENCE.sub("", PAGES[page])
    assert len(FILE.findall(text)) > 20
    assert not wrong(text, SOURCES)


def test_the_levels_of_the_map_are_those_that_hold() -> None:
    """The block has the levels of the package as pyproject.toml has them, from the highest to the lowest."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each.get("containers") == ["flagsvc"])
    blocks = FENCE.findall(PAGES["ARCHITECTURE.md"].partition("## Levels")[2])
    assert [line.split("  ")[0] for line in blocks[0].splitlines()[1:-1]] == layers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`Service.check` in `proxy/api/service.py`, and `engine/`", []),
        ("    service.py    the one place\n    router        a module", []),
        ("`KeyCheck.find_key` of `http/keys.py`; `keyOverlap`; `flagsvc_limits_reached_total`; `of_*.py`", ["of_*.py"]),
        ("`Service.chek`", ["Service.chek"]),
        ("`Service` in `router.py`", ["Service in router.py"]),
        ("see servise.py", ["servise.py"]),
        ("`servise_of(call)` and `servise`", ["servise_of", "servise"]),
    ],
)
def test_the_finder(text: str, expected: list[str]) -> None:
    """A name that is wrong by one letter, or in another file, is found."""
    assert wrong(text, SOURCES / "proxy" / "api") == expected
