"""The posts of SDKs and the document for server-side ones."""

from __future__ import annotations

import json

from flagsvc.http.messages import Headers
from flagsvc.proxy.configuration import ConfigurationDocument
from support.serving import Serving, counts_of

BUCKET = {"start": "2026-01-01T00:00:00Z", "stop": "2026-01-01T00:01:00Z"}
SIZED: Headers = [(b"content-length", b"1")]


def report(toggles: object) -> bytes:
    """Return the body of a metrics post."""
    return json.dumps({"appName": "a", "instanceId": "i", "bucket": {**BUCKET, "toggles": toggles}}).encode()


def test_a_report_goes_to_the_counters_toggle_by_toggle() -> None:
    """Each toggle of a report is added with its variants."""
    serving = Serving()
    body = report({"a": {"yes": 1, "no": 2, "variants": {"v": 3}}, "b": {"yes": 4}})
    assert serving.ask(b"POST", b"/proxy/client/metrics", headers=SIZED, body=body).body == b"OK"
    assert counts_of(serving.usage.peek()) == {"a": (1, 2, {"v": 3}), "b": (4, 0, {})}


def test_a_wrong_count_costs_only_its_toggle() -> None:
    """The rest of the report is counted, and what is left out is counted as malformed."""
    serving = Serving()
    body = report({"a": {"yes": 1}, "b": {"yes": -1}, "c": {"yes": 2, "variants": {"v": "many"}}})
    assert serving.ask(b"POST", b"/proxy/client/metrics", headers=SIZED, body=body).status == 200
    assert counts_of(serving.usage.peek()) == {"a": (1, 0, {}), "c": (2, 0, {})}
    assert serving.usage.malformed == 2


def test_the_document_keeps_its_tag_as_a_weak_one() -> None:
    """A tag that is weak already stays as it is."""
    for given in ('"v"', 'W/"v"'):
        serving = Serving(client_keys=("x",), server_tokens=("k",))
        serving.holder.document = ConfigurationDocument(b"{}", given)
        answer = serving.ask(b"GET", b"/proxy/client/features")
        assert (answer.status, answer.body) == (200, b"{}")
        assert (b"etag", b'W/"v"') in answer.own


def test_no_document_no_answer() -> None:
    """Without a document the answer is 503, even if there is a snapshot."""
    assert Serving(client_keys=("x",), server_tokens=("k",)).ask(b"GET", b"/proxy/client/features").status == 503
