"""The options of the flag server. Options of both programs are the proxy's rows."""

from __future__ import annotations

import os

from flagsvc.settings import defaults, headers, roles
from flagsvc.settings import kinds as of
from flagsvc.settings import network as net
from flagsvc.settings.base import Options, Origins, Roles, Size, Texts, Trusted
from flagsvc.settings.kinds import is_blank
from flagsvc.settings.option import Section, option
from flagsvc.settings.rows.callers import CallerOptions
from flagsvc.settings.rows.listening import ListeningOptions
from flagsvc.settings.rows.logging import LoggingOptions
from flagsvc.settings.tokens import ADMIN_TOKENS, CLIENT_TOKENS

LOCAL = "sqlite:///"
"""What a URL begins with whose path is relative: an absolute one has a slash more."""


def database_in(value: object, folder: str) -> object:
    """Return a relative path of an SQLite file, alone or in a URL, as one that begins with `folder`."""
    if not isinstance(value, str) or is_blank(value):
        return value
    text = value.strip()
    head = LOCAL if text.startswith(LOCAL) else ""
    path = text[len(head) :]
    if not path or path.startswith(("~", ":")) or "://" in path:
        return value
    return f"{head}{os.path.join(folder, path)}"


DATABASE = of.Kind(
    "postgresql://user:password@host/name, sqlite:///path, or the path of an SQLite file",
    "URL",
    of.parse_text,
    net.safe_url,
    echo=of.unquoted,
    relative_to=database_in,
)

ONCE, ADD = "once", "add"
"""What becomes of a seed that a database in use does not have."""


class ServerListening(Options):
    """Where the flag server listens, how it speaks, and how it ends."""

    section = Section.LISTENING

    port: int = option(
        "port",
        reads=("FLAGSVC_SERVER_PORT", "PORT"),
        kind=of.PORT,
        default=4242,
        help="port to listen on; 0 takes a free one",
    )
    host: str | None = option(
        "host",
        reads=("FLAGSVC_SERVER_HOST", "FLAGSVC_HOST"),
        kind=net.HOST,
        default=None,
        default_text="all addresses, IPv4 and IPv6",
        help="address to listen on; :: is all addresses too, and fails if IPv6 is off",
    )
    base_path: str = option(
        "basePath",
        reads=("FLAGSVC_SERVER_BASE_PATH", "BASE_URI_PATH"),
        kind=net.BASE_PATH,
        default="",
        help="path in front of every other: flags gives /flags/api",
    )
    public_url: str | None = option(
        "publicUrl",
        reads=("FLAGSVC_SERVER_PUBLIC_URL",),
        kind=net.WEB_URL,
        default=None,
        default_text="the address that it listens on",
        help="address at which browsers and programs reach the server, with the base path, such as https://flags.example; if it"
        " begins with https, the cookie of a session is for TLS only",
    )
    keep_alive_timeout: int = ListeningOptions.keep_alive_timeout
    shutdown_grace: int = ListeningOptions.shutdown_grace
    max_connections: int = ListeningOptions.max_connections
    max_streams: int = ListeningOptions.max_streams
    max_streams_per_network: int = ListeningOptions.max_streams_per_network
    stream_window: int | None = ListeningOptions.stream_window
    offer_streaming: bool = ListeningOptions.offer_streaming
    request_memory: int | None = ListeningOptions.request_memory
    header_timeout: int = ListeningOptions.header_timeout
    body_timeout: int = ListeningOptions.body_timeout
    write_timeout: int = ListeningOptions.write_timeout
    tls_cert: str | None = ListeningOptions.tls_cert
    tls_key: str | None = ListeningOptions.tls_key
    tls_key_password: str | None = ListeningOptions.tls_key_password
    tls_min_version: str = ListeningOptions.tls_min_version
    tls_client_ca: str | None = ListeningOptions.tls_client_ca
    tls_handshake_timeout: int = ListeningOptions.tls_handshake_timeout
    socket_mode: str = ListeningOptions.socket_mode
    admin_address: str | None = option(
        "adminAddress",
        reads=("FLAGSVC_SERVER_ADMIN_ADDRESS",),
        kind=net.ADDRESS,
        default=None,
        help="a second address, plain HTTP, for probes and metrics; metrics are then answered there alone",
    )


class ServerCallers(Options):
    """What a request may hold."""

    section = Section.CALLERS

    trust_proxy: Trusted = CallerOptions.trust_proxy
    header_limit: Size = CallerOptions.header_limit
    body_limit: Size = option(
        "bodyLimit",
        reads=("FLAGSVC_SERVER_BODY_LIMIT",),
        kind=of.SIZE,
        default=500 * 1024,
        help="largest body of a request, unpacked; raise it to import more than some hundred flags at once",
        stops="large bodies, and small ones that unpack to large ones",
    )
    ofrep: bool = option(
        "ofrep",
        reads=("FLAGSVC_OFREP",),
        kind=of.BOOLEAN,
        default=False,
        help="answer OpenFeature providers at /ofrep, which also tells the disabled flags",
    )
    frontend_api_origins: Origins = option(
        "frontendApiOrigins",
        reads=("FLAGSVC_FRONTEND_API_ORIGINS",),
        kind=net.ORIGINS,
        default="*",
        help="origins of the pages whose scripts may use the frontend API: *, one, or several with commas between;"
        " https://*.example.com is a pattern",
    )


class ServerStorage(Options):
    """Where the flags are kept, and what a new database starts with."""

    section = Section.STORAGE

    database: str = option(
        "database",
        reads=("FLAGSVC_DATABASE_URL", "DATABASE_URL"),
        kind=DATABASE,
        default_factory=defaults.database,
        default_text="flags.db in the user's state folder: $XDG_STATE_HOME/flagsvc, else ~/.local/state/flagsvc",
        secret=True,
        help="database of the flags, a URL or the path of an SQLite file; missing tables are created in it",
    )
    database_listen_url: str | None = option(
        "databaseListenUrl",
        reads=("FLAGSVC_DATABASE_LISTEN_URL",),
        kind=DATABASE,
        default=None,
        secret=True,
        advanced=True,
        help="URL of the same PostgreSQL database past a pooler, to listen for changes of other servers; without it, a server"
        " behind a pooler reads each second whether something changed",
    )
    seed: str | None = option(
        "seed",
        reads=("FLAGSVC_SEED",),
        kind=of.PATH,
        default=None,
        help="JSON or YAML file with what a new database starts with: flags, users, tokens and the rest",
    )
    seed_mode: str = option(
        "seedMode",
        reads=("FLAGSVC_SEED_MODE",),
        kind=of.choice((ONCE, ADD), {}),
        default=ONCE,
        needs="seed",
        help="how a changed seed is applied to a database in use: `once`: warn and leave it out; `add`: add what is missing by"
        " name, change nothing that is there",
    )
    init_admin_tokens: Texts = option(
        "initAdminTokens",
        reads=("FLAGSVC_INIT_ADMIN_TOKENS", "INIT_ADMIN_API_TOKENS"),
        kind=ADMIN_TOKENS,
        default=(),
        secret=True,
        help="admin tokens that a database without API tokens gets, such as *:*.some-secret",
    )
    init_backend_tokens: Texts = option(
        "initBackendTokens",
        reads=("FLAGSVC_INIT_BACKEND_TOKENS", "INIT_BACKEND_API_TOKENS", "INIT_CLIENT_API_TOKENS"),
        kind=CLIENT_TOKENS,
        default=(),
        secret=True,
        help="tokens for proxies and server-side SDKs that a database without API tokens gets, such as *:development.some-secret",
    )
    init_frontend_tokens: Texts = option(
        "initFrontendTokens",
        reads=("FLAGSVC_INIT_FRONTEND_TOKENS", "INIT_FRONTEND_API_TOKENS"),
        kind=CLIENT_TOKENS,
        default=(),
        secret=True,
        help="tokens for pages and apps that a database without API tokens gets, such as shop:production.some-secret",
    )
    event_days: int = option(
        "eventDays",
        reads=("FLAGSVC_EVENT_DAYS",),
        kind=of.integer(0, 36_500, metavar="DAYS"),
        default=90,
        help="days that the events of changes are kept; 0 keeps them for ever",
    )


class ServerWebhooks(Options):
    """Where the flag server sends events."""

    section = Section.WEBHOOKS

    webhook_networks: Texts = option(
        "webhookNetworks",
        reads=("FLAGSVC_WEBHOOK_NETWORKS",),
        kind=net.REACH,
        default=("!linklocal", "!metadata"),
        help="networks that webhooks may reach; with `!` in front, a network that they may not. Only such ones leave all others"
        " open, as by default all but link-local addresses and those of cloud metadata",
        stops="editors who let the server ask what only the server reaches",
    )


class ServerLogging(Options):
    """What is logged, and how."""

    section = Section.LOGGING

    use_json_logger: bool = option(
        "useJsonLogger",
        reads=("JSON_LOGGER",),
        kind=of.BOOLEAN,
        default=False,
        help="log one line of JSON per event",
    )
    log_level: str = LoggingOptions.log_level


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
