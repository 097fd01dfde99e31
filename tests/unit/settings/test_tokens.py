"""What a token says of itself."""

from __future__ import annotations

import pytest

from flagsvc.settings.tokens import NamedScope, read_scope


@pytest.mark.parametrize(
    ("token", "named"),
    [
        ("shop:production.secret", NamedScope("shop", "production")),
        ("a.b:production.secret", NamedScope("a.b", "production")),
        ("*:production.sec.ret:x", NamedScope("*", "production")),
        ("[]:production.secret", NamedScope("[]", "production")),
        ("*:*.secret", NamedScope("*", "*")),
        ("", None),
        ("secret", None),
        ("a:production", None),
        ("a:production.", None),
        ("a:.secret", None),
        (":production.secret", None),
        ("production.secret", None),
        (":.", None),
    ],
)
def test_what_a_token_names(token: str, named: NamedScope | None) -> None:
    """A token of the usual form names a project, which may contain a dot, and an environment; any other form names nothing."""
    assert read_scope(token) == named


@pytest.mark.parametrize("token", ["shop:production.secret", "a.b:production.secret", "[]:production.se:cret"])
def test_the_part_that_is_not_secret(token: str) -> None:
    """The token begins with it, and the rest is the secret."""
    named = read_scope(token)
    assert named is not None and token.startswith(named.prefix) and "cret" not in named.prefix
