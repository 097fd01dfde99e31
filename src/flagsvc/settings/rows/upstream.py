"""The options of the upstream flag server: its address, its requests, and its connections."""

from __future__ import annotations

from flagsvc.settings import defaults, headers
from flagsvc.settings import kinds as of
from flagsvc.settings import network as net
from flagsvc.settings.base import Headers, Options, Tags, Texts
from flagsvc.settings.option import Scope, Section, option

AUTO, POLLING, STREAMING = "auto", "polling", "streaming"
"""The values of upstreamMode."""


class UpstreamOptions(Options):
    """How the proxy reaches the upstream flag server, and what it asks for."""

    section = Section.UPSTREAM

    flagsvc_url: str = option(
        "flagsvcUrl",
        reads=("FLAGSVC_URL",),
        kind=net.BASE_URL,
        required=True,
        help="API URL of the upstream flag server, or a file: URL of a client-features document, read again on change",
        scope=Scope.INHERITED,
    )
    flagsvc_api_token: str = option(
        "flagsvcApiToken",
        reads=("FLAGSVC_API_TOKEN",),
        kind=of.SECRET,
        default="",
        required=True,
        secret=True,
        reloads=True,
        help="client API token for the upstream API; not needed with a file: URL or for GitLab",
        scope=Scope.OWN,
    )
    upstream_headers: Headers = option(
        "upstreamHeaders",
        reads=("FLAGSVC_UPSTREAM_HEADERS",),
        kind=headers.UPSTREAM_HEADERS,
        default=(),
        secret=True,
        help="headers to send with every request to the upstream server, for a gateway before it, written Name: value",
        scope=Scope.INHERITED,
        advanced=True,
    )
    upstream_auth_header: str = option(
        "upstreamAuthHeader",
        reads=("FLAGSVC_UPSTREAM_AUTH_HEADER",),
        kind=headers.UPSTREAM_NAME,
        default="authorization",
        help="name of the header that carries flagsvcApiToken to the upstream server",
        scope=Scope.INHERITED,
        advanced=True,
    )
    flagsvc_app_name: str = option(
        "flagsvcAppName",
        reads=("FLAGSVC_APP_NAME",),
        kind=of.TEXT,
        default="flagsvc-proxy",
        help="application name used when registering upstream",
        scope=Scope.INHERITED,
    )
    flagsvc_instance_id: str = option(
        "flagsvcInstanceId",
        reads=("FLAGSVC_INSTANCE_ID",),
        kind=of.TEXT,
        default_factory=defaults.instance_id,
        default_text="user name and host name, as user-host",
        help="instance id used when registering upstream; for GitLab, the one of the project, which is required",
        scope=Scope.INHERITED,
        advanced=True,
    )
    refresh_interval: int = option(
        "refreshInterval",
        reads=("FLAGSVC_FETCH_INTERVAL",),
        kind=of.MILLISECONDS,
        default=5000,
        help="milliseconds between two updates from upstream; 0 never asks again after the start",
        scope=Scope.INHERITED,
    )
    upstream_mode: str = option(
        "upstreamMode",
        reads=("FLAGSVC_UPSTREAM_MODE",),
        kind=of.choice((AUTO, POLLING, STREAMING), {}),
        default=AUTO,
        help="how news from upstream arrive: `auto`, by a stream where upstream offers one, else by polls; `polling`, by polls"
        " alone; `streaming`, as `auto`, and a missing stream is logged as an outage",
        scope=Scope.INHERITED,
    )
    project_name: str | None = option(
        "projectName",
        reads=("FLAGSVC_PROJECT_NAME",),
        kind=of.TEXT,
        default=None,
        help="id of a project: only its toggles are known",
        scope=Scope.INHERITED,
    )
    name_prefix: str | None = option(
        "namePrefix",
        reads=("FLAGSVC_NAME_PREFIX",),
        kind=of.TEXT,
        default=None,
        help="only toggles whose name starts with this are known",
        scope=Scope.INHERITED,
        advanced=True,
    )
    tags: Tags = option(
        "tags",
        reads=("FLAGSVC_TAGS",),
        kind=of.TAGS,
        default=(),
        help="only toggles with these tags are asked for, written tagName:tagValue,tagName2:tagValue2",
        scope=Scope.INHERITED,
        advanced=True,
    )
    http_options_reject_unauthorized: bool = option(
        "httpOptions.rejectUnauthorized",
        reads=("HTTP_OPTIONS_REJECT_UNAUTHORIZED",),
        kind=of.BOOLEAN,
        default=True,
        help="refuse an upstream server whose certificate is not valid",
        scope=Scope.INHERITED,
        advanced=True,
    )
    http_proxy: str | None = option(
        "httpProxy",
        reads=("HTTP_PROXY", "http_proxy"),
        kind=net.OUTBOUND_PROXY,
        default=None,
        help="outbound proxy for http:// requests",
        scope=Scope.INHERITED,
    )
    https_proxy: str | None = option(
        "httpsProxy",
        reads=("HTTPS_PROXY", "https_proxy"),
        kind=net.OUTBOUND_PROXY,
        default=None,
        help="outbound proxy for https:// requests",
        scope=Scope.INHERITED,
    )
    no_proxy: Texts = option(
        "noProxy",
        reads=("NO_PROXY", "no_proxy"),
        kind=of.TEXTS,
        default=(),
        help="hosts, domains, addresses and ranges of addresses that are reached without the outbound proxy; * for all",
        scope=Scope.INHERITED,
    )
    upstream_timeout: int = option(
        "upstreamTimeout",
        reads=("FLAGSVC_UPSTREAM_TIMEOUT",),
        kind=of.integer(1, metavar="MS"),
        default=10_000,
        help="milliseconds after which a request to the upstream server is given up",
        scope=Scope.INHERITED,
        advanced=True,
    )
    max_staleness: int = option(
        "maxStaleness",
        reads=("FLAGSVC_MAX_STALENESS",),
        kind=of.integer(0, 31_536_000, metavar="SECONDS"),
        default=0,
        help="seconds without a good answer from upstream after which /proxy/ready is 503; other requests are answered as"
        " before; 0 for never",
        scope=Scope.INHERITED,
    )
    retry_after_limit: int = option(
        "retryAfterLimit",
        reads=("FLAGSVC_RETRY_AFTER_LIMIT",),
        kind=of.integer(0, 3_600_000, metavar="MS"),
        default=300_000,
        help="milliseconds of a pause that are kept where the upstream server asks for more (Retry-After); 0 keeps none",
        scope=Scope.INHERITED,
        advanced=True,
    )
    upstream_ca: str | None = option(
        "upstreamCa",
        reads=("FLAGSVC_UPSTREAM_CA",),
        kind=of.PATH,
        default=None,
        help="authorities, PEM, to trust beside the system's; read again when the file changes",
        scope=Scope.INHERITED,
    )
    upstream_cert: str | None = option(
        "upstreamCert",
        reads=("FLAGSVC_UPSTREAM_CERT",),
        kind=of.PATH,
        default=None,
        help="certificate, PEM, to show to the upstream server (mutual TLS); read again when the file changes",
        scope=Scope.INHERITED,
        advanced=True,
    )
    upstream_key: str | None = option(
        "upstreamKey",
        reads=("FLAGSVC_UPSTREAM_KEY",),
        kind=of.PATH,
        default=None,
        default_text="in the certificate's file",
        needs="upstreamCert",
        help="key of that certificate, PEM",
        scope=Scope.INHERITED,
        advanced=True,
    )
    upstream_key_password: str | None = option(
        "upstreamKeyPassword",
        reads=("FLAGSVC_UPSTREAM_KEY_PASSWORD",),
        kind=of.PASSWORD,
        default=None,
        secret=True,
        needs="upstreamCert",
        help="password of that key, where it is encrypted",
        scope=Scope.INHERITED,
        advanced=True,
    )
