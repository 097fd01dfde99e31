"""flagsvc's own HTTP/1.1, under uvicorn: from a connection's bytes to the contract and back.

This room does not know routes, options and applications: it has a contract and limits. uvicorn listens, handles signals and
TLS, and makes one `Connection` for each connection with a `ConnectionFactory`.
"""

from flagsvc.http.server.connection_limits import ConnectionLimits
from flagsvc.http.server.factory import ConnectionFactory

__all__ = ["ConnectionFactory", "ConnectionLimits"]
