"""The two functions a transport calls. Putting the contract together from the rows."""

from __future__ import annotations

from collections.abc import Awaitable
from random import Random
from typing import Any

import pytest

from flagsvc.core.tracing import Tracer
from flagsvc.engine.context import Context
from flagsvc.http.call import Call
from flagsvc.http.messages import Response
from support.serving import EMPTY, Serving, request


def test_an_admitted_call_says_how_much_to_read() -> None:
    """Nothing for a GET and for a POST without a body, else the limit."""
    service = Serving(body_limit=77).service
    body = [(b"content-length", b"5")]
    for method, headers, limit in ((b"GET", body, 0), (b"POST", None, 0), (b"POST", body, 77)):
        admitted = service.admit(request(method, b"/proxy", headers=headers))
        assert isinstance(admitted, Call)
        assert admitted.limit == limit


def test_fixed_headers_are_shared_and_not_changed() -> None:
    """A transport may keep the encoded form of `fixed` by its identity."""
    serving = Serving(cors_origin=("https://a.example",))
    first = serving.ask(b"GET", b"/proxy", headers=[(b"origin", b"https://a.example")])
    before = list(first.fixed)
    second = serving.ask(b"HEAD", b"/proxy", b"userId=1")
    assert first.fixed is second.fixed
    assert second.fixed == before
    assert first.own is not second.own


def test_answers_are_counted_by_endpoint() -> None:
    """Each answer once, wherever it came from."""
    serving = Serving()
    serving.ask(b"GET", b"/proxy")
    serving.ask(b"GET", b"/proxy", b"properties=x")
    serving.ask(b"GET", b"/proxy/all")
    serving.ask(b"GET", b"/nowhere")
    serving.ask(b"OPTIONS", b"/proxy")
    endpoints = [serving.service.resources[path].endpoints[b"GET"] for path in (b"/proxy", b"/proxy/all")]
    assert [each.counts.statuses for each in endpoints] == [{200: 1, 400: 1}, {501: 1}]
    assert serving.service.rest[b"GET"].statuses == {404: 1}
    assert serving.service.preflights.statuses == {204: 1}


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [(b"GET", b"/proxy", "GET /proxy"), (b"OPTIONS", b"/proxy/one", "OPTIONS"), (b"GET", b"/nowhere", "GET")],
)
def test_the_span_of_a_request_is_named_by_its_route(method: bytes, path: bytes, name: str) -> None:
    """No path of a caller is in a name: preflights and unknown paths have none."""
    service = Serving().service
    call = Call(request(method, path))
    call.read(service.headers)
    call.span = Tracer(Random(1), 1.0, follows_parent=True, room=1, batch=1, on_batch=lambda: None).begin("HTTP")
    admitted = service.check_head(call)
    if isinstance(admitted, Call):
        service.answer(admitted, b"")
    assert call.span is not None and call.span.name == name


@pytest.mark.parametrize(("current", "status"), [(..., 200), (None, 503), (object(), 500)], ids=["same", "gone", "broken"])
async def test_a_configuration_that_an_enricher_finds_and_leaves(current: Any, status: int) -> None:
    """With an enricher the answer is an awaitable. What happens to the configuration meanwhile is answered as at any time."""

    async def enrich(context: Context) -> Context:
        if current is not ...:
            serving.holder.current = current
        return context

    serving = Serving(enrichers=(enrich,))
    assert serving.ask(b"GET", b"/proxy/health").status == 200, "at once"
    admitted = serving.service.admit(request(b"GET", b"/proxy"))
    assert isinstance(admitted, Call)
    pending = serving.service.answer(admitted, b"")
    assert isinstance(pending, Awaitable)
    answer = await pending
    assert answer.status == status and (answer.body == EMPTY) is (status == 200)
    assert serving.log.at("error") == ["an unexpected error"] * (status == 500)


def test_an_exception_in_admit_is_a_500() -> None:
    """A head that makes a check raise is answered with 500. The log does not have its text."""
    serving = Serving()
    bad = request(b"GET", b"/proxy")
    bad.headers.append((b"authorization", 5))  # type: ignore[arg-type]
    answer = serving.service.admit(bad)
    assert isinstance(answer, Response)
    assert answer.status == 500
    assert serving.log.at("error") == ["an unexpected error"]


def test_a_call_without_an_endpoint_is_404() -> None:
    """A transport that hands over a call it did not get from `admit` gets an answer too."""
    answer = Serving().service.answer(Call(request(b"GET", b"/proxy")), b"")
    assert isinstance(answer, Response)
    assert answer.status == 404


@pytest.mark.parametrize(
    ("method", "path", "length", "close"),
    [
        (b"GET", b"/proxy", b"9999999", False),
        (b"GET", b"/proxy", b"10000000", True),
        (b"POST", b"/proxy", b"2", False),
        (b"POST", b"/proxy", b"9999999", False),
        (b"POST", b"/proxy", b"10000000", True),
        (b"POST", b"/nowhere", b"10000000", True),
        (b"OPTIONS", b"/proxy", b"10000000", True),
    ],
)
def test_a_huge_body_that_nobody_reads_ends_the_connection(method: bytes, path: bytes, length: bytes, close: bool) -> None:
    """A smaller one is discarded by the transport, so that its sender gets to see the answer and may go on."""
    answer = Serving().ask(method, path, headers=[(b"content-length", length)], body=b"{}")
    assert answer.close is close


def test_labels_have_no_base_path_and_no_duplicates() -> None:
    """Each counter belongs to one method of one template."""
    resources = Serving(base_path="/base").service.resources
    status_counts = {id(each.counts): each.counts for found in resources.values() for each in found.endpoints.values()}
    labels = [(counts.method, counts.route) for counts in status_counts.values()]
    assert len(labels) == len(set(labels))
    assert ("GET", "/proxy") in labels
