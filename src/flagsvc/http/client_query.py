"""The query of a client-features document: its filters, and the version of the client specification (dialects: Client API).

The flag server and the proxy serve such documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias
from urllib.parse import parse_qsl

from flagsvc.http.route import Parameter
from flagsvc.http.shapes.text import to_json

URL_FRIENDLY = re.compile(r"[A-Za-z0-9_.!~*'()-]*\Z")
RELATIVE_PATHS = (".", "..")
"""Names that have another meaning in a path."""
MAX_NAME_LENGTH = 100
MOST_PARAMETERS = 1000
INDEX = re.compile(r"\[\d*\]$")
NUMBER = r"(0|[1-9]\d{0,15})"
LABEL = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
SEMVER = re.compile(rf"{NUMBER}\.{NUMBER}\.{NUMBER}(-{LABEL}(?:\.{LABEL})*)?", re.ASCII)
SEGMENTS_SINCE = (4, 2, 0)
"""The version of the client specification that introduced segments."""
TAG = re.compile(r"\w:.", re.ASCII)
EMPTY = "is not allowed to be empty."

Problems: TypeAlias = Iterator[str]


def read_query(query: bytes) -> dict[str, list[str]]:
    """Return the parameters of a query string, each with its values in order; `tag[]` and `tag[0]` mean `tag`."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, encoding="utf-8", errors="replace")
    found: dict[str, list[str]] = {}
    for name, value in pairs[:MOST_PARAMETERS]:
        found.setdefault(INDEX.sub("", name), []).append(value)
    return found


def split_tags(tags: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the type and the value of each tag; a value may contain colons."""
    for tag in tags:
        kind, _, value = tag.partition(":")
        yield kind, value


def knows_segments(version: bytes | None) -> bool:
    """Return whether an SDK with this version of the client specification supports segments. Raises ValueError for a
    malformed one."""
    if not version:
        return False
    text = version.decode("latin-1").strip()
    match = SEMVER.fullmatch(text)
    if match is None:
        what = "SemVer" if text[:1].isdigit() else "prefix"
        raise ValueError(f'Invalid {what} in the Unleash-Client-Spec header: "{text}".')
    numbers = tuple(int(each) for each in match.groups()[:3])
    return numbers > SEGMENTS_SINCE or (numbers == SEGMENTS_SINCE and not match[4])


def project_problems(values: list[str]) -> Problems:
    """Yield what is wrong with a filter by project; one more problem if no value is valid."""
    if values == [""]:
        yield '"project" must be an array.'
        return
    wrong = [f'"project[{place}]" {problem}' for place, value in enumerate(values) if (problem := project_problem(value))]
    yield from wrong
    if len(wrong) == len(values):
        yield f'"project" does not contain 1 required value(s). You provided {to_json(values)}.'


def project_problem(value: str) -> str:
    """Return what is wrong with a project id; empty for a valid one."""
    if not value:
        return EMPTY
    if len(value) > MAX_NAME_LENGTH:
        return f'length must be less than or equal to {MAX_NAME_LENGTH} characters long. You provided "{value}".'
    friendly = URL_FRIENDLY.match(value) and value not in RELATIVE_PATHS
    return "" if friendly else f'must be URL friendly. You provided "{value}".'


def prefix_problems(values: list[str]) -> Problems:
    """Yield what is wrong with a filter by name prefix."""
    if len(values) > 1:
        yield f'"namePrefix" must be a string. You provided {to_json(values)}.'
    elif not values[0]:
        yield f'"namePrefix" {EMPTY}'


def tag_problems(values: list[str]) -> Problems:
    """Yield what is wrong with a filter by tag."""
    if values == [""]:
        yield '"tag" must be an array.'
        return
    for place, value in enumerate(values):
        if not value:
            yield f'"tag[{place}]" {EMPTY}'
        elif TAG.search(value) is None:
            yield f'"tag[{place}]" with value "{value}" fails to match the tag pattern. You provided "{value}".'


FILTERS: dict[str, Callable[[list[str]], Problems]] = {
    "tag": tag_problems,
    "project": project_problems,
    "namePrefix": prefix_problems,
}
"""Parameter of the query string → the function that finds problems of its values."""

PARAMETERS = (
    Parameter("project", "Only features of this project; has an effect only with a token of all projects.", repeated=True),
    Parameter("namePrefix", "Only features whose name begins with this."),
    Parameter("tag", "Only features with this tag, written `type:value`; of several tags any one.", repeated=True),
)


def find_problems(given: Mapping[str, list[str]]) -> list[str]:
    """Return what is wrong with filters, each with its values."""
    return [problem for name, values in given.items() for problem in FILTERS[name](values)]
