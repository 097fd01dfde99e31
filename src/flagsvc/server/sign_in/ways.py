"""The ways to sign in beside tokens and links, as the options say."""

from __future__ import annotations

from dataclasses import dataclass

from flagsvc.server.sign_in.user_header import UserHeader
from flagsvc.settings.roles import GroupRoles
from flagsvc.settings.server import ServerOptions


@dataclass(frozen=True)
class SignInWays:
    """`header` reads whom a proxy in front names, if one does. `group_roles` are the roles that groups give."""

    header: UserHeader | None = None
    group_roles: GroupRoles = ()


def make_ways(options: ServerOptions) -> SignInWays:
    """Return the ways of a flag server with these options."""
    header = None
    if options.user_header is not None:
        header = UserHeader(options.user_header, options.user_header_from or (), options.user_groups_header)
    return SignInWays(header, options.group_roles)
