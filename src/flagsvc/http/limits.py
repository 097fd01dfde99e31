"""The limits for requests, and how often each was reached (docs/decisions/0032). Compiled."""

from __future__ import annotations

from typing import Final

from flagsvc.engine.context import Context
from flagsvc.http.messages import Refused, invalid

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
)
"""Every limit, by its name in the metrics."""
COMMON_LIMITS: Final = (HEADERS, QUERY, BODY, CONNECTIONS, MEMORY, HEADER_TIME, BODY_TIME, WRITE_TIME)
"""The limits that both programs have."""


USUAL_TIME: Final = 100
"""Characters that a date may always have, even if other values must be shorter."""


class Reached:
    """How often each limit was reached."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = dict.fromkeys(LIMITS, 0)

    def add(self, limit: str) -> None:
        """Count that a limit, one of LIMITS, was reached."""
        self.counts[limit] += 1


class Bounds:
    """The limits of a context: the number of properties, the characters of a text, and the toggles of a look-up.

    `time` is the most characters of its time. They are counted where the time is read, because a context contains a number.
    """

    def __init__(self, properties: int, value: int, toggles: int) -> None:
        self.properties: Final = properties
        self.value: Final = value
        self.time: Final = max(value, USUAL_TIME)
        self.toggles: Final = toggles

    def check(self, context: Context, place: str, inside: str) -> None:
        """Raise Refused (400) for too many or too long values. Pointers start with `place`, those of properties with `inside`."""
        properties = context.properties
        if len(properties) > self.properties:
            raise invalid(inside, None, f"must NOT have more than {self.properties} properties", PROPERTIES)
        self.check_text(place, "userId", context.user_id)
        self.check_text(place, "sessionId", context.session_id)
        self.check_text(place, "remoteAddress", context.remote_address)
        self.check_text(place, "appName", context.app_name)
        self.check_text(place, "environment", context.environment)
        for name, text in properties.items():
            if len(name) > self.value:
                raise invalid(inside, None, f"must NOT have names of more than {self.value} characters", VALUE)
            self.check_text(inside, name, text)

    def check_text(self, place: str, name: str, text: str | None) -> None:
        """Raise Refused (400) for a text that is too long. `name` is its name below `place`."""
        if text is not None and len(text) > self.value:
            raise too_long(place, name, self.value)


def too_long(place: str, name: str, most: int) -> Refused:
    """Return the 400 for the text `name` below `place`, which has more than `most` characters."""
    return invalid(place, name, f"must NOT have more than {most} characters", VALUE)
