"""What a look-up of tokens needs from outside: the upstream and the storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class TokenUpstream(Protocol):
    """The upstream server."""

    async def validate(self, tokens: Sequence[str]) -> list[object]:
        """Return the upstream's entries of those tokens that it knows. Raises UpstreamError."""

    async def aclose(self) -> None:
        """Close the connections."""


class TokenStore(Protocol):
    """Keeps the record of known tokens, which other processes may share."""

    async def load(self) -> bytes | None:
        """Return what was stored last, or None. Raises StoreError if it cannot be read now."""

    async def save(self, data: bytes) -> bool:
        """Store the record. Returns whether that went well."""

    async def aclose(self) -> None:
        """Close the connections."""
