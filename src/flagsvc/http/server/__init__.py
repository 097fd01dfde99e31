"""flagsvc's own HTTP/1.1 protocol under uvicorn: from the bytes of a connection to the contract and back.

This package does not know routes, options and applications. It has a contract and limits. uvicorn listens, handles signals and TLS,
and makes one `Connection` for each connection with a `ConnectionFactory`.

    connection.py      `Connection`, where the bytes of a request come in and go out, with the limits of time and number
    states.py          the life of a connection, as a table
    request_parser.py  bytes → request
    writer.py          what waits to be sent; shared.py: `ResponseWriter` writes an answer, in parts with `ConnectionOutlet`
    asgi.py            the same contract under another server, for mounting
"""

from flagsvc.http.server.connection import ConnectionFactory
from flagsvc.http.server.shared import ConnectionLimits

__all__ = ["ConnectionFactory", "ConnectionLimits"]
