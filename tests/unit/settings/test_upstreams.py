"""Which environments have the same upstream."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.settings.environments import upstream_of, upstream_of_options
from flagsvc.settings.options import OPTIONS, ProxyOptions

GIVEN = {"flagsvc_url": "https://h/api", "flagsvc_api_token": "*:production.s", "client_keys": "k"}


def made(**more: Any) -> ProxyOptions:
    """Return options, with these ones."""
    return ProxyOptions(**{**GIVEN, **more})


def upstream(**more: Any) -> str:
    """Return the identity of the upstream of these options."""
    return upstream_of_options(made(**more))


@pytest.mark.parametrize(
    "more",
    [
        {"flagsvc_url": "https://other/api"},
        {"upstream_headers": {"x-tenant": "a"}},
        {"https_proxy": "http://outbound:3128"},
        {"no_proxy": "h"},
        {"upstream_ca": "/ca.pem"},
        {"upstream_cert": "/cert.pem"},
        {"upstream_cert": "/cert.pem", "upstream_key": "/key.pem"},
        {"http_options_reject_unauthorized": False},
    ],
    ids=str,
)
def test_another_upstream(more: dict[str, Any]) -> None:
    """What decides who answers, and as whose. A secret of it cannot be read."""
    found = upstream(**more)
    assert found != upstream() and len(found) == 64 and set(found) <= set("0123456789abcdef")


@pytest.mark.parametrize("more", [{"flagsvc_api_token": "other"}, {"flagsvc_app_name": "x"}, {"upstream_timeout": 1}])
def test_the_same_upstream(more: dict[str, Any]) -> None:
    """With any token, any name of the application, and any timeout."""
    assert upstream(**more) == upstream()


def test_values_and_options_agree() -> None:
    """The warnings of the start mean the same upstreams as the look-ups do."""
    options = made(upstream_headers={"x-tenant": "a"}, no_proxy="h")
    assert upstream_of({row.name: getattr(options, row.field) for row in OPTIONS}) == upstream_of_options(options)
