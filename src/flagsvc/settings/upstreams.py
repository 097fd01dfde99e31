"""Which upstream an environment has (behaviour: Tokens looked up upstream)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from flagsvc.settings.table import BY_NAME, ProxyRows

DECIDING = (
    "flagsvcUrl",
    "upstreamHeaders",
    "httpProxy",
    "httpsProxy",
    "noProxy",
    "httpOptions.rejectUnauthorized",
    "upstreamCa",
    "upstreamCert",
    "upstreamKey",
)
"""The options that decide which server answers, and as whose: a gateway may tell its tenants apart by a header or a certificate.

Timeouts, and the names in the headers, which differ from replica to replica, do not.
"""


def upstream_of(values: Mapping[str, Any]) -> str:
    """Return the identity of the upstream of an environment with these values, by option name. No secret can be read from it."""
    return digest([values.get(name) for name in DECIDING])


def upstream_of_options(options: ProxyRows) -> str:
    """Return the identity of the upstream of these options."""
    return digest([getattr(options, BY_NAME[name].field) for name in DECIDING])


def digest(values: list[Any]) -> str:
    """Return a digest of values."""
    return hashlib.sha256(repr(values).encode()).hexdigest()
