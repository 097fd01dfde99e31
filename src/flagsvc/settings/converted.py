"""The types of options that accept more types in code than they hold. For example, a list of texts may be given as one text.

Type checkers and editors read them; the kind of the option converts the value.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar, overload

from flagsvc.settings.network import Origin, TrustProxy
from flagsvc.settings.roles import GroupRoles

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
