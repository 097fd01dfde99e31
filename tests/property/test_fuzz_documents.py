"""The proxy continues after any document of the upstream (behaviour: Documents that are not accepted; Evaluation)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from flagsvc.core.errors import DocumentError
from flagsvc.engine.compile import CompileOptions, compile_document
from fuzzing.documents import EDGES, KINDS, ROWS, assert_bystanders, assert_evaluates, polled, with_edge
from fuzzing.rows import Row, no_hang, run
from fuzzing.upstreams import ROWS as UPSTREAM_ROWS

DEEP = {
    "a payload": '"strategies":[],"variants":[{"name":"a","weight":1,"payload":{"type":"json","value":%s}}]',
    "a parameter": '"strategies":[{"name":"default","parameters":{"a":%s}}]',
    "an unknown part": '"strategies":[],"x":%s',
}
"""Where a document is nested deeply → a feature with that place open."""


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """An event loop."""
    with asyncio.Runner() as running:
        yield running


@pytest.mark.parametrize("row", [*ROWS, *UPSTREAM_ROWS], ids=str)
def test_any_document_is_survived(runner: asyncio.Runner, row: Row[asyncio.Runner]) -> None:
    """A bad document never replaces a good one, a bad toggle harms only itself, and evaluation never raises.

    An answer of the upstream or a stored record becomes a document, or an error that the poller handles.
    """
    run(row, runner)


@pytest.mark.parametrize("kind", list(KINDS), ids=".".join)
def test_every_edge_at_every_kind_of_place(kind: tuple[str, ...]) -> None:
    """No value in any part of a document makes compiling, evaluating or explaining raise, or changes another toggle."""
    for edge in EDGES:
        document = with_edge(kind, edge)
        if not isinstance(document["features"], list) or not isinstance(document["segments"], list | None):
            with pytest.raises(DocumentError):
                compile_document(document, CompileOptions())
            continue
        with no_hang():
            for options in (CompileOptions(), CompileOptions(hash_encoding="utf8", fold=False)):
                snapshot = compile_document(document, options).snapshot
                assert_evaluates(snapshot)
                if kind != ("features",):
                    assert_bystanders(snapshot)


@pytest.mark.parametrize("place", list(DEEP))
def test_nesting_of_any_depth(runner: asyncio.Runner, place: str) -> None:
    """A document is used or refused: the poller does not fail where decoding it just works and encoding it again does not."""
    for depth in (1, *range(900, 1010, 3 if place != "a payload" else 1), 3_000, 100_000):
        feature = DEEP[place] % ("[" * depth + "]" * depth)
        body = '{"version":2,"features":[{"name":"deep","enabled":true,%s},{"name":"other","enabled":true,"strategies":[]}]}'
        world = runner.run(polled((body % feature).encode()))
        assert world.holder.current is not None
        assert set(world.holder.current.names) in ({"deep", "other"}, {"other"}, {"good"}), depth
    assert list(world.holder.current.names) == ["good"], "the deepest cannot be read"  # type: ignore[union-attr]
