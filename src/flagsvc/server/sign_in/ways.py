"""The ways to sign in beside tokens and links, as the options say."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from flagsvc.core.clock import Clock
from flagsvc.core.extras import require
from flagsvc.http.call import GROUPS, USER, Call
from flagsvc.http.trust import TrustedProxies, parse_address, unmap_ipv4
from flagsvc.settings.roles import GroupRoles
from flagsvc.settings.server import ServerOptions

if TYPE_CHECKING:
    from flagsvc.server.sign_in.provider import Provider

EXTRA = "oidc"
CALLBACK = "/ui/sign-in/callback"
"""Where the provider sends people back to, below `publicUrl`."""


@dataclass(frozen=True)
class SignInWays:
    """`header` reads the user that a proxy in front names; `provider` is an OpenID provider. Both can be absent.

    `group_roles` are the roles that groups give.
    """

    header: UserHeader | None = None
    group_roles: GroupRoles = ()
    provider: Provider | None = None


def make_ways(options: ServerOptions, clock: Clock) -> SignInWays:
    """Return the ways of a flag server with these options. Raises MissingExtraError if a provider needs an extra."""
    return SignInWays(make_header(options), options.group_roles, make_provider(options, clock))


def make_header(options: ServerOptions) -> UserHeader | None:
    """Return the reader of the header, if one is configured."""
    if options.user_header is None:
        return None
    return UserHeader(options.user_header, options.user_header_from or (), options.user_groups_header)


def make_provider(options: ServerOptions, clock: Clock) -> Provider | None:
    """Return the provider, if one is configured; it is not asked yet. Raises MissingExtraError."""
    if options.oidc_issuer is None:
        return None
    require(EXTRA)
    from flagsvc.server.sign_in.provider import Provider, ProviderSettings

    settings = ProviderSettings(
        issuer=options.oidc_issuer,
        client=options.oidc_client_id or "",
        redirect_uri=f"{options.public_url}{CALLBACK}",
        secret=options.oidc_client_secret,
        scopes=options.oidc_scopes,
        groups_claim=options.oidc_groups_claim,
        name=options.oidc_name,
    )
    return Provider(settings, clock)


MAX_LENGTH = 255
"""The most characters of a name."""


class NamedPerson(NamedTuple):
    """The person that the proxy names. `groups` is None if no header of groups is configured."""

    name: str
    groups: tuple[str, ...] | None = None

    @property
    def digest(self) -> str:
        """The digest of name and groups: a session with another digest belongs to another person."""
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
