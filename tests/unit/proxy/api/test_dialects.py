"""The table of routes: its rows, and dialects beside each other, in their order, also with answers of another shape.

`tests/wire` has what each dialect says.
"""

from __future__ import annotations

import pytest

from flagsvc.engine.context import Context
from flagsvc.engine.fragments import PLAIN, AnswerShape
from flagsvc.http.messages import Headers
from flagsvc.proxy.api.dialects import ROUTES
from flagsvc.proxy.api.route import Auth, Limit
from support.serving import FakeSnapshot, Serving


class ShapedSnapshot(FakeSnapshot):
    """A snapshot whose answers have the name of their shape."""

    def enabled(self, context: Context, shape: AnswerShape = PLAIN) -> bytes:
        return super().enabled(context) + shape.name


def test_the_rows_of_the_dialects_stand_before_the_operations() -> None:
    """The first page is the first row, then come the dialects in their order."""
    paths = [row.path for row in ROUTES]
    assert paths[0] == "/"
    assert paths.index("/proxy") < paths.index("/api/frontend") < paths.index("/api/client/features") < paths.index("/proxy/health")


def test_a_method_of_a_path_is_one_row() -> None:
    """No row hides another."""
    places = [(row.path, row.method) for row in ROUTES]
    assert len(places) == len(set(places))


def test_a_row_that_reads_a_body_has_a_limit() -> None:
    """Only a row with a body has a limit."""
    assert all(bool(row.body) == (row.limit is not Limit.NONE) == (row.method == "POST") for row in ROUTES)


def test_everything_under_proxy_that_answers_with_flags_needs_a_key() -> None:
    """Health, liveness, metrics and documentation are open, the rest is not."""
    assert {row.path for row in ROUTES if row.auth is Auth.NONE and row.path.startswith("/proxy")} == {
        "/proxy/health",
        "/proxy/live",
        "/proxy/live.js",
        "/proxy/ready",
        "/proxy/internal-backstage/prometheus",
    }


@pytest.mark.parametrize("condition", [None, b"*"])
def test_answers_of_another_shape_are_kept_apart(condition: bytes | None) -> None:
    """The cache and the entity tags tell the shapes of two dialects apart, for the same context."""
    serving = Serving(ShapedSnapshot())
    headers: Headers = [] if condition is None else [(b"if-none-match", condition)]
    found = [serving.ask(b"GET", path, b"userId=anna", headers) for _ in range(3) for path in (b"/proxy", b"/api/frontend")]
    bodies = {(answer.body, dict(answer.own)[b"etag"]) for answer in found}
    assert len(bodies) == 2
    if condition is None:
        assert {body for body, _ in bodies} == {b'{"toggles":[]}', b'{"toggles":[]}f'}
        assert len(serving.snapshot.contexts) == 4, "the third requests are answered from the cache"
