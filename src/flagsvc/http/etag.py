"""Entity tags: two answers with the same tag are the same answer (behaviour: Caching). Compiled."""

from __future__ import annotations

from binascii import hexlify
from hashlib import blake2b, sha256
from typing import Final

from flagsvc.core.version import VERSION

HEX_DIGITS: Final = 32
OCTETS: Final = 16
SHORT_DIGITS: Final = 8


class Tagger:
    """Makes the tags of answers from their canonical bytes, for one revision of the configuration.

    The tags are equal in all processes with the same version of the program. Another version may encode the same answer
    differently.
    """

    def __init__(self, revision: str, version: str = VERSION) -> None:
        secret = blake2b(f"{version} {revision}".encode(), digest_size=OCTETS).digest()
        self.start = blake2b(key=secret, digest_size=OCTETS)

    def tag(self, key: bytes) -> bytes:
        """Return the weak entity tag of the answer that `key` identifies: 128 bits of a keyed BLAKE2b."""
        state = self.start.copy()
        state.update(key)
        return b'W/"' + hexlify(state.digest()) + b'"'


def short_revision(digest: str) -> str:
    """Return the digest of a configuration as people read and compare it: its first characters."""
    return digest[:SHORT_DIGITS]


def etag(body: bytes) -> bytes:
    """Return the weak entity tag of a body: 128 bits of its SHA-256. `Tagger` needs no body."""
    return b'W/"' + sha256(body).hexdigest()[:HEX_DIGITS].encode() + b'"'


def matches(condition: bytes, tag: bytes) -> bool:
    """Return whether an If-None-Match header (a list, or `*`) names `tag`, compared weakly.

    A tag of ours contains neither comma nor quote. So it is in the list exactly if its quoted text is in the header.
    """
    return tag[2:] in condition or condition.strip() == b"*"
