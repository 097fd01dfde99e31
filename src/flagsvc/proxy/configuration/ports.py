"""What the repository asks of its neighbours: a source of documents, and a function that compiles one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from flagsvc.proxy.upstream import Fetched


class SnapshotLike(Protocol):
    """What the repository looks at in a compiled configuration; it never evaluates one."""

    @property
    def revision(self) -> str:
        """A digest, equal for equal configurations."""

    @property
    def names(self) -> Mapping[str, Collection[str]]:
        """The names of the variants of each toggle."""


class ProblemLike(Protocol):
    """One part of a document that was malformed and left out."""

    @property
    def path(self) -> str:
        """The spot, for example `features[3].strategies[0]`."""

    @property
    def toggle(self) -> str | None:
        """The toggle's name, if that much can be read."""

    @property
    def message(self) -> str:
        """What is wrong."""


S = TypeVar("S", bound=SnapshotLike)
S_co = TypeVar("S_co", bound=SnapshotLike, covariant=True)


class CompiledLike(Protocol[S_co]):
    """What compiling gives."""

    @property
    def snapshot(self) -> S_co:
        """The compiled configuration."""

    @property
    def problems(self) -> Sequence[ProblemLike]:
        """What was left out of it."""


Compile = Callable[[object, S | None], CompiledLike[S]]
"""From a decoded document, and the snapshot it may replace, to what compiling gives; raises DocumentError."""


class CompilationLike(Protocol[S_co]):
    """The compiling of one document, some of the work at a time."""

    @property
    def kept(self) -> Sequence[object]:
        """The features that the filters leave in, as they came, once everything is done."""

    @property
    def left_out(self) -> int:
        """How many features the filters leave out."""

    def advance(self, budget: int) -> bool:
        """Do work worth about `budget` bytes of new features; return whether everything is done.

        Raises DocumentError, or `engine.source.Unusual` where the document must be decoded as a whole first.
        """

    def compiled(self) -> CompiledLike[S_co]:
        """Return what compiling gives, once everything is done."""


@runtime_checkable
class Incremental(Protocol[S]):
    """A `Compile` that can work some at a time, and takes over what did not change."""

    def begin(self, document: object, previous: S | None) -> CompilationLike[S]:
        """Begin with a decoded document. Raises DocumentError."""

    def begin_text(self, text: bytes, previous: S | None) -> CompilationLike[S] | None:
        """Begin with the JSON of a document, to decode only what changed; None where it must be decoded as a whole."""


class Source(Protocol):
    """Where configuration documents come from. One of ours, or one of a test's (`flagsvc.testing.FakeSource`)."""

    @property
    def pace(self) -> float | None:
        """Seconds between two fetches where asking costs next to nothing; None: the refresh interval."""

    async def fetch(self, etag: str | None) -> Fetched:
        """Return the document, or that the one of `etag` is still current. Raises UpstreamError."""


@runtime_checkable
class Announcing(Protocol):
    """A source that hears of a new document by itself, and need not wait to be asked."""

    async def news(self) -> None:
        """Return when there is something that the last fetch did not bring, also where that was so before the call.

        It is cancelled when its answer is no longer needed. What it raises is taken for no news until the next fetch.
        """
