"""Client keys and server-side tokens (specification: Authentication). Compiled."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from os import urandom
from typing import Final

from flagsvc.http import http_errors

SCHEME: Final = b"bearer "
SALT: Final = urandom(32)
"""Goes into every digest of a key. It is secret, and new in each process."""


def salted(key: bytes) -> bytes:
    """Return the digest by which a key is looked up.

    No caller knows it, so the time that a look-up takes tells nothing about a key, however many keys there are.
    """
    return sha256(SALT + key).digest()


class KeySet:
    """The keys that open a route: keys of the options, and keys that were `added` while the process runs.

    Only digests are kept.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self.digests: Final = {salted(key.encode("utf-8", "surrogateescape")) for key in keys}
        self.added: set[bytes] = set()

    def contains(self, key: bytes) -> bool:
        """Return whether `key`, as received in the header, is one of the keys.

        Blanks around a header's value do not belong to it, but the parser does not remove those after it.
        """
        digest = salted(key.strip(b" \t"))
        return digest in self.digests or digest in self.added

    def lists(self, key: bytes) -> bool:
        """Return whether `key`, as received, is one of the keys of the options."""
        return salted(key.strip(b" \t")) in self.digests


class Keys:
    """The key sets of one application: client keys, server-side tokens, and both together."""

    def __init__(self, client: Iterable[str], server: Iterable[str]) -> None:
        clients, servers = list(client), list(server)
        self.client: Final = KeySet(clients)
        self.server: Final = KeySet(servers)
        self.either: Final = KeySet(clients + servers)

    def add(self, key: bytes, server: bool) -> None:
        """Also accept this key: as a server-side token, or as a client key."""
        digest = salted(key)
        (self.server if server else self.client).added.add(digest)
        self.either.added.add(digest)

    def remove(self, key: bytes) -> None:
        """Accept a key no longer that was added."""
        digest = salted(key)
        for each in (self.client, self.server, self.either):
            each.added.discard(digest)

    def forget_added(self) -> None:
        """Accept only the keys of the options, until others are added again."""
        for each in (self.client, self.server, self.either):
            each.added.clear()


class KeyCheck:
    """The check of the key of a route: one of `accepted` opens it.

    With `bearer`, a key may stand behind the word `Bearer`. A key that is not accepted but is in `others` gets a 403. Any other key
    gets a 401.
    """

    def __init__(self, accepted: KeySet, others: KeySet | None = None, bearer: bool = False) -> None:
        self.accepted = accepted
        self.others = others
        self.bearer = bearer

    def read_key(self, sent: bytes) -> bytes:
        """Return the key in a header with blanks around it removed, whether it opens the route or not."""
        key = sent.strip(b" \t")
        if self.bearer and key[: len(SCHEME)].lower() == SCHEME:
            key = key[len(SCHEME) :].strip(b" \t")
        return key

    def find_key(self, sent: bytes | None) -> bytes:
        """Return the key in a header, if it opens the route. Raises HttpError (401, 403)."""
        if sent is None:
            raise http_errors.unauthorized()
        key = self.read_key(sent)
        if self.accepted.contains(key):
            return key
        if self.others is not None and self.others.contains(key):
            raise http_errors.wrong_key_type()
        raise http_errors.unauthorized()
