"""The experimental options: they may change or vanish at any time."""

from __future__ import annotations

from flagsvc.settings import kinds as of
from flagsvc.settings import network as net
from flagsvc.settings.base import Bootstrap, Files, Options, Texts
from flagsvc.settings.option import Scope, Section, option


class ExperimentalOptions(Options):
    """What may change or vanish at any time."""

    section = Section.EXPERIMENTAL

    exp_bootstrap: Bootstrap = option(
        "expBootstrap",
        kind=net.URL,
        default=None,
        help="where to bootstrap from: a URL, or a mapping with url and urlHeaders; in a file a table of the next two",
    )
    exp_bootstrap_url: str | None = option(
        "expBootstrap.url",
        reads=("EXP_BOOTSTRAP_URL",),
        kind=net.URL,
        default=None,
        help="URL of a client-features document to serve until upstream answers",
        scope=Scope.INHERITED,
    )
    exp_bootstrap_authorization: str | None = option(
        "expBootstrap.urlHeaders.Authorization",
        reads=("EXP_BOOTSTRAP_AUTHORIZATION",),
        kind=of.SECRET,
        default=None,
        secret=True,
        help="Authorization header sent when bootstrapping",
        scope=Scope.INHERITED,
    )
    exp_server_side_sdk_config_tokens: Texts = option(
        "expServerSideSdkConfig.tokens",
        reads=("EXP_SERVER_SIDE_SDK_CONFIG_TOKENS",),
        kind=of.SECRETS,
        default=(),
        secret=True,
        reloads=True,
        help="tokens with which server-side SDKs and other proxies may read the configuration from this proxy",
        scope=Scope.OWN,
    )
    exp_custom_enrichers: Files = option(
        "expCustomEnrichers",
        reads=("EXP_CUSTOM_ENRICHERS_FILE",),
        kind=of.extension_files("enrichers", "docs/how-to/context-enrichers.md"),
        default=(),
        help="Python files that each export a list `enrichers` of context enrichers",
        scope=Scope.INHERITED,
    )
