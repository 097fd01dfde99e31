"""How long a connection may take, and how much of it is kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ConnectionLimits:
    """Bounds of every connection of one server; seconds are kept to within two of `tick_s`.

    `keep_alive_s`: between an answer and the next request. `head_s`: from the connection or the first byte of a request until
    its head is there; `body_s`: from then on until its body is. `write_s`: without a byte of the answer being taken.
    `linger_s`: for the rest of what a caller sends after an answer that closes. `shutdown_s`: when the server is to end, for a
    request that has begun and for an answer that is not taken. `half_closed_s`: for an answer that is being made for a caller
    who sends no more, and may be gone.

    `discarded`: bytes of a body that is thrown away before the connection is closed; `lingered`: bytes after an answer that
    closes. `connections`: held at once; one more is told so and closed, or only closed where `rejected` others are being told.
    `memory`: bytes of requests and answers under way that all of them hold together.
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
