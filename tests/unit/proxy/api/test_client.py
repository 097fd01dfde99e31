"""The posts of SDKs and the document for server-side ones."""

from __future__ import annotations

from flagsvc.proxy.configuration import ConfigurationDocument
from support.serving import Serving


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
