"""The header in which an authenticating proxy in front names the person (options userHeader, userHeaderFrom, userGroupsHeader).

It counts only from the networks of that proxy, by the address at the other end of the connection. From anywhere else it counts as
absent, and so does one that comes twice, since nobody can tell which of the two the proxy has set.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import NamedTuple

from flagsvc.http.messages import Request
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
    """Reads the header. `name` and `groups` are names of headers in lower case, `networks` are addresses, CIDRs and names."""

    def __init__(self, name: str, networks: Iterable[str], groups: str | None = None) -> None:
        self._name = name.encode()
        self._groups = None if groups is None else groups.encode()
        self._trust = TrustedProxies(tuple(networks))

    def read(self, request: Request) -> NamedPerson | None:
        """Return the person of a request; None without one, and for a request that does not come from the proxy."""
        if not self._trust.trusts(parse_address(unmap_ipv4(request.peer))):
            return None
        name = read_single(request, self._name)
        if not name or len(name) > MAX_LENGTH or "," in name:
            return None
        if self._groups is None:
            return NamedPerson(name)
        groups = {each.strip() for each in read_single(request, self._groups).split(",")}
        return NamedPerson(name, tuple(sorted(groups - {""})))


def read_single(request: Request, name: bytes) -> str:
    """Return the text of a header; empty if it is missing, comes more than once, or is no printable UTF-8."""
    found = [value for key, value in request.headers if key == name]
    try:
        text = found[0].decode().strip() if len(found) == 1 else ""
    except UnicodeDecodeError:
        return ""
    return text if text.isprintable() else ""
