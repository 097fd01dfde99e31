"""The secrets of this process are shown to no other flag server than their own."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc import ProxyOptions
from flagsvc.proxy.tokens import OwnSecrets
from flagsvc.settings.environments import upstream_of_options

ONE, TWO, THREE = "https://one.example/api", "https://two.example/api", "https://three.example/api"
A = {"flagsvc_url": ONE, "flagsvc_api_token": "*:production.a", "client_keys": ["made-up-key", "a:production.key"]}
B = {
    "flagsvc_url": TWO,
    "flagsvc_api_token": "made-up-b",
    "client_keys": "of-b",
    "exp_server_side_sdk_config_tokens": "b:production.key",
}


def options(**more: Any) -> ProxyOptions:
    """Return options of two environments with upstreams of their own; `more` are further options of the first one."""
    storage = "redis://:of-the-storage@server.example"
    return ProxyOptions(flagsvc_url=ONE, environments={"a": {**A, **more}, "b": B}, storage=storage)


def where(secrets: OwnSecrets, token: str) -> list[str]:
    """Return which upstreams may be asked about a token; an upstream of `options` has no headers of its own."""
    return [url for url in (ONE, TWO, THREE) if secrets.may_be_sent(token, upstream(url))]


def upstream(url: str, **more: Any) -> str:
    """Return the identity of the upstream at an address."""
    return upstream_of_options(ProxyOptions(flagsvc_url=url, flagsvc_api_token="t", client_keys="k", **more))


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("*:production.a", [ONE]),
        ("made-up-b", [TWO]),
        ("a:production.key", [ONE]),
        ("b:production.key", [TWO]),
        ("made-up-key", []),
        ("of-the-storage", []),
        ("of-the-bootstrap", []),
        ("*:production.of-a-caller", [ONE, TWO, THREE]),
        ("made-up-keys", [ONE, TWO, THREE]),
    ],
)
def test_where_a_token_may_be_sent(token: str, expected: list[str]) -> None:
    """A secret goes only to the upstream that has made it; any other text may be a token."""
    secrets = OwnSecrets(options(exp_bootstrap_authorization="of-the-bootstrap"))
    assert where(secrets, token) == expected


def test_former_secrets() -> None:
    """What was a secret stays one. One that two environments have belongs to both."""
    secrets = OwnSecrets(options())
    secrets.add(options(client_keys="new-key", flagsvc_api_token="*:production.new"))
    secrets.add(ProxyOptions(flagsvc_url=THREE, flagsvc_api_token="made-up-b", client_keys="only"))
    assert [where(secrets, key) for key in ("made-up-key", "new-key", "only")] == [[], [], []]
    assert where(secrets, "*:production.a") == where(secrets, "*:production.new") == [ONE]
    assert where(secrets, "made-up-b") == [TWO, THREE]


def test_tenants_of_one_address() -> None:
    """No tenant sees the token of another tenant. What is sent to the gateway is shown to neither."""
    headers = {"x-tenant": "for-the-gateway"}
    secrets = OwnSecrets(options(upstream_headers=headers))
    there, beside = upstream(ONE, upstream_headers=headers), upstream(ONE, upstream_headers={"x-tenant": "b"})
    for token, expected in (("*:production.a", (True, False)), ("for-the-gateway", (False, False))):
        assert (secrets.may_be_sent(token, there), secrets.may_be_sent(token, beside)) == expected


def test_no_secret_is_kept() -> None:
    """Only digests are."""
    assert "production" not in repr(vars(OwnSecrets(options())))
