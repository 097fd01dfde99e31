"""flagsvc's own HTTP/1.1, under uvicorn: from a connection's bytes to the Service and back.

This room refuses to know routes, options and applications: it has a Service and limits. uvicorn listens, handles signals and
TLS and makes one `Connection` for each connection, through `front(…)`.
"""

from flagsvc.front.factory import Front, front
from flagsvc.front.limits import Limits

__all__ = ["Front", "Limits", "front"]
