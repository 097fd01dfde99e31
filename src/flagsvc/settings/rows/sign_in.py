"""The options of signing in at the pages of the flag server (decision 0061)."""

from __future__ import annotations

from flagsvc.settings import headers, roles
from flagsvc.settings import network as net
from flagsvc.settings.base import Options
from flagsvc.settings.converted import Roles
from flagsvc.settings.option import Section, option


class ServerSignIn(Options):
    """Who signs in beside personal tokens: people of an OpenID provider, or those that a proxy in front names."""

    section = Section.SIGN_IN

    user_header: str | None = option(
        "userHeader",
        reads=("FLAGSVC_USER_HEADER",),
        kind=headers.USER_HEADER,
        default=None,
        needs="userHeaderFrom",
        help="header in which a proxy in front names the person that it has signed in, such as X-Forwarded-User",
    )
    user_header_from: tuple[str, ...] | None = option(
        "userHeaderFrom",
        reads=("FLAGSVC_USER_HEADER_FROM",),
        kind=net.NETWORKS,
        default=None,
        help="networks of that proxy; from anywhere else the header means nothing. Loopback counts only if it is listed",
    )
    user_groups_header: str | None = option(
        "userGroupsHeader",
        reads=("FLAGSVC_USER_GROUPS_HEADER",),
        kind=headers.USER_HEADER,
        default=None,
        needs="userHeader",
        help="header of that proxy with the groups of the person, with commas between",
    )
    group_roles: Roles = option(
        "groupRoles",
        reads=("FLAGSVC_GROUP_ROLES",),
        kind=roles.GROUP_ROLES,
        default=(),
        help="roles that groups of the provider or proxy give: admin, editor, viewer, owner:PROJECT, member:PROJECT; they are set"
        " at every sign-in. Without any, roles are given here alone",
    )
