"""The dialects of the proxy, one row each. The first dialect whose prefix a path has decides the form of its errors."""

from __future__ import annotations

from flagsvc.proxy.api.dialects.client import CLIENT
from flagsvc.proxy.api.dialects.dialect import Dialect
from flagsvc.proxy.api.dialects.frontend import FRONTEND
from flagsvc.proxy.api.dialects.proxy import PROXY

DIALECTS: tuple[Dialect, ...] = (PROXY, FRONTEND, CLIENT)
