"""Client keys and server-side tokens (specification: Authentication). Compiled."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class KeySet:
    """The keys that open a route. Only digests are kept, and a check takes equally long for a wrong and a right key."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.digests: list[bytes] = []
        self.replace(keys)

    def replace(self, keys: Iterable[str]) -> None:
        """Accept only these keys from now on."""
        self.digests = [sha256(key.encode("utf-8", "surrogateescape")).digest() for key in keys]

    def contains(self, key: bytes) -> bool:
        """Return whether `key`, as received in the header, is one of the keys. Compares it with every one of them.

        Blanks around a header's value do not belong to it, but the parser does not remove those after it.
        """
        digest = sha256(key.strip(b" \t")).digest()
        found = False
        for known in self.digests:
            if compare_digest(digest, known):
                found = True
        return found


class Keys:
    """The key sets of one application: client keys, server-side tokens, and both together."""

    def __init__(self, client: Iterable[str], server: Iterable[str]) -> None:
        self.client: KeySet = KeySet(())
        self.server: KeySet = KeySet(())
        self.either: KeySet = KeySet(())
        self.replace(client, server)

    def replace(self, client: Iterable[str], server: Iterable[str]) -> None:
        """Accept only these keys and tokens from now on."""
        clients, servers = list(client), list(server)
        self.client.replace(clients)
        self.server.replace(servers)
        self.either.replace(clients + servers)
