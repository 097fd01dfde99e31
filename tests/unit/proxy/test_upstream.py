"""The names that the proxy sends upstream, and what it says of a refused token."""

from __future__ import annotations

import pytest

from flagsvc.core.version import VERSION
from flagsvc.proxy.upstream import SDK, refused_token


def test_the_sdk_names_the_running_version() -> None:
    """`flagsvc:VERSION`."""
    assert SDK.split(":") == ["flagsvc", VERSION]


SECRET = "4f0ca3hidden9d21"


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        (f"user:{SECRET}", "personal access token"),
        (f"*:*.{SECRET}", "admin token"),
        (f"*:development.{SECRET}", "backend or frontend token"),
        (f"default:production.{SECRET}", "backend or frontend token"),
        (f"[]:production.{SECRET}", "backend or frontend token"),
        (SECRET, "not look like an API token"),
        (f"some-client-{SECRET}", "not look like an API token"),
        (f'"*:development.{SECRET}"', "quotes"),
    ],
)
def test_the_form_tells_the_kind(token: str, kind: str) -> None:
    """The kind given and the kind needed are named, and nothing of the secret."""
    told = refused_token(token)
    assert kind in told and "backend token" in told
    assert "hidden" not in told and "production" not in told


def test_a_frontend_token_cannot_be_told_from_a_backend_token() -> None:
    """Both kinds have the same form, so the hint names the needed kind."""
    told = refused_token(f"*:development.{SECRET}")
    assert "frontend tokens are not accepted here" in told
