"""The place and the rule of a violation, the item of an error body for it, and the error (import validation 3).

Not compiled: a compiled class must not have an uncompiled base.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from flagsvc.core.errors import FlagsvcError
from flagsvc.http.shapes.text import ABSENT, as_string, to_json

Kind: TypeAlias = Literal["missing", "extra", "enum", "one of", "rule"]
Detail: TypeAlias = dict[str, str]


@dataclass
class Fault:
    """One violation. `keys` are the steps to it, innermost first. `text` is the rule, or the name that is missing or extra."""

    kind: Kind
    text: str
    allowed: tuple[str, ...] = ()
    keys: list[str | int] = field(default_factory=list)


class Violation(Exception):  # noqa: N818 - it never leaves this room; what callers see is ShapeError
    """Raised for a value that does not fit its shape. Each container adds a step to its path.

    `value` is the broken value as far as it was coerced. The container replaces its member with it.
    """

    def __init__(self, faults: list[Fault], value: object) -> None:
        self.faults = faults
        self.value = value
        self.placed = False
        super().__init__(faults[0].text)

    def under(self, key: str | int) -> None:
        """Add one step to the path."""
        for fault in self.faults:
            fault.keys.append(key)
        self.placed = True


def broken(rule: str, value: object) -> Violation:
    """Return the violation of a rule of the form `must be …`, with the value as far as it was coerced."""
    return Violation([Fault("rule", rule)], value)


def detail(fault: Fault, place: str, root: object) -> Detail:
    """Return the error item of a fault in the value `root` at `place`. The messages are the texts of the wire."""
    path = pointer(fault, place)
    if fault.kind == "missing":
        return missing(path, fault.text)
    if fault.kind == "extra":
        return extra(path, fault.text)
    if fault.kind == "one of":
        return several(path, fault.text)
    shown = sent(path, place, root)
    return choice(path, fault, shown) if fault.kind == "enum" else broken_rule(path, fault.text, shown)


def pointer(fault: Fault, place: str) -> str:
    """Return the JSON pointer of a fault in a value at `place`."""
    return place + "".join([f"/{escaped(key)}" for key in reversed(fault.keys)])


def rule(fault: Fault) -> str:
    if fault.kind == "missing":
        return f"must have required property '{fault.text}'"
    return "must NOT have additional properties" if fault.kind == "extra" else fault.text


def missing(path: str, name: str) -> Detail:
    """Return the error item for a missing property."""
    full = joined(path, name)
    message = f"The `{full}` property is required. It was not present on the data you sent."
    return {"path": full, "message": message}


def extra(path: str, name: str) -> Detail:
    """Return the error item for an extra property."""
    full = joined(path, name)
    where = f"`{path}`" if path else "root"
    return {
        "path": full,
        "message": f"The {where} object of the request body does not allow additional properties. "
        f"Your request included the `{full}` property.",
    }


def choice(path: str, fault: Fault, shown: object) -> Detail:
    """Return the error item for a value that is not among those allowed.

    Its path is only the last part, and its text ends with two dots.
    """
    name = path.rpartition("/")[2]
    allowed = ", ".join(f'"{value}"' for value in fault.allowed)
    message = (
        f"The `{name}` property {fault.text}: {allowed}. "
        f'You provided "{as_string(shown)}", which is not valid. Please use one of the allowed values instead..'
    )
    return {"message": message, "path": name}


def several(path: str, rule: str) -> Detail:
    """Return the error item for a value that fits no alternative, or more than one. The text is the same for both."""
    where = f'"{path}" property' if path else "root object"
    message = (
        f"The {where} {rule}. The data you provided matches more than one option in the schema. "
        "These options are mutually exclusive. Please refer back to the schema and remove any excess properties."
    )
    return {"message": message, "path": path}


def broken_rule(path: str, rule: str, shown: object) -> Detail:
    """Return the error item for any other rule."""
    return {"message": f"The `{path}` property {rule}. You sent {to_json(shown)}.", "path": path}


def joined(path: str, name: str) -> str:
    """Return the path of a member. An empty part adds no slash."""
    return "/".join(part for part in (path, name) if part)


def escaped(key: str | int) -> str:
    """Return a key as a step of a JSON pointer."""
    return str(key).replace("~", "~0").replace("/", "~1")


def sent(path: str, place: str, root: object) -> object:
    """Return the value at a path, as the real server resolves it: without unescaping, and an empty step leads nowhere."""
    value = root
    for step in filter(None, path[len(place) :].split("/")):
        if isinstance(value, dict):
            value = value.get(step, ABSENT)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return ABSENT
    return value


PREFIX: Final = "request body is not of the shape asked for"


class ShapeError(FlagsvcError):
    """A value does not fit its shape. `faults` has the first violation of `root`, which is at `place`.

    For AnyOf it has a violation of each alternative. The texts are made only when they are needed, because the value may be
    large.
    """

    def __init__(self, faults: list[Fault], place: str, root: object) -> None:
        super().__init__(PREFIX)
        self.faults = faults
        self.place = place
        self.root = root

    @property
    def details(self) -> list[Detail]:
        """The items of an error body of the flag server."""
        return [detail(fault, self.place, self.root) for fault in self.faults]

    @property
    def problem(self) -> tuple[str, str]:
        """The first violation in the form of JSON validators: a JSON pointer and a rule."""
        fault = self.faults[0]
        return pointer(fault, self.place), rule(fault)

    def __str__(self) -> str:
        return f"{PREFIX}: {self.details[0]['message']}"
