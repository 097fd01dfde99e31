"""The base class of the options of both programs. It makes a frozen object from rows, and reports every problem at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import Field, FrozenInstanceError, dataclass, fields
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    NoReturn,
    Self,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    overload,
)

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.kinds import ask_for, is_blank, nearest_name
from flagsvc.settings.network import Origin, TrustProxy
from flagsvc.settings.normalise import CODE, Given, normalise
from flagsvc.settings.option import Option, Section, option
from flagsvc.settings.roles import GroupRoles


def rows_of(options: type[Options]) -> tuple[Option, ...]:
    """Return the rows of a class of options and of its base classes, in their order."""
    return tuple(row for each in options.__mro__ for row in vars(each).values() if isinstance(row, Option))


class Entries(NamedTuple):
    """What was given in code by option name, a problem for each unknown name, and the options that such names probably mean."""

    given: dict[str, Given]
    problems: list[str]
    meant: set[str]


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(option,))
class Options:
    """A set of options: each class attribute made by `option()` is one, and a field of the frozen dataclass.

    In code an option takes a text or a native value; None, or a text of blanks, stands for its default. Raises
    `ConfigurationError` with every problem at once.
    """

    section: ClassVar[Section]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        """Make the class a dataclass, so that `dataclasses.replace` and `fields` work. This class defines the other methods."""
        super().__init_subclass__()
        dataclass(init=False, repr=False, eq=False, match_args=False)(cls)

    def __init__(self, /, **given: object) -> None:
        rows = rows_of(type(self))
        entries = self._entries(given)
        divided = self._divide(given, entries)
        found = normalise(entries.given, os.environ, rows, in_code=True, divided=bool(divided), lost=entries.meant)
        problems = [*entries.problems, *found.problems.values()]
        if problems:
            del given, entries, found  # secrets are among them, and a traceback keeps what its frames hold
            raise ConfigurationError(problems)
        for text in found.deprecations:
            _warn(text)
        self._keep({**found.values, "environments": divided})

    @classmethod
    def _divide(cls, given: Mapping[str, object], entries: Entries) -> tuple[Any, ...]:
        """Return the environments that have options of their own, and add their problems: here there are none."""
        return ()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the options with these values, by option name. The values must be valid and normalised."""
        made = cls.__new__(cls)
        made._keep(values)
        return made

    @classmethod
    def _entries(cls, given: Mapping[str, object]) -> Entries:
        """Return what was given in code by option name, and a problem for each name that no option has."""
        rows = {row.field: row for row in rows_of(cls)}
        found = Entries({}, [], set())
        for field, value in given.items():
            if value is None:
                continue
            if field not in rows:
                near = nearest_name(field, list(cls.__dataclass_fields__))
                found.problems.append(f"unknown option `{field}`; {ask_for(near)}".removesuffix("; "))
                found.meant.update(rows[near].name for near in [near] if near in rows)
            elif not is_blank(value):
                found.given[rows[field].name] = Given(value, CODE)
        return found

    def _keep(self, values: Mapping[str, Any]) -> None:
        """Store normalised values, given by option name."""
        vars(self).update({row.field: values[row.name] for row in rows_of(type(self))})

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, field.name) for field in fields(self)))

    def __repr__(self) -> str:
        """Return the options that are not at their defaults, secrets masked."""
        values = ((row, getattr(self, row.field)) for row in rows_of(type(self)))
        shown = (f"{row.field}={row.masked(value)!r}" for row, value in values if value != row.default_for(os.environ))
        return f"{type(self).__name__}({', '.join(shown)})"


def _warn(text: str) -> None:
    """Raise a DeprecationWarning at the line that made the options."""
    from warnings import warn

    warn(text, DeprecationWarning, stacklevel=3)


Held_co = TypeVar("Held_co", covariant=True)
Given_contra = TypeVar("Given_contra", contravariant=True)


class Converted(Generic[Held_co, Given_contra]):
    """The type of an option that accepts the second type in code and holds the first. No value is an instance of it."""

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: object) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: object) -> Held_co: ...
        def __get__(self, instance: object, owner: object) -> object: ...
        def __set__(self, instance: object, value: Given_contra) -> None: ...


Texts: TypeAlias = Converted[tuple[str, ...], str | Iterable[str]]
"""A list of texts, or one text with commas between."""
Size: TypeAlias = Converted[int, int | str]
"""A number of bytes, or a text with a unit."""
Place: TypeAlias = Converted[str, str | os.PathLike[str]]
"""A URL, or the path of a folder."""
Files: TypeAlias = Converted[tuple[Any, ...], str | os.PathLike[str] | Iterable[object]]
"""Paths of Python files, or objects in their place."""
Tags: TypeAlias = Converted[tuple[tuple[str, str], ...], str | Mapping[str, str] | Iterable[str | tuple[str, str]]]
"""Names and values of tags."""
Headers: TypeAlias = Tags
"""Names and values of headers."""
Bootstrap: TypeAlias = Converted[None, str | Mapping[str, object] | None]
"""A URL, or a mapping with a URL and headers."""
Trusted: TypeAlias = Converted[TrustProxy, bool | str | Iterable[str]]
"""Whose X-Forwarded-* headers count, in code."""
Origins: TypeAlias = Converted[Origin, str | Iterable[str]]
"""Allowed origins, in code."""
Roles: TypeAlias = Converted[GroupRoles, str | Mapping[str, object] | Iterable[str | tuple[str, str]]]
"""Groups and the roles that they give, in code."""
