"""The keys of a seed file, as a table: one row a key, read by the check and by whoever documents the file (import validation)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from flagsvc.engine.operators import OPERATORS
from flagsvc.server.store.checks import LONGEST_NAME, name_problem
from flagsvc.server.store.texts import length

TOKEN_KINDS = ("admin", "backend", "frontend", "personal")
ROOT_ROLES = ("admin", "editor", "viewer")
PROJECT_ROLES = ("owner", "member")
LONGEST_LABEL = 255
"""UTF-16 code units of a name that is part of no path: a database's index takes only so much."""


@dataclass(frozen=True)
class SeedValueKind:
    """What a value may be: words for people, and the test. A list has `items`, an object `keys`."""

    expected: str
    fits: Callable[[Any], bool]
    items: SeedValueKind | None = None
    keys: Mapping[str, SeedKey] | None = None


@dataclass(frozen=True)
class SeedKey:
    """A key of an object. `names` is the section that has to hold what the value names."""

    kind: SeedValueKind
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


def one_of(*words: str) -> SeedValueKind:
    """Return the kind of one of some words."""
    return SeedValueKind(f"one of {', '.join(words)}", lambda value: value in words)


def list_of(items: SeedValueKind) -> SeedValueKind:
    """Return the kind of a list."""
    return SeedValueKind("a list", lambda value: isinstance(value, list), items=items)


def record(**keys: SeedKey) -> SeedValueKind:
    """Return the kind of an object with these keys and no others."""
    return SeedValueKind("an object", lambda value: isinstance(value, dict), keys=keys)


TEXT = SeedValueKind("a text that is not empty", _is_text)
PROSE = SeedValueKind("a text", _is_prose)
FLAG = SeedValueKind("true or false", lambda value: isinstance(value, bool))
NAME = SeedValueKind(f"a text that is not empty, URL-friendly and has at most {LONGEST_NAME} characters", _is_name)
LABEL = SeedValueKind(f"a text that is not empty and has at most {LONGEST_LABEL} characters", _is_label)
SECRET = SeedValueKind(
    "a secret that a header can carry: printable ASCII without blanks around it or `Bearer` before it", _is_secret
)
WHOLE = SeedValueKind("a whole number", _is_whole)
COUNT = SeedValueKind("a whole number from 0 up to 2147483647", _is_count)
NUMBER = SeedValueKind("a number", _is_number)
MOMENT = SeedValueKind("a date-time, such as 2030-01-31T12:00:00Z", _is_moment)
OBJECT = SeedValueKind("an object", lambda value: isinstance(value, dict))
OBJECTS = list_of(OBJECT)
PARAMETERS = SeedValueKind("an object of texts", _are_texts)


def _named(section: str) -> SeedKey:
    return SeedKey(TEXT, required=True, names=section)


def _some(section: str) -> SeedKey:
    return SeedKey(TEXT, names=section)


VARIANTS = list_of(
    record(
        name=SeedKey(TEXT, required=True),
        weight=SeedKey(NUMBER, required=True),
        weightType=SeedKey(one_of("variable", "fix")),
        stickiness=SeedKey(TEXT),
        payload=SeedKey(OBJECT),
        overrides=SeedKey(OBJECTS),
    )
)
CONSTRAINTS = list_of(
    record(
        contextName=SeedKey(TEXT, required=True),
        operator=SeedKey(one_of(*OPERATORS), required=True),
        values=SeedKey(list_of(PROSE)),
        value=SeedKey(PROSE),
        inverted=SeedKey(FLAG),
        caseInsensitive=SeedKey(FLAG),
    )
)
LEGAL_VALUES = list_of(record(value=SeedKey(TEXT, required=True), description=SeedKey(PROSE)))
NAMING = record(pattern=SeedKey(PROSE), example=SeedKey(PROSE), description=SeedKey(PROSE))

SECTIONS: dict[str, SeedValueKind] = {
    "environments": record(
        name=SeedKey(LABEL, required=True),
        type=SeedKey(TEXT),
        sortOrder=SeedKey(WHOLE),
        enabled=SeedKey(FLAG),
        protected=SeedKey(FLAG),
    ),
    "projects": record(
        id=SeedKey(LABEL, required=True),
        name=SeedKey(LABEL),
        description=SeedKey(PROSE),
        environments=SeedKey(list_of(TEXT), names="environments"),
        archived=SeedKey(FLAG),
        mode=SeedKey(one_of("open", "protected", "private")),
        defaultStickiness=SeedKey(TEXT),
        featureLimit=SeedKey(COUNT),
        featureNaming=SeedKey(NAMING),
    ),
    "contextFields": record(
        name=SeedKey(NAME, required=True),
        description=SeedKey(PROSE),
        stickiness=SeedKey(FLAG),
        sortOrder=SeedKey(WHOLE),
        legalValues=SeedKey(LEGAL_VALUES),
        project=_some("projects"),
    ),
    "segments": record(
        name=SeedKey(LABEL, required=True),
        description=SeedKey(PROSE),
        constraints=SeedKey(CONSTRAINTS),
        project=_some("projects"),
    ),
    "strategyTypes": record(
        name=SeedKey(NAME, required=True),
        title=SeedKey(PROSE),
        description=SeedKey(PROSE),
        parameters=SeedKey(OBJECTS),
        deprecated=SeedKey(FLAG),
    ),
    "tagTypes": record(
        name=SeedKey(LABEL, required=True),
        description=SeedKey(PROSE),
        icon=SeedKey(PROSE),
        color=SeedKey(PROSE),
    ),
    "features": record(
        name=SeedKey(NAME, required=True),
        project=_some("projects"),
        type=SeedKey(TEXT),
        description=SeedKey(PROSE),
        stale=SeedKey(FLAG),
        impressionData=SeedKey(FLAG),
        archived=SeedKey(FLAG),
        enabled=SeedKey(list_of(TEXT), names="environments"),
    ),
    "strategies": record(
        feature=_named("features"),
        environment=_named("environments"),
        name=_named("strategyTypes"),
        title=SeedKey(PROSE),
        parameters=SeedKey(PARAMETERS),
        constraints=SeedKey(CONSTRAINTS),
        variants=SeedKey(VARIANTS),
        segments=SeedKey(list_of(TEXT), names="segments"),
        disabled=SeedKey(FLAG),
        sortOrder=SeedKey(NUMBER),
    ),
    "users": record(
        name=SeedKey(LABEL, required=True),
        email=SeedKey(TEXT),
        rootRole=SeedKey(one_of(*ROOT_ROLES)),
        projectRoles=SeedKey(
            list_of(record(project=_named("projects"), role=SeedKey(one_of(*PROJECT_ROLES), required=True)))
        ),
    ),
    "tokens": record(
        secret=SeedKey(SECRET, required=True),
        type=SeedKey(one_of(*TOKEN_KINDS), required=True),
        name=SeedKey(LABEL),
        user=_some("users"),
        environment=_some("environments"),
        projects=SeedKey(list_of(TEXT), names="projects"),
        expiresAt=SeedKey(MOMENT),
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
