"""The header in which an authenticating proxy in front names the person (options userHeader, userHeaderFrom, userGroupsHeader).

It counts only from the networks of that proxy, by the address at the other end of the connection. From anywhere else it counts as
absent, and so does one that comes twice, since either may be the caller's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import NamedTuple

from flagsvc.http.call import GROUPS, USER, Call
from flagsvc.http.trust import TrustedProxies, parse_address, unmap_ipv4

MAX_LENGTH = 255
"""The most characters of a name."""


class NamedPerson(NamedTuple):
    """The person that the proxy names. `groups` is None if no header of groups is configured."""

    name: str
    groups: tuple[str, ...] | None = None

    @property
    def digest(self) -> str:
        """The digest of name and groups: a session of another one is not this person's."""
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()


class UserHeader:
    """Reads the header. `name` and `groups` are names of headers in lower case, `networks` are addresses, CIDRs and names.

    `kinds` has the kind of each header, for the one who reads heads.
    """

    def __init__(self, name: str, networks: Iterable[str], groups: str | None = None) -> None:
        self.kinds = {name.encode(): USER} | ({} if groups is None else {groups.encode(): GROUPS})
        self._trust = TrustedProxies(tuple(networks))

    def read(self, head: Call) -> NamedPerson | None:
        """Return the person of a request; None without one, and for a request that does not come from the proxy."""
        if not self._trust.trusts(parse_address(unmap_ipv4(head.request.peer))):
            return None
        name = decode(head.other(USER))
        if not name or len(name) > MAX_LENGTH or "," in name:
            return None
        if GROUPS not in self.kinds.values():
            return NamedPerson(name)
        groups = {each.strip() for each in decode(head.other(GROUPS)).split(",")}
        return NamedPerson(name, tuple(sorted(groups - {""})))


def decode(value: bytes | None) -> str:
    """Return the text of a header; empty if it is missing, or no printable UTF-8. One that came twice is empty already."""
    try:
        text = (value or b"").decode().strip()
    except UnicodeDecodeError:
        return ""
    return text if text.isprintable() else ""
