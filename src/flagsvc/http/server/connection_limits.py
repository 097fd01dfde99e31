"""The limits of a connection: times, bytes and the number of connections."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ConnectionLimits:
    """The limits of every connection of one server. Times are exact to within two of `tick_s`.

    `keep_alive_s`: between an answer and the next request. `head_s`: from the connection or the first byte of a request until
    its head is complete. `body_s`: from then until its body is complete. `write_s`: while the caller reads no byte of the
    answer. `linger_s`: for the rest of a request after an answer that closes the connection. `shutdown_s`: for a started
    request, and for an answer that is not read, when the server ends. `half_closed_s`: for making an answer for a caller that
    sends no more and may have gone.

    `discarded`: bytes of a body that are discarded before the connection is closed. `lingered`: bytes that are discarded after
    an answer that closes. `connections`: the most connections. A further one gets a 503 and is closed; it is only closed if
    `rejected` others are waiting for theirs. `memory`: bytes of unfinished requests and answers of all connections together.
    """

    keep_alive_s: float = 75.0
    head_s: float = 20.0
    body_s: float = 60.0
    write_s: float = 60.0
    linger_s: float = 5.0
    shutdown_s: float = 5.0
    half_closed_s: float = 1.0
    discarded: int = 10_000_000
    lingered: int = 1_000_000
    connections: int = 10_000
    memory: int = 128 * 1024 * 1024
    rejected: int = 64
    tick_s: float = 1.0
