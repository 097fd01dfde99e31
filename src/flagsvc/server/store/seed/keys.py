"""The keys of a seed file, as shapes (import validation 0.3)."""

from __future__ import annotations

import re
from datetime import date, datetime

from flagsvc.engine.operators import OPERATORS
from flagsvc.http.client_query import MAX_NAME_LENGTH
from flagsvc.http.json_text import deeper
from flagsvc.http.shapes import Schema
from flagsvc.http.shapes.exact import Choice, Entry, Exact, List
from flagsvc.server.shapes.strategies import WEIGHT_TYPE
from flagsvc.server.store.actors import PROJECT_ROLES, ROOT_ROLES
from flagsvc.server.store.checks import name_problem
from flagsvc.server.store.texts import contains, utf16_length

TOKEN_KINDS = ("admin", "backend", "frontend", "personal")
LONGEST_LABEL = 255
"""The most UTF-16 code units of a name that is not part of a path; the index of a database has this limit."""

DEEPEST = 100
"""The most levels of lists and objects in a JSON value."""
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class NameOf(Exact):
    """The name of an entry of another section."""

    def __init__(self, section: str) -> None:
        super().__init__("a text that is not empty", _is_text, {"type": "string", "minLength": 1})
        self.section = section


def _is_text(value: object) -> bool:
    return value != "" and _is_prose(value)


def _is_prose(value: object) -> bool:
    return isinstance(value, str) and is_storable(value)


def is_storable(value: object) -> bool:
    """Return whether every database can store a text or a JSON value, and read it again.

    PostgreSQL refuses NUL, UTF-8 has no surrogates, and readers fail on lists and objects in too many levels.
    """
    return not deeper(value, DEEPEST) and not contains(value, UNSTORABLE)


def _is_override(value: object) -> bool:
    if not isinstance(value, dict) or not _is_text(value.get("contextName")):
        return False
    values = value.get("values", [])
    return isinstance(values, list) and all(_is_prose(each) for each in values) and is_storable(value)


def _are_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) and _is_prose(text) for key, text in value.items())


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31


def _is_secret(value: object) -> bool:
    """Return whether a header can carry a secret unchanged."""
    fits = isinstance(value, str) and value.isascii() and value.isprintable() and value == value.strip()
    return fits and value != "" and not str(value).lower().startswith("bearer ")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 2**53


def _is_weight(value: object) -> bool:
    """Return whether the engine takes a weight: a number of JSON that is whole, in any notation."""
    return isinstance(value, int | float) and _is_number(value) and value == int(value)


def _is_moment(value: object) -> bool:
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            return False
        return True
    return isinstance(value, date)


SOME: Schema = {"type": "string", "minLength": 1}
TEXT = Exact("a text that is not empty", _is_text, SOME)
PROSE = Exact("a text", _is_prose, {"type": "string"})
FLAG = Exact("true or false", lambda value: isinstance(value, bool), {"type": "boolean"})
NAME = Exact(
    f"a text that is not empty, URL-friendly and has at most {MAX_NAME_LENGTH} characters",
    lambda value: isinstance(value, str) and name_problem(value) is None,
    SOME | {"maxLength": MAX_NAME_LENGTH},
)
LABEL = Exact(
    f"a text that is not empty and has at most {LONGEST_LABEL} characters",
    lambda value: isinstance(value, str) and _is_text(value) and utf16_length(value) <= LONGEST_LABEL,
    SOME,
)
SECRET = Exact("a secret that a header can carry: printable ASCII without blanks around it or `Bearer` before it", _is_secret, SOME)
WHOLE = Exact("a whole number", _is_whole, {"type": "integer"})
COUNT = Exact(
    "a whole number from 0 up to 2147483647",
    lambda value: isinstance(value, int) and _is_whole(value) and value >= 0,
    {"type": "integer", "minimum": 0},
)
NUMBER = Exact("a number", _is_number, {"type": "number"})
WEIGHT = Exact("a whole number", _is_weight, {"type": "integer"})
MOMENT = Exact("a date-time, such as 2030-01-31T12:00:00Z", _is_moment, {"type": "string", "format": "date-time"})
OBJECT = Exact(
    f"an object of at most {DEEPEST} levels, without a NUL",
    lambda value: isinstance(value, dict) and is_storable(value),
    {"type": "object"},
)
OBJECTS = List(OBJECT)
PARAMETERS = Exact("an object of texts", _are_texts, {"type": "object", "additionalProperties": {"type": "string"}})
PROJECT = NameOf("projects")
ENVIRONMENT = NameOf("environments")

OVERRIDES = List(
    Exact(
        "an object with a text as `contextName` and a list of texts as `values`",
        _is_override,
        {
            "type": "object",
            "properties": {"contextName": SOME, "values": {"type": "array", "items": {"type": "string"}}},
        },
    )
)
VARIANTS = List(
    Entry(
        {
            "name": TEXT,
            "weight": WEIGHT,
            "weightType": Choice(*WEIGHT_TYPE.values),
            "stickiness": TEXT,
            "payload": Entry({"type": TEXT, "value": PROSE}, required=("type", "value")),
            "overrides": OVERRIDES,
        },
        required=("name", "weight"),
    )
)
CONSTRAINTS = List(
    Entry(
        {
            "contextName": TEXT,
            "operator": Choice(*OPERATORS),
            "values": List(PROSE),
            "value": PROSE,
            "inverted": FLAG,
            "caseInsensitive": FLAG,
        },
        required=("contextName", "operator"),
    )
)
LEGAL_VALUES = List(Entry({"value": TEXT, "description": PROSE}, required=("value",)))
NAMING = Entry({"pattern": PROSE, "example": PROSE, "description": PROSE})
MODE = Choice("open", "protected", "private")
TYPE_PARAMETERS = List(
    Exact(
        "an object with a text as `name`",
        lambda value: isinstance(value, dict) and _is_prose(value.get("name")) and is_storable(value),
        {
            "type": "object",
            "properties": {
                **{key: {"type": "string"} for key in ("name", "type", "description")},
                "required": FLAG.known,
            },
            "additionalProperties": {},
        },
    )
)
PROJECT_ROLE = Entry({"project": PROJECT, "role": Choice(*PROJECT_ROLES)}, required=("project", "role"))

SECTIONS: dict[str, Entry] = {
    "environments": Entry(
        {"name": LABEL, "type": TEXT, "sortOrder": WHOLE, "enabled": FLAG, "protected": FLAG}, required=("name",)
    ),
    "projects": Entry(
        {
            "id": LABEL,
            "name": LABEL,
            "description": PROSE,
            "environments": List(ENVIRONMENT),
            "archived": FLAG,
            "mode": MODE,
            "defaultStickiness": TEXT,
            "featureLimit": COUNT,
            "featureNaming": NAMING,
        },
        required=("id",),
    ),
    "contextFields": Entry(
        {
            "name": NAME,
            "description": PROSE,
            "stickiness": FLAG,
            "sortOrder": WHOLE,
            "legalValues": LEGAL_VALUES,
            "project": PROJECT,
        },
        required=("name",),
    ),
    "segments": Entry({"name": LABEL, "description": PROSE, "constraints": CONSTRAINTS, "project": PROJECT}, required=("name",)),
    "strategyTypes": Entry(
        {"name": NAME, "title": PROSE, "description": PROSE, "parameters": TYPE_PARAMETERS, "deprecated": FLAG},
        required=("name",),
    ),
    "tagTypes": Entry({"name": LABEL, "description": PROSE, "icon": PROSE, "color": PROSE}, required=("name",)),
    "features": Entry(
        {
            "name": NAME,
            "project": PROJECT,
            "type": TEXT,
            "description": PROSE,
            "stale": FLAG,
            "impressionData": FLAG,
            "archived": FLAG,
            "enabled": List(ENVIRONMENT),
        },
        required=("name",),
    ),
    "strategies": Entry(
        {
            "feature": NameOf("features"),
            "environment": ENVIRONMENT,
            "name": NameOf("strategyTypes"),
            "title": PROSE,
            "parameters": PARAMETERS,
            "constraints": CONSTRAINTS,
            "variants": VARIANTS,
            "segments": List(NameOf("segments")),
            "disabled": FLAG,
            "sortOrder": NUMBER,
        },
        required=("feature", "environment", "name"),
    ),
    "users": Entry(
        {"name": LABEL, "email": TEXT, "rootRole": Choice(*ROOT_ROLES), "projectRoles": List(PROJECT_ROLE)},
        required=("name",),
    ),
    "tokens": Entry(
        {
            "secret": SECRET,
            "type": Choice(*TOKEN_KINDS),
            "name": LABEL,
            "user": NameOf("users"),
            "environment": ENVIRONMENT,
            "projects": List(PROJECT),
            "expiresAt": MOMENT,
        },
        required=("secret", "type"),
    ),
    "changeRequests": Entry({"project": PROJECT, "environment": ENVIRONMENT}, required=("project", "environment")),
}
"""Section of the file → shape of its entries. `features[].enabled` lists the environments in which the feature is on."""

CLEARED_BY_NULL: dict[str, tuple[str, ...]] = {
    "projects": ("description", "featureLimit", "featureNaming"),
    "contextFields": ("description", "project"),
    "segments": ("description", "project"),
    "strategyTypes": ("title", "description"),
    "tagTypes": ("description", "icon", "color"),
    "features": ("description",),
    "users": ("email",),
    "tokens": ("expiresAt",),
}
"""Section → the keys that may be without a value in a database: null clears it. Null in any other key counts as left out."""

IDENTITY = dict.fromkeys(SECTIONS, "name") | {
    "projects": "id",
    "tokens": "secret",
    "strategies": "",
    "changeRequests": "",
}
"""Section → the key that identifies an entry; empty if entries may repeat."""

BUILT_IN = {
    "environments": ("development", "production"),
    "projects": ("default",),
    "contextFields": ("appName", "currentTime", "environment", "sessionId", "userId"),
    "strategyTypes": ("default", "flexibleRollout", "remoteAddress", "applicationHostname"),
    "tagTypes": ("simple",),
}
"""Section → the entries of every database without a seed. A file may replace them."""
