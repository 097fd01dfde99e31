"""The limits of a context (decision 0032). Compiled."""

from __future__ import annotations

from typing import Final

from flagsvc.engine.context import Context
from flagsvc.http.messages import HttpError, invalid
from flagsvc.http.reached_limits import PROPERTIES, VALUE

USUAL_TIME: Final = 100
"""The most characters of a date, if the limit for values is lower."""


class ContextLimits:
    """The limits of a context: the number of properties, the characters of a value, and the number of toggles asked for by name.

    `time` is the most characters of its time. The reader of the context checks it, because a context holds the time as a
    number.
    """

    def __init__(self, properties: int, value: int, toggles: int) -> None:
        self.properties: Final = properties
        self.value: Final = value
        self.time: Final = max(value, USUAL_TIME)
        self.toggles: Final = toggles

    def check(self, context: Context, place: str, inside: str) -> None:
        """Raise HttpError (400) if a context holds too much.

        JSON pointers are below `place`, those of properties below `inside`.
        """
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
        """Raise HttpError (400) for a text that is too long. `name` is its name below `place`."""
        if text is not None and len(text) > self.value:
            raise too_long(place, name, self.value)


def too_long(place: str, name: str, most: int) -> HttpError:
    """Return the 400 for the text `name` below `place`, which has more than `most` characters."""
    return invalid(place, name, f"must NOT have more than {most} characters", VALUE)
