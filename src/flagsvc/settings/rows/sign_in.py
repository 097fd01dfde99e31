"""The options of signing in at the pages of the flag server (decision 0061)."""

from __future__ import annotations

from flagsvc.settings import headers, roles
from flagsvc.settings import kinds as of
from flagsvc.settings import network as net
from flagsvc.settings.base import Options, Roles, Texts
from flagsvc.settings.option import Section, option


class ServerSignIn(Options):
    """Who signs in beside personal tokens: people of an OpenID provider, or those that a proxy in front names."""

    section = Section.SIGN_IN

    oidc_issuer: str | None = option(
        "oidcIssuer",
        reads=("FLAGSVC_OIDC_ISSUER",),
        kind=net.ISSUER,
        default=None,
        needs="oidcClientId",
        help="issuer of an OpenID provider: the address below which it has /.well-known/openid-configuration",
    )
    oidc_client_id: str | None = option(
        "oidcClientId",
        reads=("FLAGSVC_OIDC_CLIENT_ID",),
        kind=of.TEXT,
        default=None,
        needs="publicUrl",
        help="id of this server at the provider, where its redirect URI is publicUrl and /ui/sign-in/callback",
    )
    oidc_client_secret: str | None = option(
        "oidcClientSecret",
        reads=("FLAGSVC_OIDC_CLIENT_SECRET",),
        kind=of.PASSWORD,
        default=None,
        secret=True,
        needs="oidcIssuer",
        help="secret of this server at the provider; none for a public client",
    )
    oidc_scopes: Texts = option(
        "oidcScopes",
        reads=("FLAGSVC_OIDC_SCOPES",),
        kind=of.TEXTS,
        default=("openid", "profile", "email"),
        help="what the provider is asked for; some give groups only with a scope of their own",
        advanced=True,
    )
    oidc_groups_claim: str = option(
        "oidcGroupsClaim",
        reads=("FLAGSVC_OIDC_GROUPS_CLAIM",),
        kind=of.TEXT,
        default="groups",
        help="claim of the ID token with the groups of a person: a text or a list; dots lead into objects",
        advanced=True,
    )
    oidc_name: str | None = option(
        "oidcName",
        reads=("FLAGSVC_OIDC_NAME",),
        kind=of.TEXT,
        default=None,
        default_text="the host of the issuer",
        needs="oidcIssuer",
        help="name of the provider on the sign-in page",
        advanced=True,
    )
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
