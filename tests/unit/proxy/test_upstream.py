"""What the proxy says of a token that the upstream refuses, and where it asks about tokens."""

from __future__ import annotations

import pytest

from flagsvc.proxy.upstream import beside_api, refused_token

SECRET = "4f0ca3hidden9d21"


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        (f"user:{SECRET}", "personal access token"),
        (f"*:*.{SECRET}", "admin token"),
        (f"*:development.{SECRET}", "backend or frontend token"),
        (f"*:development.{SECRET}", "frontend tokens are not accepted here"),
        (f"default:production.{SECRET}", "backend or frontend token"),
        (f"[]:production.{SECRET}", "backend or frontend token"),
        (SECRET, "not look like an API token"),
        (f"some-client-{SECRET}", "not look like an API token"),
        (f'"*:development.{SECRET}"', "quotes"),
    ],
)
def test_the_form_tells_the_kind(token: str, kind: str) -> None:
    """The kind given and the kind needed are named, and nothing of the secret. Backend and frontend tokens have the same form."""
    told = refused_token(token)
    assert kind in told and "backend token" in told
    assert "hidden" not in told and "production" not in told


@pytest.mark.parametrize(
    ("base", "beside"),
    [
        ("https://h/api", "https://h"),
        ("https://h/proxy", "https://h"),
        ("https://h/api/proxy", "https://h/api"),
        ("https://h/flags", "https://h/flags"),
    ],
)
def test_the_question_about_tokens_is_beside_the_api(base: str, beside: str) -> None:
    """One path of an API is left out at the end. A base path before it may have the same name."""
    assert beside_api(base) == beside
