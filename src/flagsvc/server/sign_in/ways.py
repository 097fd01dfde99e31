"""The ways to sign in beside tokens and links, as the options say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flagsvc.core.clock import Clock
from flagsvc.core.extras import require
from flagsvc.server.sign_in.user_header import UserHeader
from flagsvc.settings.roles import GroupRoles
from flagsvc.settings.server import ServerOptions

if TYPE_CHECKING:
    from flagsvc.server.sign_in.provider import Provider

EXTRA = "oidc"
CALLBACK = "/ui/sign-in/callback"
"""Where the provider sends people back to, below `publicUrl`."""


@dataclass(frozen=True)
class SignInWays:
    """`header` reads the user that a proxy in front names, if one does; `provider` is an OpenID provider, if there is one.

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
