"""The configurations that a replica knows: the one it has accepted, and the one that the fleet offers it."""

from __future__ import annotations

import hashlib

from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.replicas.client import off_loop

TRIES = 2
"""How often a configuration is offered that is not accepted: a document without toggles is believed when it comes twice."""


class Configurations:
    """What there is to serve: what this replica has `accepted`, and what the fleet has `offered`.

    A digest is that of the record as it is stored; that of what was accepted is made when it is asked for.
    """

    def __init__(self) -> None:
        self.accepted: StoredDocument | None = None
        self.offered: StoredDocument | None = None
        self._accepted_digest = ""
        self._offered_digest = ""
        self._tries = 0

    @property
    def newest(self) -> StoredDocument | None:
        """What was offered, else what was accepted."""
        return self.offered or self.accepted

    def accept(self, record: StoredDocument) -> None:
        """Note that a record was accepted."""
        offered = self.offered is not None and record.body is self.offered.body
        self.accepted, self._accepted_digest = record, self._offered_digest if offered else ""
        self.offered, self._offered_digest = None, ""

    def offer(self, record: StoredDocument, digest: str) -> None:
        """Offer a record."""
        self.offered, self._offered_digest, self._tries = record, digest, 0

    def offer_again(self) -> bool:
        """Return whether there is an offer to be made again, and count that it is."""
        self._tries += 1
        return self.offered is not None and self._tries <= TRIES

    async def has(self, digest: str) -> bool:
        """Return whether the configuration of this digest is accepted or offered."""
        return digest in (self._offered_digest, await self.accepted_digest())

    async def accepted_digest(self) -> str:
        """Return the digest of what was accepted, empty where nothing was."""
        accepted = self.accepted
        if accepted is not None and not self._accepted_digest:
            digest = await off_loop(digest_of, accepted.pack())
            if self.accepted is accepted:
                self._accepted_digest = digest
            return str(digest)
        return self._accepted_digest


def digest_of(data: bytes) -> str:
    """Return the digest of data, as their frame has it."""
    return hashlib.sha256(data).hexdigest()
