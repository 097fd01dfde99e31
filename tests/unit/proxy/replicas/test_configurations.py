"""The configurations that a replica knows."""

from __future__ import annotations

from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.replicas.configurations import Configurations, digest_of
from support.aio import asynchronous

ONE, TWO = StoredDocument(b"one", '"1"'), StoredDocument(b"two", '"2"')


@asynchronous
async def test_nothing_is_known_at_first() -> None:
    """Nothing has the empty digest."""
    both = Configurations()
    assert both.newest is None and await both.accepted_digest() == "" and not both.offer_again()


@asynchronous
async def test_what_was_accepted() -> None:
    """The digest of an accepted configuration is that of its stored form."""
    both = Configurations()
    both.accept(ONE)
    assert both.newest is ONE and await both.accepted_digest() == digest_of(ONE.pack())
    assert await both.has(digest_of(ONE.pack())) and not await both.has(digest_of(TWO.pack()))


@asynchronous
async def test_an_offer_that_is_accepted() -> None:
    """It is the newest from the first moment, and no offer any more when it was taken."""
    both = Configurations()
    both.accept(ONE)
    both.offer(TWO, "digest of two")
    assert both.newest is TWO and both.accepted is ONE and await both.has("digest of two")
    both.accept(StoredDocument(TWO.body, TWO.etag))
    assert both.accepted == TWO and both.offered is None and await both.accepted_digest() == "digest of two"


@asynchronous
async def test_an_offer_that_something_else_overtakes() -> None:
    """The digest is that of the configuration that was accepted meanwhile."""
    both = Configurations()
    both.offer(TWO, "digest of two")
    both.accept(ONE)
    assert both.newest is ONE and await both.accepted_digest() == digest_of(ONE.pack())


def test_an_offer_is_made_twice() -> None:
    """A document without toggles is believed when it comes a second time, one that is malformed not for ever."""
    both = Configurations()
    both.offer(ONE, "digest")
    assert [both.offer_again() for _ in range(4)] == [True, True, False, False]
    both.offer(TWO, "other")
    assert both.offer_again()
