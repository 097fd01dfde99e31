"""The configurations that a replica knows."""

from __future__ import annotations

from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.replicas.known import Known, digest_of
from support.aio import asynchronous

ONE, TWO = StoredDocument(b"one", '"1"'), StoredDocument(b"two", '"2"')


@asynchronous
async def test_nothing_is_known_at_first() -> None:
    """Nothing has the empty digest."""
    known = Known()
    assert known.newest is None and await known.own_digest() == "" and not known.due()


@asynchronous
async def test_what_was_accepted() -> None:
    """Its digest is that of what is stored of it."""
    known = Known()
    known.take(ONE)
    assert known.newest is ONE and await known.own_digest() == digest_of(ONE.pack())
    assert await known.has(digest_of(ONE.pack())) and not await known.has(digest_of(TWO.pack()))


@asynchronous
async def test_an_offer_that_is_accepted() -> None:
    """It is the newest from the first moment, and no offer any more when it was taken."""
    known = Known()
    known.take(ONE)
    known.present(TWO, "digest of two")
    assert known.newest is TWO and known.own is ONE and await known.has("digest of two")
    known.take(StoredDocument(TWO.body, TWO.etag))
    assert known.own == TWO and known.offer is None and await known.own_digest() == "digest of two"


@asynchronous
async def test_an_offer_that_something_else_overtakes() -> None:
    """What was accepted has its own digest."""
    known = Known()
    known.present(TWO, "digest of two")
    known.take(ONE)
    assert known.newest is ONE and await known.own_digest() == digest_of(ONE.pack())


def test_an_offer_is_made_twice() -> None:
    """A document without toggles is believed when it comes a second time, one that is malformed not for ever."""
    known = Known()
    known.present(ONE, "digest")
    assert [known.due() for _ in range(4)] == [True, True, False, False]
    known.present(TWO, "other")
    assert known.due()
