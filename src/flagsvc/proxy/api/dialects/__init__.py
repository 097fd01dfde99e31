"""The dialects that the proxy speaks, a row each. The first one that has the path of a request decides how its error looks."""

from __future__ import annotations

from flagsvc.proxy.api.dialects.dialect import Dialect
from flagsvc.proxy.api.dialects.proxy import PROXY

DIALECTS: tuple[Dialect, ...] = (PROXY,)
