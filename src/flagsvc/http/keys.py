"""Client keys and server-side tokens (specification: Authentication). Compiled."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest


class KeySet:
    """The keys that open a route. Only digests are kept, and a look takes as long for a wrong key as for a right one."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.digests: list[bytes] = []
        self.replace(keys)

    def replace(self, keys: Iterable[str]) -> None:
        """Hold these keys from now on, and no others."""
        self.digests = [sha256(key.encode("utf-8", "surrogateescape")).digest() for key in keys]

    def holds(self, key: bytes) -> bool:
        """Return whether `key`, as it came in the header, is one of the ring; compares with every one of them.

        Blanks round a header's value do not belong to it; the parser leaves those behind it in.
        """
        digest = sha256(key.strip(b" \t")).digest()
        found = False
        for known in self.digests:
            if compare_digest(digest, known):
                found = True
        return found


class Keys:
    """The rings of one application: client keys, server-side tokens, and both together."""

    def __init__(self, client: Iterable[str], server: Iterable[str]) -> None:
        self.client: KeySet = KeySet(())
        self.server: KeySet = KeySet(())
        self.either: KeySet = KeySet(())
        self.replace(client, server)

    def replace(self, client: Iterable[str], server: Iterable[str]) -> None:
        """Hold these keys and tokens from now on, and no others."""
        clients, servers = list(client), list(server)
        self.client.replace(clients)
        self.server.replace(servers)
        self.either.replace(clients + servers)
