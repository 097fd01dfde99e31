"""Client keys and server-side tokens (specification: Authentication). Compiled."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from flagsvc.http import http_errors

SCHEME: Final = b"bearer "


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


class KeyCheck:
    """The check of the key of a route: one of `accepted` opens it.

    With `bearer`, a key may stand behind the word `Bearer`. `others` are the keys for other routes: they get a 403 and not the 401;
    None if every wrong key gets the 401.
    """

    def __init__(self, accepted: KeySet, others: KeySet | None = None, bearer: bool = False) -> None:
        self.accepted = accepted
        self.others = others
        self.bearer = bearer

    def find_key(self, sent: bytes | None) -> bytes:
        """Return the key in a header with blanks around it removed, if it opens the route. Raises HttpError (401, 403)."""
        if sent is None:
            raise http_errors.unauthorized()
        key = sent.strip(b" \t")
        if self.bearer and key[: len(SCHEME)].lower() == SCHEME:
            key = key[len(SCHEME) :].strip(b" \t")
        if self.accepted.contains(key):
            return key
        if self.others is not None and self.others.contains(key):
            raise http_errors.wrong_key_type()
        raise http_errors.unauthorized()
