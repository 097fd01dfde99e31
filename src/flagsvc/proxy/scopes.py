"""The part of an environment that a token for some projects opens: its toggles, and its configuration document."""

from __future__ import annotations

import hashlib

from flagsvc.engine.fragments import encode
from flagsvc.engine.projects import restrict
from flagsvc.engine.snapshot import Snapshot
from flagsvc.proxy.api.cache import AnswerCache
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
        self._whole = whole
        self._projects = projects
        self._source: Snapshot | None = None
        self._snapshot: Snapshot | None = None
        self._whole_document: ConfigurationDocument | None = None
        self._document: ConfigurationDocument | None = None
        self.cache: AnswerCache | None = None
        self.is_used = False
        whole.parts.add(self)

    def follow(self) -> None:
        """Keep nothing of a configuration that is no longer served. The memory is released in slices."""
        if self._source is not self._whole.current:
            retire(self._snapshot)
            self._source = self._snapshot = None
            if self.cache is not None:
                self.cache.clear()
        if self._whole_document is not self._whole.document:
            self._whole_document = self._document = None

    @property
    def current(self) -> Snapshot | None:
        """The snapshot to answer from; None until there is a configuration."""
        self.is_used = True
        source = self._whole.current
        if source is not self._source:
            self._source = source
            self._snapshot = None if source is None else restrict(source, self._projects)
        return self._snapshot

    @property
    def document(self) -> ConfigurationDocument | None:
        """The document of that snapshot."""
        whole = self._whole.document
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
                body = encode({**kept, "query": {**document["query"], "project": sorted(self._projects)}})
        return ConfigurationDocument(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')

    def _is_included(self, feature: object) -> bool:
        """Return whether a feature belongs to the projects. One without a project belongs to all."""
        project = feature.get("project") if isinstance(feature, dict) else None
        return not isinstance(project, str) or project in self._projects

    @property
    def last_fetch_ms(self) -> float:
        """As in the whole environment."""
        return self._whole.last_fetch_ms

    @property
    def last_update_ms(self) -> float:
        """As in the whole environment."""
        return self._whole.last_update_ms

    @property
    def state(self) -> str:
        """As in the whole environment."""
        return self._whole.state

    @property
    def problems(self) -> int:
        """As in the whole environment."""
        return self._whole.problems

    @property
    def odd(self) -> int:
        """As in the whole environment."""
        return self._whole.odd

    @property
    def checked_at(self) -> float | None:
        """As in the whole environment."""
        return self._whole.checked_at

    @property
    def failures(self) -> int:
        """As in the whole environment."""
        return self._whole.failures

    @property
    def event_counts(self) -> dict[str, int]:
        """As in the whole environment."""
        return self._whole.event_counts
