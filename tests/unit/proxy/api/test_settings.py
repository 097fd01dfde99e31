"""The options that the service uses."""

from __future__ import annotations

import dataclasses

import pytest

from flagsvc.proxy.api.settings import ServiceSettings


def test_only_the_keys_must_be_given() -> None:
    """Everything else has the specification's default."""
    settings = ServiceSettings(client_keys=("k",))
    assert settings.client_keys_header_name == "authorization"
    assert (settings.cors_origin, settings.cors_max_age, settings.cors_options_success_status) == ("*", 172_800, 204)
    assert (settings.body_limit, settings.metrics_body_limit) == (102_400, 1_048_576)
    assert (settings.header_limit, settings.query_limit) == (16_384, 16_384)


def test_secrets_are_not_shown() -> None:
    """The repr contains no keys and no tokens, but the other options."""
    shown = repr(ServiceSettings(client_keys=("the-key",), server_tokens=("the-token",), base_path="/base"))
    assert "the-" not in shown and "/base" in shown


def test_settings_do_not_change() -> None:
    """A service decides from them once."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        ServiceSettings(client_keys=("k",)).base_path = "/x"  # type: ignore[misc]
