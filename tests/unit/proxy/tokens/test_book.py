"""Tokens that the upstream knows, and tokens that it does not know: bounds, ages, and the form in which they are stored.

What a token opens: by its text, and by the upstream's word.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.proxy.tokens import book as module
from flagsvc.proxy.tokens.book import (
    KINDS,
    LONGEST,
    UNKNOWN_S,
    KnownToken,
    TokenBook,
    TokenGrant,
    TokenScope,
    digest_of,
    is_plausible,
    read_grant,
    scope_of_text,
    unpack,
)

GRANT = TokenGrant(False, TokenScope("production", None))
OTHER = TokenGrant(True, TokenScope("production", frozenset("ab")))
KNOWN, UNKNOWN = 4, 6
TOKENS = st.sampled_from([f"token-{number}" for number in range(12)])
STEPS = st.one_of(
    st.tuples(st.just("add"), TOKENS),
    st.tuples(st.just("unknown"), TOKENS),
    st.tuples(st.just("stored"), st.lists(TOKENS, max_size=9, unique=True)),
    st.tuples(st.just("wait"), st.sampled_from([1.0, UNKNOWN_S])),
)


@pytest.fixture(name="bounds", scope="module")
def _bounds() -> Iterator[None]:
    """Have bounds that a few tokens reach."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_KNOWN", KNOWN)
        patch.setattr(module, "MAX_UNKNOWN", UNKNOWN)
        yield


def stored(*tokens: str, checked: float = 7.0) -> bytes:
    """Return the record of a book that knows these tokens."""
    book = TokenBook()
    for token in tokens:
        book.known[digest_of(token)] = KnownToken(GRANT, checked, token)
    return b"".join(book.pack())


def restore(book: TokenBook, data: bytes) -> None:
    """Have a book know what is stored."""
    found: dict[str, KnownToken] = {}
    for part in unpack(data) or ():
        found |= part
    book.restore(found)


def remembered(book: TokenBook, now: float) -> set[str]:
    """Return the tokens that are known to be unknown."""
    return {f"token-{number}" for number in range(12) if book.is_unknown(f"token-{number}", now)}


@given(st.lists(STEPS, max_size=40))
@pytest.mark.usefixtures("bounds")
def test_no_sequence_breaks_the_bounds(steps: list[tuple[str, object]]) -> None:
    """Neither collection grows beyond its bound, no token is in both, and what is forgotten is told."""
    book, now, told = TokenBook(), 0.0, set[str]()
    for kind, value in steps:
        if kind == "add":
            told.add(str(value))
            told -= set(book.add(str(value), GRANT, now))
            assert book.find(str(value)) == KnownToken(GRANT, now, str(value))
        elif kind == "unknown":
            told.discard(str(value))
            book.add_unknown(str(value), now)
            assert book.is_unknown(str(value), now) and book.find(str(value)) is None
        elif kind == "stored":
            restore(book, stored(*value))  # type: ignore[misc]
        else:
            now += float(value)  # type: ignore[arg-type]
        assert len(book.known) <= KNOWN
        assert len(remembered(book, now)) <= UNKNOWN
        assert not remembered(book, now) & {f"token-{n}" for n in range(12) if book.find(f"token-{n}")}
        assert set(book.texts()) == told, "a token is forgotten only when the caller of `add` is told"


@pytest.mark.usefixtures("bounds")
def test_the_one_checked_longest_ago_is_forgotten() -> None:
    """A token that was checked again is the newest."""
    book = TokenBook()
    for number in range(KNOWN):
        assert book.add(str(number), GRANT, float(number)) == []
    assert book.add("0", GRANT, 10.0) == []
    assert book.add("new", GRANT, 11.0) == ["1"]
    assert sorted(book.texts()) == ["0", "2", "3", "new"]


def test_the_age_of_a_refusal() -> None:
    """An unknown token counts as unknown for half a minute, and again from when it was asked about again."""
    book = TokenBook()
    book.add_unknown("t", 100.0)
    assert book.is_unknown("t", 100.0) and book.is_unknown("t", 100.0 + UNKNOWN_S - 0.1)
    assert not book.is_unknown("t", 100.0 + UNKNOWN_S) and not book.is_unknown("u", 100.0)
    book.add_unknown("t", 140.0)
    assert book.is_unknown("t", 140.0 + UNKNOWN_S - 0.1)


@pytest.mark.usefixtures("bounds")
def test_many_refusals_leave_the_newest() -> None:
    """At least half of the bound is remembered, and always the newest."""
    book = TokenBook()
    for number in range(50):
        book.add_unknown(f"token-{number}", 0.0)
        newest = [f"token-{each}" for each in range(max(0, number - UNKNOWN // 2 + 1), number + 1)]
        assert all(book.is_unknown(token, 1.0) for token in newest)
    assert not book.is_unknown("token-0", 1.0)


def test_what_is_stored() -> None:
    """The record tells everything but the texts of tokens, and a book reads it back without them."""
    book = TokenBook()
    book.add("*:production.very-secret", GRANT, 3.0)
    book.add("[]:production.also-secret", OTHER, 4.5)
    packed = b"".join(book.pack())
    assert b"secret" not in packed
    other = TokenBook()
    restore(other, packed)
    assert len(other.known) == 2
    assert other.find("*:production.very-secret") == KnownToken(GRANT, 3.0)
    assert other.find("[]:production.also-secret") == KnownToken(OTHER, 4.5)
    assert other.texts() == []
    assert json.loads(b"".join(other.pack())) == json.loads(packed)


@pytest.mark.parametrize("number", [0, 1, 4, 5, 6, 15])
def test_many_tokens_are_stored_in_slices(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, the slices together are one record of all; no slice has more than its number of tokens."""
    monkeypatch.setattr(module, "SLICE", 5)
    monkeypatch.setattr(module, "MAX_KNOWN", 100)
    book = TokenBook()
    for each in range(number):
        book.add(f"token-{each}", GRANT, float(each))
    parts = list(book.pack())
    assert json.loads(b"".join(parts))["flagsvc"] == 1
    assert max(part.count(b"digest") for part in parts) <= 5
    found = list(unpack(b"".join(parts)) or ())
    assert sum(map(len, found)) == number and all(len(part) <= 5 for part in found)
    other = TokenBook()
    restore(other, b"".join(parts))
    assert list(other.known) == list(book.known)


def test_a_token_is_not_shown() -> None:
    """Neither the repr of a known token nor that of all of them has its text."""
    book = TokenBook()
    book.add("very-secret", OTHER, 3.0)
    assert "secret" not in f"{book.known} {book.find('very-secret')!r} {book.find('very-secret')} {book!r}"


def test_what_is_known_counts_more_than_what_was_stored() -> None:
    """A stored record that is read late takes nothing back: not a known token, and not a refusal."""
    book = TokenBook()
    book.add("known", OTHER, 9.0)
    book.add_unknown("refused", 9.0)
    restore(book, stored("known", "refused", "more"))
    assert book.find("known") == KnownToken(OTHER, 9.0, "known")
    assert book.find("refused") is None and book.is_unknown("refused", 9.0)
    assert book.find("more") == KnownToken(GRANT, 7.0)


@pytest.mark.usefixtures("bounds")
def test_a_record_beyond_the_bound() -> None:
    """Of a record with too many tokens, a book reads the tokens that were checked last; none that is known is dropped."""
    book = TokenBook()
    book.add("own", GRANT, 1.0)
    restore(book, stored(*(f"token-{number}" for number in range(9))))
    assert [number for number in range(9) if book.find(f"token-{number}")] == [6, 7, 8]
    assert book.texts() == ["own"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"tokens":{}}',
        b'{"tokens":[1]}',
        b'{"tokens":[{"digest":"x"}]}',
        b'{"tokens":[{"digest":1,"server":true,"environment":"e","projects":null,"checked":1}]}',
        b'{"tokens":[{"digest":"d","server":true,"environment":"e","projects":[1],"checked":1}]}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"tokens":' + b"[" * 100_000,
        b'{"tokens":[{"digest":"d","server":true,"environment":"e","projects":null,"checked":1e999}]}',
        b'{"tokens":"\\ud800"}',
    ],
    ids=lambda data: data[:40].decode("latin-1"),
)
def test_a_record_that_is_none(data: bytes) -> None:
    """It is as if nothing were stored."""
    book = TokenBook()
    restore(book, data)
    assert book.known == {}


@given(st.binary(max_size=200) | st.builds(lambda at, byte: damaged(at, byte), st.integers(0, 400), st.binary()))
def test_any_bytes(data: bytes) -> None:
    """No record is too odd to be read."""
    book = TokenBook()
    restore(book, data)
    assert not book.texts()


def damaged(at: int, other: bytes) -> bytes:
    """Return a record with other bytes in the middle."""
    good = stored("a", "b")
    return good[:at] + other + good[at + 1 :]


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


@given(scopes, scopes, scopes)
def test_covering_is_a_partial_order(one: TokenScope, other: TokenScope, third: TokenScope) -> None:
    """The relation is antisymmetric and transitive, and never leaves an environment."""
    assert (one.covers(other) and other.covers(one)) is (one == other)
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
