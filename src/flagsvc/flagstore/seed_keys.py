"""The keys of a seed file, as a table: one row a key, read by the check and by whoever documents the file (import validation)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from flagsvc.flagstore.checks import LONGEST_NAME, name_problem
from flagsvc.flagstore.texts import length
from flagsvc.shapes.strategies import OPERATORS

TOKEN_KINDS = ("admin", "backend", "frontend", "personal")
ROOT_ROLES = ("admin", "editor", "viewer")
PROJECT_ROLES = ("owner", "member")
LONGEST_LABEL = 255
"""UTF-16 code units of a name that is part of no path: a database's index takes only so much."""


@dataclass(frozen=True)
class Kind:
    """What a value may be: words for people, and the test. A list has `items`, an object `keys`."""

    expected: str
    fits: Callable[[Any], bool]
    items: Kind | None = None
    keys: Mapping[str, Key] | None = None


@dataclass(frozen=True)
class Key:
    """A key of an object. `names` is the section that has to hold what the value names."""

    kind: Kind
    required: bool = False
    names: str = ""


def _is_text(value: object) -> bool:
    return value != "" and _is_prose(value)


def _is_prose(value: object) -> bool:
    """PostgreSQL stores no NUL, and UTF-8 has no surrogates."""
    return isinstance(value, str) and "\0" not in value and not any("\ud800" <= char <= "\udfff" for char in value)


def _are_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) and _is_prose(text) for key, text in value.items())


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31


def _is_count(value: object) -> bool:
    return _is_whole(value) and isinstance(value, int) and value >= 0


def _is_name(value: object) -> bool:
    """As for the one-call operations: a name becomes a part of paths."""
    return isinstance(value, str) and name_problem(value) is None


def _is_label(value: object) -> bool:
    return isinstance(value, str) and _is_text(value) and length(value) <= LONGEST_LABEL


def _is_secret(value: object) -> bool:
    """Whether a header can carry it and is read as it was sent."""
    fits = isinstance(value, str) and value.isascii() and value.isprintable() and value == value.strip()
    return fits and value != "" and not str(value).lower().startswith("bearer ")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_moment(value: object) -> bool:
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            return False
        return True
    return isinstance(value, date)


def one_of(*words: str) -> Kind:
    """Return the kind of one of some words."""
    return Kind(f"one of {', '.join(words)}", lambda value: value in words)


def list_of(items: Kind) -> Kind:
    """Return the kind of a list."""
    return Kind("a list", lambda value: isinstance(value, list), items=items)


def record(**keys: Key) -> Kind:
    """Return the kind of an object with these keys and no others."""
    return Kind("an object", lambda value: isinstance(value, dict), keys=keys)


TEXT = Kind("a text that is not empty", _is_text)
PROSE = Kind("a text", _is_prose)
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
NAME = Kind(f"a text that is not empty, URL-friendly and has at most {LONGEST_NAME} characters", _is_name)
LABEL = Kind(f"a text that is not empty and has at most {LONGEST_LABEL} characters", _is_label)
SECRET = Kind(
    "a secret that a header can carry: printable ASCII without blanks around it or `Bearer` before it", _is_secret
)
WHOLE = Kind("a whole number", _is_whole)
COUNT = Kind("a whole number from 0 up to 2147483647", _is_count)
NUMBER = Kind("a number", _is_number)
MOMENT = Kind("a date-time, such as 2030-01-31T12:00:00Z", _is_moment)
OBJECT = Kind("an object", lambda value: isinstance(value, dict))
OBJECTS = list_of(OBJECT)
PARAMETERS = Kind("an object of texts", _are_texts)


def _named(section: str) -> Key:
    return Key(TEXT, required=True, names=section)


def _some(section: str) -> Key:
    return Key(TEXT, names=section)


VARIANTS = list_of(
    record(
        name=Key(TEXT, required=True),
        weight=Key(NUMBER, required=True),
        weightType=Key(one_of("variable", "fix")),
        stickiness=Key(TEXT),
        payload=Key(OBJECT),
        overrides=Key(OBJECTS),
    )
)
CONSTRAINTS = list_of(
    record(
        contextName=Key(TEXT, required=True),
        operator=Key(one_of(*OPERATORS), required=True),
        values=Key(list_of(PROSE)),
        value=Key(PROSE),
        inverted=Key(FLAG),
        caseInsensitive=Key(FLAG),
    )
)
LEGAL_VALUES = list_of(record(value=Key(TEXT, required=True), description=Key(PROSE)))
NAMING = record(pattern=Key(PROSE), example=Key(PROSE), description=Key(PROSE))

SECTIONS: dict[str, Kind] = {
    "environments": record(
        name=Key(LABEL, required=True),
        type=Key(TEXT),
        sortOrder=Key(WHOLE),
        enabled=Key(FLAG),
        protected=Key(FLAG),
    ),
    "projects": record(
        id=Key(LABEL, required=True),
        name=Key(LABEL),
        description=Key(PROSE),
        environments=Key(list_of(TEXT), names="environments"),
        archived=Key(FLAG),
        mode=Key(one_of("open", "protected", "private")),
        defaultStickiness=Key(TEXT),
        featureLimit=Key(COUNT),
        featureNaming=Key(NAMING),
    ),
    "contextFields": record(
        name=Key(NAME, required=True),
        description=Key(PROSE),
        stickiness=Key(FLAG),
        sortOrder=Key(WHOLE),
        legalValues=Key(LEGAL_VALUES),
        project=_some("projects"),
    ),
    "segments": record(
        name=Key(LABEL, required=True),
        description=Key(PROSE),
        constraints=Key(CONSTRAINTS),
        project=_some("projects"),
    ),
    "strategyTypes": record(
        name=Key(NAME, required=True),
        title=Key(PROSE),
        description=Key(PROSE),
        parameters=Key(OBJECTS),
        deprecated=Key(FLAG),
    ),
    "tagTypes": record(
        name=Key(LABEL, required=True),
        description=Key(PROSE),
        icon=Key(PROSE),
        color=Key(PROSE),
    ),
    "features": record(
        name=Key(NAME, required=True),
        project=_some("projects"),
        type=Key(TEXT),
        description=Key(PROSE),
        stale=Key(FLAG),
        impressionData=Key(FLAG),
        archived=Key(FLAG),
        enabled=Key(list_of(TEXT), names="environments"),
    ),
    "strategies": record(
        feature=_named("features"),
        environment=_named("environments"),
        name=_named("strategyTypes"),
        title=Key(PROSE),
        parameters=Key(PARAMETERS),
        constraints=Key(CONSTRAINTS),
        variants=Key(VARIANTS),
        segments=Key(list_of(TEXT), names="segments"),
        disabled=Key(FLAG),
        sortOrder=Key(NUMBER),
    ),
    "users": record(
        name=Key(LABEL, required=True),
        email=Key(TEXT),
        rootRole=Key(one_of(*ROOT_ROLES)),
        projectRoles=Key(list_of(record(project=_named("projects"), role=Key(one_of(*PROJECT_ROLES), required=True)))),
    ),
    "tokens": record(
        secret=Key(SECRET, required=True),
        type=Key(one_of(*TOKEN_KINDS), required=True),
        name=Key(LABEL),
        user=_some("users"),
        environment=_some("environments"),
        projects=Key(list_of(TEXT), names="projects"),
        expiresAt=Key(MOMENT),
    ),
    "changeRequests": record(project=_named("projects"), environment=_named("environments")),
}
"""Section of the file → what each of its entries is. `features[].enabled` lists the environments where the feature is on."""

IDENTITY = dict.fromkeys(SECTIONS, "name") | {
    "projects": "id",
    "tokens": "secret",
    "strategies": "",
    "changeRequests": "",
}
"""Section → the key that tells its entries apart; none where entries may repeat."""

BUILT_IN = {
    "environments": ("development", "production"),
    "projects": ("default",),
    "contextFields": ("appName", "currentTime", "environment", "sessionId", "userId"),
    "strategyTypes": ("default", "flexibleRollout", "remoteAddress", "applicationHostname"),
    "tagTypes": ("simple",),
}
"""Section → what every database holds without a seed file; a file may give it anew."""
