"""The services for tokens of some projects: made when they are first needed, and bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar

from flagsvc.proxy.api.service import Service
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.scopes import ScopedHolder

MAX_SCOPED = 100
"""The most services for tokens of some projects, of all environments. For one more, one that was not used lately ends."""

SCOPED_CACHE_SHARE = 16
"""The cache for the answers to tokens of some projects has this share of the environment's."""


class WholeEnvironment(Protocol):
    """The environment that a service has a part of."""

    @property
    def number(self) -> int:
        """Its number, which no other environment of this process ever has."""

    @property
    def holder(self) -> Holder:
        """The cell of its configuration."""

    @property
    def service(self) -> Service:
        """The service of all of it."""


W = TypeVar("W", bound=WholeEnvironment)


class ScopedService(NamedTuple):
    """A service for some projects, what it answers from, and the service of the whole environment."""

    service: Service
    holder: ScopedHolder
    whole: Service


class ScopedServices(Generic[W]):
    """The services for some projects, by the number of the environment. One that ends is told to `on_end`."""

    def __init__(self, make: Callable[[W, ScopedHolder], Service], on_end: Callable[[Service], object]) -> None:
        self._make = make
        self._on_end = on_end
        self._found: dict[tuple[int, frozenset[str]], ScopedService] = {}

    def __iter__(self) -> Iterator[Service]:
        """Return the services that there are now."""
        return (each.service for each in self._found.values())

    def keep(self, environments: Iterable[WholeEnvironment]) -> None:
        """Forget those of all other environments."""
        numbers = {each.number for each in environments}
        self._found = {key: each for key, each in self._found.items() if key[0] in numbers}

    def find(self, environment: W, projects: frozenset[str]) -> Service:
        """Return the service for some projects of an environment. The first request for them makes it."""
        key = environment.number, projects
        found = self._found.get(key)
        return (found or self._add(key, environment)).service

    def _add(self, key: tuple[int, frozenset[str]], environment: W) -> ScopedService:
        self._make_room()
        holder = ScopedHolder(environment.holder, key[1])
        service = self._make(environment, holder)
        holder.cache = service.sources.cache
        environment.service.sources.cache.add_part(holder.cache)
        made = self._found[key] = ScopedService(service, holder, environment.service)
        return made

    def _make_room(self) -> None:
        """End the oldest service that was not used since the last time that it was the oldest one."""
        while len(self._found) >= MAX_SCOPED:
            key = next(iter(self._found))
            oldest = self._found.pop(key)
            if oldest.holder.is_used:
                oldest.holder.is_used = False
                self._found[key] = oldest
            else:
                oldest.whole.sources.cache.remove_part(oldest.service.sources.cache)
                self._on_end(oldest.service)
