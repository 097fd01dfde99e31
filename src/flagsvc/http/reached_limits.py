"""The limits for requests, and how often each was reached (decision 0020). Compiled."""

from __future__ import annotations

from typing import Final

HEADERS: Final = "headers"
QUERY: Final = "query"
BODY: Final = "body"
DEPTH: Final = "json_depth"
PROPERTIES: Final = "context_properties"
VALUE: Final = "context_value"
TOGGLES: Final = "toggles"
ANSWER: Final = "answer"
KEY_RATE: Final = "key_rate"
ADDRESS_RATE: Final = "address_rate"
CONNECTIONS: Final = "connections"
MEMORY: Final = "request_memory"
HEADER_TIME: Final = "header_timeout"
BODY_TIME: Final = "body_timeout"
WRITE_TIME: Final = "write_timeout"
ENRICHER_TIME: Final = "enricher_timeout"
ENRICHER_STUCK: Final = "enricher_stuck"
STREAMS: Final = "streams"
SIGN_IN: Final = "sign_in"

LIMITS: Final = (
    HEADERS,
    QUERY,
    BODY,
    DEPTH,
    PROPERTIES,
    VALUE,
    TOGGLES,
    ANSWER,
    KEY_RATE,
    ADDRESS_RATE,
    CONNECTIONS,
    MEMORY,
    HEADER_TIME,
    BODY_TIME,
    WRITE_TIME,
    ENRICHER_TIME,
    ENRICHER_STUCK,
    STREAMS,
    SIGN_IN,
)
"""Every limit, by its name in the metrics."""
COMMON_LIMITS: Final = (HEADERS, QUERY, BODY, CONNECTIONS, MEMORY, HEADER_TIME, BODY_TIME, WRITE_TIME, STREAMS, SIGN_IN)
"""The limits that both programs have."""


class Reached:
    """How often each limit was reached."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = dict.fromkeys(LIMITS, 0)

    def add(self, limit: str) -> None:
        self.counts[limit] += 1
