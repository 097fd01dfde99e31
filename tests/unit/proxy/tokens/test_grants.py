"""What a token opens: by its text, and by the upstream's word."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.proxy.tokens.book import KINDS, LONGEST, TokenGrant, TokenScope, is_plausible, read_grant, scope_of_text

scopes = st.builds(TokenScope, st.sampled_from(["production", "development"]), st.none() | st.frozensets(st.sampled_from("abc")))
WORDS = st.text(st.characters(exclude_characters=".:", codec="utf-8"), min_size=1, max_size=10)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["*", "client", "frontend"]),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3),
    max_leaves=6,
)
TOLD: dict[str, Any] = {"token": "t", "type": "client", "projects": ["a"], "environment": "production"}
"""A good entry of an upstream's answer."""


@pytest.mark.parametrize(
    ("token", "scope"),
    [
        ("a:production.secret", TokenScope("production", frozenset("a"))),
        ("*:production.secret", TokenScope("production", None)),
        ("[]:production.secret", TokenScope("production", None)),
        ("*:*.secret", TokenScope("*", None)),
        ("secret", None),
    ],
)
def test_what_a_text_names(token: str, scope: TokenScope | None) -> None:
    """A project stands for itself, unless it is the sign for all or for several; a token of another form has no scope."""
    assert scope_of_text(token) == scope


@given(WORDS, WORDS, WORDS)
def test_every_token_of_the_usual_form_names_its_environment(project: str, environment: str, secret: str) -> None:
    """With any secret, the scope is that of project and environment."""
    found = scope_of_text(f"{project}:{environment}.{secret}")
    assert found == TokenScope(environment, None if project in ("*", "[]") else frozenset([project]))


@given(st.text(max_size=40))
def test_any_text(text: str) -> None:
    """No text is too odd: it names nothing, or an environment that is in it."""
    found = scope_of_text(text)
    assert found is None or f":{found.environment}." in text


@given(scopes, scopes)
def test_two_scopes_that_cover_each_other_are_equal(one: TokenScope, other: TokenScope) -> None:
    """The relation is antisymmetric."""
    assert (one.covers(other) and other.covers(one)) is (one == other)


@given(scopes, scopes, scopes)
def test_what_is_covered_by_something_covered_is_covered(one: TokenScope, other: TokenScope, third: TokenScope) -> None:
    """The relation is transitive, and never leaves an environment."""
    if one.covers(other) and other.covers(third):
        assert one.covers(third)
    assert not one.covers(other) or one.environment == other.environment


def test_all_projects_are_more_than_any() -> None:
    """A scope of all projects covers every other of its environment; no list of projects covers all."""
    everything, some = TokenScope("production", None), TokenScope("production", frozenset("ab"))
    assert everything.covers(some) and not some.covers(everything)
    assert some.covers(TokenScope("production", frozenset("a")))
    assert not some.covers(TokenScope("production", frozenset("bc")))
    assert not everything.covers(TokenScope("development", frozenset("a")))


@pytest.mark.parametrize(
    ("text", "plausible"),
    [
        ("a:production.secret", True),
        ("x", True),
        ("x" * LONGEST, True),
        ("", False),
        ("x" * (LONGEST + 1), False),
        ("a b", False),
        ("a\tb", False),
        ("a\nb", False),
        ("a\x7fb", False),
        ('a"b', False),
        ("a\\b", False),
        ("\xe9", False),
        ("\ud800", False),
    ],
)
def test_what_can_be_a_token(text: str, plausible: bool) -> None:
    """Only printable ASCII of a reasonable length is ever asked about."""
    assert is_plausible(text) is plausible


@given(st.text(st.characters(max_codepoint=127), max_size=20))
def test_what_can_be_a_token_is_as_long_in_json(text: str) -> None:
    """So callers cannot make a question longer than an upstream takes: with that, no caller's token would be looked up."""
    assert not is_plausible(text) or len(json.dumps(text)) == len(text) + 2


@pytest.mark.parametrize(("kind", "is_server"), KINDS.items())
def test_each_type_of_token(kind: str, is_server: bool) -> None:
    """Client and backend tokens are for servers, frontend tokens are not."""
    grant = TokenGrant(is_server, TokenScope("production", frozenset("a")))
    assert read_grant(TOLD | {"type": kind}) == ("t", grant)


@pytest.mark.parametrize(
    ("projects", "opened"), [(["a", "b"], frozenset("ab")), (["*"], None), (["a", "*"], None), (["a", 1, None], frozenset("a"))]
)
def test_projects(projects: list[object], opened: frozenset[str] | None) -> None:
    """A star stands for all projects; what is no name is left out."""
    found = read_grant(TOLD | {"projects": projects})
    assert found is not None and found[1].scope == TokenScope("production", opened)


@pytest.mark.parametrize("told", [None, 1, "t", [], {}, *({**TOLD, name: None} for name in TOLD)])
def test_an_entry_that_is_none(told: object) -> None:
    """An entry with something missing opens nothing."""
    assert read_grant(told) is None


@given(VALUES | st.fixed_dictionaries(dict.fromkeys(TOLD, VALUES)))
def test_any_entry(told: object) -> None:
    """No answer of an upstream is too odd to be read."""
    found = read_grant(told)
    assert found is None or isinstance(found[1].is_server, bool)
