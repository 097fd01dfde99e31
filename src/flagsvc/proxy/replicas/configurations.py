"""The configurations that a replica knows: the one it has accepted, and the one that the fleet offers."""

from __future__ import annotations

import hashlib

from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.replicas.client import off_loop

TRIES = 2
"""How often a refused configuration is offered again: a document without toggles is accepted when it comes twice."""


class Configurations:
    """The configuration that this replica has `accepted`, and the one that the fleet has `offered`.

    A digest is that of the stored record. The digest of the accepted configuration is computed when it is needed.
    """

    def __init__(self) -> None:
        self.accepted: StoredDocument | None = None
        self.offered: StoredDocument | None = None
        self._accepted_digest = ""
        self._offered_digest = ""
        self._tries = 0

    @property
    def newest(self) -> StoredDocument | None:
        """The offered configuration, or the accepted one if there is no offer."""
        return self.offered or self.accepted

    def accept(self, record: StoredDocument) -> None:
        """Record that a configuration was accepted."""
        offered = self.offered is not None and record.body is self.offered.body
        self.accepted, self._accepted_digest = record, self._offered_digest if offered else ""
        self.offered, self._offered_digest = None, ""

    def offer(self, record: StoredDocument, digest: str) -> None:
        """Offer a configuration."""
        self.offered, self._offered_digest, self._tries = record, digest, 0

    def offer_again(self) -> bool:
        """Return whether to offer the configuration again, and count this attempt."""
        self._tries += 1
        return self.offered is not None and self._tries <= TRIES

    async def has(self, digest: str) -> bool:
        """Return whether the configuration with this digest is accepted or offered."""
        return digest in (self._offered_digest, await self.accepted_digest())

    async def accepted_digest(self) -> str:
        """Return the digest of the accepted configuration; empty if there is none."""
        accepted = self.accepted
        if accepted is not None and not self._accepted_digest:
            digest = await off_loop(digest_of, accepted.pack())
            if self.accepted is accepted:
                self._accepted_digest = digest
            return str(digest)
        return self._accepted_digest


def digest_of(data: bytes) -> str:
    """Return the digest of data, as it stands in their frame."""
    return hashlib.sha256(data).hexdigest()
