"""The part of an environment that a token for some projects opens: its toggles, and its configuration document."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar

from flagsvc.engine.fragments import encode
from flagsvc.engine.projects import restrict
from flagsvc.engine.snapshot import Snapshot
from flagsvc.proxy.api.cache import AnswerCache
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.configuration import Holder
from flagsvc.proxy.configuration.holder import ConfigurationDocument
from flagsvc.proxy.configuration.prepare import decode, filter_features
from flagsvc.proxy.configuration.retire import retire


class ScopedHolder:
    """The holder of an environment without the toggles of other projects. It follows the environment's.

    The first request after a change makes the part. Nothing of the former configuration is kept until then: a part keeps all of it
    alive. `cache` has the answers from this part. `is_used` tells that there was a request since someone has set it to False.
    """

    def __init__(self, whole: Holder, projects: frozenset[str]) -> None:
        self.whole = whole
        self.projects = projects
        self._source: Snapshot | None = None
        self._snapshot: Snapshot | None = None
        self._whole_document: ConfigurationDocument | None = None
        self._document: ConfigurationDocument | None = None
        self.cache: AnswerCache | None = None
        self.is_used = False
        whole.parts.add(self)

    def follow(self) -> None:
        """Keep nothing of a configuration that is no longer served. The memory is released in slices."""
        if self._source is not self.whole.current:
            retire(self._snapshot)
            self._source = self._snapshot = None
            if self.cache is not None:
                self.cache.clear()
        if self._whole_document is not self.whole.document:
            self._whole_document = self._document = None

    @property
    def current(self) -> Snapshot | None:
        self.is_used = True
        source = self.whole.current
        if source is not self._source:
            self._source = source
            self._snapshot = None if source is None else restrict(source, self.projects)
        return self._snapshot

    @property
    def document(self) -> ConfigurationDocument | None:
        whole = self.whole.document
        if whole is not self._whole_document:
            self._whole_document = whole
            self._document = None if whole is None else self._filter(whole)
        return self._document

    def _filter(self, whole: ConfigurationDocument) -> ConfigurationDocument:
        document = decode(whole.body)
        body = filter_features(whole.body, document, self._is_included)
        if isinstance(document, dict) and body is not whole.body and isinstance(document.get("query"), dict):
            kept = decode(body)
            if isinstance(kept, dict):
                body = encode({**kept, "query": {**document["query"], "project": sorted(self.projects)}})
        return ConfigurationDocument(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')

    def _is_included(self, feature: object) -> bool:
        """Return whether a feature belongs to the projects. One without a project belongs to all."""
        project = feature.get("project") if isinstance(feature, dict) else None
        return not isinstance(project, str) or project in self.projects


MAX_SCOPED = 100
"""The most services for tokens of some projects, of all environments. For one more service, a service that was not used lately
ends."""

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
