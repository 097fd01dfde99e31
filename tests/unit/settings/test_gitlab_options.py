"""Options for GitLab, and for gateways before the upstream (decision 0048)."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.proxy.upstream import Identity, UpstreamSettings, common_headers
from flagsvc.settings.advice import api_url
from flagsvc.settings.load import load
from flagsvc.settings.network import is_gitlab
from flagsvc.settings.options import secrets_of

URL = "https://gitlab.example.com/sub/api/v4/feature_flags/unleash/42"
BASE = {"FLAGSVC_URL": URL, "FLAGSVC_PROXY_CLIENT_KEYS": "k"}


@pytest.mark.parametrize(
    ("url", "known"),
    [
        (URL, True),
        (URL + "/", True),
        ("http://h/feature_flags/unleash", True),
        ("http://h/api?x=/feature_flags/unleash/", False),
        (None, False),
    ],
)
def test_how_gitlab_is_known(url: str | None, known: bool) -> None:
    """By the path of the URL alone; such a URL gets no `/api` behind it."""
    assert is_gitlab(url) is known
    if known and url:
        assert api_url(url) == url


def test_gitlab_needs_an_instance_and_no_token() -> None:
    """The default instance id is nothing that GitLab knows. Without an environment there is a warning."""
    with pytest.raises(ConfigurationError, match="flagsvcInstanceId is required for GitLab") as raised:
        load(BASE, None, {})
    assert "flagsvcApiToken" not in str(raised.value)
    loaded = load({**BASE, "FLAGSVC_INSTANCE_ID": "i"}, None, {})
    assert any("FLAGSVC_ENVIRONMENT" in warning for warning in loaded.warnings)
    assert load({**BASE, "FLAGSVC_INSTANCE_ID": "i", "FLAGSVC_ENVIRONMENT": "production"}, None, {}).warnings == []


def test_values_of_headers_are_secrets() -> None:
    """They are masked, known as secrets to the log, and not quoted in errors."""
    loaded = load({**BASE, "FLAGSVC_INSTANCE_ID": "i", "FLAGSVC_UPSTREAM_HEADERS": "X-One: hidden"}, None, {})
    assert "hidden" not in repr(loaded.options)
    assert "hidden" in secrets_of(loaded.options)
    with pytest.raises(ConfigurationError) as raised:
        load({**BASE, "FLAGSVC_INSTANCE_ID": "i", "FLAGSVC_UPSTREAM_HEADERS": "hidden"}, None, {})
    assert "hidden" not in str(raised.value)


def headers(**more: Any) -> dict[str, bytes]:
    """Return the headers of a request."""
    settings = UpstreamSettings("http://h/api", more.pop("token", "secret"), Identity("app", "i"), **more)
    return dict(common_headers(settings))


def test_the_header_of_the_token() -> None:
    """Its name is an option. An empty token is not sent, and then `Authorization` may be a header of a gateway."""
    assert headers()["authorization"] == b"secret"
    assert headers(auth_header="x-key", headers=(("authorization", "Basic x"),))["authorization"] == b"Basic x"
    assert headers(token="", headers=(("authorization", "Basic x"),))["authorization"] == b"Basic x"
    assert "authorization" not in headers(token="")
    with pytest.raises(ConfigurationError, match="upstreamAuthHeader"):
        headers(headers=(("authorization", "Basic x"),))
