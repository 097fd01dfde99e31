"""Options of a proxy for tests that need any: all that is required, and an upstream where nobody listens."""

from __future__ import annotations

from typing import Any

from flagsvc.settings.options import ProxyOptions


def options(**given: Any) -> ProxyOptions:
    """Return options with what is required."""
    required = {"flagsvc_url": "http://127.0.0.1:1/api", "flagsvc_api_token": "token", "client_keys": "key"}
    return ProxyOptions(**required | given)
