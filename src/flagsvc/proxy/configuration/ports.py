"""The ports of this package: a source of documents, and a function that compiles one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from flagsvc.proxy.upstream import Fetched


class SnapshotLike(Protocol):
    """The part of a compiled configuration that this package uses. It evaluates nothing."""

    @property
    def revision(self) -> str:
        """A digest that is equal for equal configurations."""

    @property
    def names(self) -> Mapping[str, Collection[str]]:
        """The names of the variants of each toggle."""


class ProblemLike(Protocol):
    """A part of a document that was left out, or that is served although a value in it is odd."""

    @property
    def path(self) -> str:
        """The path in the document, for example `features[3].strategies[0]`."""

    @property
    def toggle(self) -> str | None:
        """The toggle's name, if it can be read."""

    @property
    def message(self) -> str:
        """What is wrong."""

    @property
    def served(self) -> bool:
        """Whether the part is served all the same."""


S = TypeVar("S", bound=SnapshotLike)
S_co = TypeVar("S_co", bound=SnapshotLike, covariant=True)


class CompiledLike(Protocol[S_co]):
    """The result of compiling a document."""

    @property
    def snapshot(self) -> S_co:
        """The compiled configuration."""

    @property
    def problems(self) -> Sequence[ProblemLike]:
        """The parts that were left out, and those that are odd."""


Compile = Callable[[object, S | None], CompiledLike[S]]
"""Compiles a decoded document, given the snapshot that it may replace. Raises DocumentError."""


class CompilationLike(Protocol[S_co]):
    """The compilation of one document, which can be done in slices."""

    @property
    def included(self) -> Sequence[object]:
        """The features that pass the filters, as they were in the document. Complete when the compilation is done."""

    @property
    def excluded_count(self) -> int:
        """The number of features that do not pass the filters."""

    def advance(self, budget: int) -> bool:
        """Compile about `budget` bytes of new features; return whether the compilation is done.

        Raises DocumentError, or `engine.source.Unusual` if the document must be decoded as a whole first.
        """

    def close(self) -> None:
        """Release what there is of a compilation that is given up."""

    def compiled(self) -> CompiledLike[S_co]:
        """Return the result, once the compilation is done."""


@runtime_checkable
class Incremental(Protocol[S]):
    """A `Compile` that can work in slices, and reuses the unchanged parts of the snapshot before."""

    def begin(self, document: object, previous: S | None) -> CompilationLike[S]:
        """Start with a decoded document. Raises DocumentError."""

    def begin_text(self, text: bytes, previous: S | None) -> CompilationLike[S] | None:
        """Start with the JSON of a document, and decode only what changed. Returns None if it must be decoded as a whole."""


class Source(Protocol):
    """A source of configuration documents. `flagsvc.testing.FakeSource` is the public fake."""

    @property
    def pace(self) -> float | None:
        """Seconds between two fetches, if a fetch costs almost nothing; None for the refresh interval."""

    async def fetch(self, etag: str | None) -> Fetched:
        """Return the document, or that the one with `etag` is still current. Raises UpstreamError."""


@runtime_checkable
class Announcing(Protocol):
    """A source that is notified of new documents, so that the poller need not wait for its next poll."""

    async def news(self) -> None:
        """Wait until there may be a document newer than the last fetch. Returns immediately if that is already so.

        The poller cancels it when the result is no longer needed. After an error the poller waits for the next regular poll.
        """
