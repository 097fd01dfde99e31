"""Every regular expression of the source takes time linear in the text, so that no text of a caller can stop a server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flagsvc.cli.batch.yaml_files import YamlReader
from flagsvc.cli.parser import MESSAGES
from flagsvc.proxy.api.cors import compile_origin
from flagsvc.proxy.upstream import FORMS
from support.backtracking import ambiguity
from support.patterns_used import Use, uses

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "flagsvc"
ORIGINS = ("https://*.example.com", "https://*-*.example.com:*", "*://*a*a*a")
BUILT: dict[str, tuple[str, list[re.Pattern[str]] | list[re.Pattern[bytes]]]] = {
    "cli/batch/yaml_files.py f'^(?:{form})\\\\Z'": (
        "match",
        [pattern for rows in YamlReader.yaml_implicit_resolvers.values() for _, pattern in rows],
    ),
    "cli/parser.py message": ("sub", [re.compile(pattern) for pattern, _ in MESSAGES]),
    "proxy/api/cors.py written.encode()": ("fullmatch", [compile_origin(each) for each in ORIGINS]),
    "proxy/upstream.py form": ("fullmatch", [re.compile(form, re.DOTALL) for form, _ in FORMS]),
}
"""Patterns that are known at run time only → how they are called, and samples that the source itself makes."""

BOUNDED = {
    "cli/batch/files.py TOKEN": "the text was read as JSON, so each quotation mark has its other half, where a reading ends",
    "cli/migrating/env_files.py SINGLE": "a reading ends at the next quote, and the value of the next line begins with that quote",
    "cli/migrating/env_files.py DOUBLE": "a reading ends at the next quote, and the value of the next line begins with that quote",
    "pages/forms.py VALUE": "a value in quotes has at most 300 characters; all else is read up to the next comma or line",
    "proxy/api/cors.py written.encode()": "a wildcard is lazy in an atomic group: each part of the pattern is found once",
    "server/store/urls.py INNER": "a scheme has at most 51 characters, so each position is left after as many",
    "settings/load.py KEY": "a reading begins only where a part begins, and a part without a dot is read at most twice",
    "settings/option.py INJECTED": "`is_injected` bounds the name of a variable to 256 characters: less than 1 ms",
}
"""Pattern → what bounds its time, where the proof does not see it."""

FOUND = uses(PACKAGE)
KNOWN = [use for use in FOUND if use.pattern is not None] + [
    Use(name, each.pattern, each.flags & ~re.UNICODE, call)
    for name, (call, samples) in BUILT.items()
    for each in samples
]


def test_patterns_are_found() -> None:
    """The source is read: its patterns are found, and samples stand for exactly those that are built at run time."""
    assert len(KNOWN) > 100
    assert not [path for path in PACKAGE.rglob("*.py") if re.search(r"from re import|import re as", path.read_text())]
    assert {use.name for use in FOUND if use.pattern is None} == set(BUILT)


@pytest.mark.parametrize("use", KNOWN, ids=lambda use: f"{use.name} {use.call}")
def test_patterns_take_linear_time(use: Use) -> None:
    """No text makes the search go back more than a fixed number of times, or a row says what bounds the text."""
    assert use.name in BOUNDED or not ambiguity(use.pattern or "", use.flags, use.call)


def test_rows_say_what_bounds_the_time() -> None:
    """A row explains a pattern that has no proof; a pattern with a proof needs no row."""
    needed = {use.name for use in KNOWN if ambiguity(use.pattern or "", use.flags, use.call)}
    assert set(BOUNDED) == needed
    assert all(len(reason.split()) >= 5 for reason in BOUNDED.values())


@pytest.mark.parametrize(
    ("pattern", "call"),
    [
        (r"(a+)+$", "match"), (r"(a*)*b", "match"), (r"(a|a)*b", "match"), (r"(\w|\d\d)*-", "match"), (r"(?:\\.?|.)*x", "match"),
        (r"\s*(.*?)\s*\}\}", "match"), (r"a*a*b", "match"), (r"a*a*", "fullmatch"), (r"a*b?a*c", "match"), (r"\d+\.?\d*x", "match"),
        (r"a?(?:b*b*c)?", "match"), (r"(?:(?=.*x)a)*b", "match"), (r"(?i)k*\u212a*z", "match"), (r".{0,99}.{0,99}x", "match"),
        (r"\s+$", "search"), (r"\s++$", "search"), (r"/*$", "sub"), (r"\w+:.+", "search"), (r"x(?:[^y]*y)?", "finditer"),
        (r'".*"', "search"), (r"\[[^]]*\]", "sub"), (rb"a*a*b", "match"), (r"(?>a|ab)*+(?>.*)x", "search"),
    ],
)  # fmt: skip
def test_slow_patterns_are_told(pattern: str | bytes, call: str) -> None:
    """A pattern that takes more than linear time has no proof."""
    assert ambiguity(pattern, 0, call)


@pytest.mark.parametrize(
    ("pattern", "call"),
    [
        (r"\s+", "sub"), (r"[ \t]#.*", "sub"), (r"^bearer\s+", "sub"), (r"\w+\s+\w+", "fullmatch"), (r"a*a*", "match"),
        (r"(?:[^\"\\]|\\.)*\"", "match"), (r"\.|[\w$-]+(?:\.[\w$-]+)*", "fullmatch"), (r"a*+a*b", "match"), (r"(?>a*)b", "match"),
        (r"\s*+\S+x?", "match"), (r"(?s)\[(?:\\(?:.|\Z)|[^\]\\])*(?:\]|\Z)", "finditer"), (r"x(?:[^y]*y)?", "match"),
        (r"/{2,}", "sub"),
        (r"([a-z]{1,63}\.)*[a-z]{1,63}", "fullmatch"), (r"\[[^][]*\]", "sub"), (rb"[a-z]+=\d+", "match"),
        (r"(?!user:)[^:]*:.+", "match"),
    ],
)  # fmt: skip
def test_fast_patterns_are_told(pattern: str | bytes, call: str) -> None:
    """A pattern that takes linear time has a proof."""
    assert not ambiguity(pattern, 0, call)


def test_a_reference_to_a_group_has_no_proof() -> None:
    """What the proof does not understand is refused, not passed."""
    with pytest.raises(ValueError, match="there is no proof"):
        ambiguity(r"(a*)\1", 0, "match")
