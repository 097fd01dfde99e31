"""The configurations that a replica knows: the one it has accepted, and the one that the fleet offers it."""

from __future__ import annotations

import hashlib

from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.replicas.client import aside

TRIES = 2
"""An offer that is not accepted is made so often: a document without toggles is believed when it comes twice."""


class Known:
    """What there is to serve. A digest is that of the record as it is stored; that of `own` is empty until it was asked for."""

    def __init__(self) -> None:
        self.own: StoredDocument | None = None
        self.offer: StoredDocument | None = None
        self._own_digest = ""
        self._offer_digest = ""
        self._tries = 0

    @property
    def newest(self) -> StoredDocument | None:
        """The offer, else what was accepted."""
        return self.offer or self.own

    def take(self, record: StoredDocument) -> None:
        """Note that a record was accepted."""
        offered = self.offer is not None and record.body is self.offer.body
        self.own, self._own_digest = record, self._offer_digest if offered else ""
        self.offer, self._offer_digest = None, ""

    def present(self, record: StoredDocument, digest: str) -> None:
        """Offer a record."""
        self.offer, self._offer_digest, self._tries = record, digest, 0

    def due(self) -> bool:
        """Return whether there is an offer to be made again, and count that it is."""
        self._tries += 1
        return self.offer is not None and self._tries <= TRIES

    async def has(self, digest: str) -> bool:
        """Return whether the configuration of this digest is accepted or offered."""
        return digest in (self._offer_digest, await self.own_digest())

    async def own_digest(self) -> str:
        """Return the digest of what was accepted, empty where that is nothing."""
        own = self.own
        if own is not None and not self._own_digest:
            digest = await aside(digest_of, own.pack())
            if self.own is own:
                self._own_digest = digest
            return str(digest)
        return self._own_digest


def digest_of(data: bytes) -> str:
    """Return the digest of data, as it stands in their frame."""
    return hashlib.sha256(data).hexdigest()
