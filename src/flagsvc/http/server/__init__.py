"""flagsvc's own HTTP/1.1, under uvicorn: from a connection's bytes to the contract and back.

This room refuses to know routes, options and applications: it has a contract and limits. uvicorn listens, handles signals and
TLS and makes one `Connection` for each connection, through `front(…)`.
"""

from flagsvc.http.server.factory import Front, front
from flagsvc.http.server.limits import Limits

__all__ = ["Front", "Limits", "front"]
