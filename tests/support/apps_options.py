"""Options of a proxy for tests: all required ones, and an upstream without a listener."""

from __future__ import annotations

from typing import Any

from flagsvc.settings.options import ProxyOptions


def options(**given: Any) -> ProxyOptions:
    required = {"flagsvc_url": "http://127.0.0.1:1/api", "flagsvc_api_token": "token", "client_keys": "key"}
    return ProxyOptions(**required | given)
