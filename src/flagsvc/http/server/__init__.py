"""flagsvc's own HTTP/1.1 protocol under uvicorn: from the bytes of a connection to the contract and back.

This package does not know routes, options and applications. It has a contract and limits. uvicorn listens, handles signals and TLS,
and makes one `Connection` for each connection with a `ConnectionFactory`.
"""

from flagsvc.http.server.connection import ConnectionFactory
from flagsvc.http.server.shared import ConnectionLimits

__all__ = ["ConnectionFactory", "ConnectionLimits"]
