"""The contract lists every route of the flag server (dialects: Routes; Client API; Operational endpoints)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from flagsvc.server.api.route import Auth, Route
from flagsvc.server.api.routes import ROUTES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "contract" / "dialects").with_suffix(".md").read_text()
SHORT = re.compile(r"`([A-Z])` is `([^`]+)`")
FIRST_PATH = "…"
PART = re.compile(r"(?:\*\*ours\*\* )?([A-Z]+(?:, [A-Z]+)*) (`[^`]+`(?:, `[^`]+`)*)(?: \[([^]]+)\])?(?: \([^)]+\))?")
"""Routes between two semicolons: methods, paths, permissions."""
FILES = "/docs/openapi/"
"""Below it are the files of the interactive page, which the contract does not name."""


def section(heading: str) -> str:
    """Return the text below a heading, up to the next one of its level or above."""
    level = heading.partition(" ")[0]
    text = PAGE.partition(f"\n{heading}\n")[2]
    assert text, heading
    return re.split(rf"^#{{2,{len(level)}}} ", text, maxsplit=1, flags=re.MULTILINE)[0]


def full_path(path: str, known: dict[str, str]) -> str:
    """Return a path without abbreviations."""
    head, slash, rest = path.partition("/")
    return full_path(known[head], known) + slash + rest if head in known else path


def routes_of_row(cell: str, short: dict[str, str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield method, path and permissions of each route in a row of the table."""
    known = dict(short)
    for part in cell.split("; "):
        found = PART.fullmatch(part)
        assert found is not None, part
        methods, paths, permissions = found.groups()
        for path in re.findall("`([^`]+)`", paths):
            full = full_path(path, known)
            known.setdefault(FIRST_PATH, full)
            for method in methods.split(", "):
                yield method, full, tuple(permissions.split(" or ")) if permissions else ()


def needed(route: Route) -> tuple[str, ...]:
    """Return the permissions of a route, of which one is enough."""
    given = (route.permission,) if isinstance(route.permission, str) else route.permission
    return tuple(name for name in given if name)


def test_the_table_of_the_admin_api_is_complete() -> None:
    """Each route of the admin API is in the table once, with its permissions, and the table has no other route."""
    text = section("### Routes")
    cells = re.findall(r"^\| (?!Noun)[^|]+ \| (.+) \|$", text, re.MULTILINE)
    listed = [route for cell in cells for route in routes_of_row(cell, dict(SHORT.findall(text)))]
    served = [(route.method, route.path, needed(route)) for route in ROUTES if route.auth is Auth.ADMIN]
    assert sorted(listed) == sorted(served)


def test_each_route_of_the_client_api_has_its_heading() -> None:
    """The section on the client API has a heading for each of its routes, and for no other."""
    headings = re.findall(r"^### ([A-Z]+) (/\S+)$", section("## Client API"), re.MULTILINE)
    assert sorted(headings) == sorted((route.method, route.path) for route in ROUTES if route.auth is Auth.CLIENT)


def test_each_route_without_a_token_is_named() -> None:
    """It is in its section or has its heading, but for the files of the interactive page."""
    named = set(re.findall(r"`(/[^`]*)`", section("## Operational endpoints")))
    named.update(re.findall(r"^### POST (/\S+) of the flag server$", PAGE, re.MULTILINE))
    assert named == {route.path for route in ROUTES if route.auth is Auth.NONE and not route.path.startswith(FILES)}
