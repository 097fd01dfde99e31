"""The evaluation context: the user and the time (specification: Evaluation context; behaviour: Evaluation endpoints).

This module knows the names of the context fields and how a field is looked up. It does not know where a context comes from.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from flagsvc.engine.values import jsdate

PROPERTY: Final = 0
APP_NAME: Final = 1
ENVIRONMENT: Final = 2
USER_ID: Final = 3
SESSION_ID: Final = 4
REMOTE_ADDRESS: Final = 5
CURRENT_TIME: Final = 6
PROPERTIES: Final = 7

FIELDS: Final[dict[str, int]] = {
    "appName": APP_NAME,
    "environment": ENVIRONMENT,
    "userId": USER_ID,
    "sessionId": SESSION_ID,
    "remoteAddress": REMOTE_ADDRESS,
    "currentTime": CURRENT_TIME,
    "properties": PROPERTIES,
}
"""Wire name of each standard field → its kind. Any other name is a property."""

PROPERTIES_AS_TEXT: Final = "[object Object]"
"""The value of the field `properties` for constraints: JavaScript's text of an object."""


class Context:
    """One evaluation context.

    Absent standard fields are None, never an empty text. `current_time` is the caller's time in epoch milliseconds; without it,
    `now` (epoch milliseconds) is used. `entropy` (an integer of up to 62 bits) is the seed of this evaluation's random draws.
    """

    def __init__(
        self,
        *,
        app_name: str | None = None,
        environment: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        remote_address: str | None = None,
        current_time: float | None = None,
        properties: dict[str, str] | None = None,
        now: float = 0.0,
        entropy: int = 0,
    ) -> None:
        self.app_name = app_name
        self.environment = environment
        self.user_id = user_id
        self.session_id = session_id
        self.remote_address = remote_address
        self.current_time = current_time
        self.properties: dict[str, str] = {} if properties is None else properties
        self.now = now
        self.entropy = entropy

    def own(self, kind: i64) -> str | None:
        """Return the standard field of this kind as text; None if it is absent."""
        if kind == USER_ID:
            return self.user_id
        if kind == SESSION_ID:
            return self.session_id
        if kind == APP_NAME:
            return self.app_name
        if kind == ENVIRONMENT:
            return self.environment
        if kind == REMOTE_ADDRESS:
            return self.remote_address
        if kind == PROPERTIES:
            return PROPERTIES_AS_TEXT
        return None if self.current_time is None else jsdate.to_text(self.current_time)

    def read(self, kind: i64, name: str) -> str | None:
        """Return the field of this kind; if it is absent, the property of the same `name`, or None."""
        if kind == PROPERTY:
            return self.properties.get(name)
        value = self.own(kind)
        return self.properties.get(name) if value is None else value

    def get(self, field: str) -> str | None:
        """Return a context field by its wire name (`userId`, `region`, …) as text; None if it is absent."""
        return self.read(FIELDS.get(field, PROPERTY), field)

    def replace(self, **changes: object) -> Context:
        """Return a copy with some attributes changed. Raises TypeError for an unknown attribute."""
        copy = Context()
        for name in ATTRIBUTES:
            setattr(copy, name, changes.pop(name) if name in changes else getattr(self, name))
        if changes:
            raise TypeError(f"a context has no attribute `{min(changes)}`, it has {', '.join(ATTRIBUTES)}")
        return copy

    def as_dict(self) -> dict[str, object]:
        """Return the present fields by their wire names. `properties` is always included."""
        pairs: list[tuple[str, object]] = [
            ("appName", self.app_name),
            ("environment", self.environment),
            ("userId", self.user_id),
            ("sessionId", self.session_id),
            ("remoteAddress", self.remote_address),
            ("currentTime", self.current_time),
            ("properties", dict(self.properties)),
        ]
        return {name: value for name, value in pairs if value is not None}


ATTRIBUTES: Final = (
    "app_name",
    "environment",
    "user_id",
    "session_id",
    "remote_address",
    "current_time",
    "properties",
    "now",
    "entropy",
)
"""The attributes of a context, in the order of the specification."""

WIRE_NAMES: Final[dict[str, str]] = {
    "app_name": "appName",
    "user_id": "userId",
    "session_id": "sessionId",
    "remote_address": "remoteAddress",
    "current_time": "currentTime",
}
"""Attribute of a context → its name on the wire, if the two differ."""
