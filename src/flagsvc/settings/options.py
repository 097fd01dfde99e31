"""The options in code: `ProxyOptions`, frozen, validated and normalised by the rows of OPTIONS.

The same rows serve `load.py`; a value means the same wherever it is given.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.advice import advice_on
from flagsvc.settings.fleet import server_at
from flagsvc.settings.names import flatten
from flagsvc.settings.network import Origin, TrustProxy
from flagsvc.settings.option import Option
from flagsvc.settings.parse import is_blank, nearest
from flagsvc.settings.settle import CODE, Given, settle
from flagsvc.settings.table import BY_FIELD, BY_NAME, OPTIONS

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["OPTIONS", "GivenOptions", "Option", "ProxyOptions", "advice"]

Texts: TypeAlias = str | Iterable[str]
"""A list of texts, or one text with commas between."""


class GivenOptions(TypedDict, total=False):
    """What `ProxyOptions` takes: each option as a native value or as the text a variable would hold; None is unset."""

    flagsvc_url: str
    flagsvc_api_token: str
    client_keys: Texts
    proxy_secrets: Texts
    port: int
    proxy_base_path: str
    flagsvc_app_name: str
    flagsvc_instance_id: str
    refresh_interval: int
    metrics_interval: int
    metrics_jitter: int
    environment: str | None
    project_name: str | None
    logger: object
    use_json_logger: bool
    log_level: str
    custom_strategies: str | os.PathLike[str] | Iterable[object]
    trust_proxy: bool | Texts
    name_prefix: str | None
    tags: str | Mapping[str, str] | Iterable[str | tuple[str, str]]
    client_keys_header_name: str
    storage_provider: object
    enable_oas: bool
    enable_all_endpoint: bool
    cors_allowed_headers: Texts
    cors_credentials: bool
    cors_exposed_headers: Texts
    cors_max_age: int
    cors_methods: Texts
    cors_options_success_status: int
    cors_origin: Texts
    cors_preflight_continue: bool
    http_options_reject_unauthorized: bool
    http_proxy: str | None
    https_proxy: str | None
    exp_bootstrap: str | Mapping[str, object] | None
    exp_bootstrap_url: str | None
    exp_bootstrap_authorization: str | None
    exp_server_side_sdk_config_tokens: Texts
    exp_custom_enrichers: str | os.PathLike[str] | Iterable[object]
    host: str | None
    keep_alive_timeout: int
    workers: int | str
    worker_timeout: int
    body_limit: int | str
    metrics_body_limit: int | str
    header_limit: int | str
    query_limit: int | str
    answer_cache_bytes: int | str
    no_proxy: Texts
    upstream_timeout: int
    metrics_buffer: int
    metrics_buffer_bytes: int | str
    metrics_batch: int
    variant_feature_state: bool
    hash_encoding: str
    storage: str | os.PathLike[str]
    storage_password: str | None
    storage_ca: str | None
    storage_cert: str | None
    storage_key: str | None
    storage_key_password: str | None
    storage_timeout: int
    storage_prefix: str
    lease_time: int
    access_log: bool
    max_staleness: int
    retry_after_limit: int
    age_header: str | None
    shutdown_grace: int
    watch_interval: int
    key_overlap: int
    max_connections: int
    request_memory: int | None
    header_timeout: int
    body_timeout: int
    write_timeout: int
    json_depth_limit: int
    context_properties_limit: int
    context_value_limit: int
    toggle_limit: int
    rate_limit_key: int
    rate_limit_address: int
    rate_limit_burst: int
    enricher_timeout: int
    enricher_failure: str
    tls_cert: str | None
    tls_key: str | None
    tls_key_password: str | None
    tls_min_version: str
    tls_client_ca: str | None
    tls_handshake_timeout: int
    socket_mode: str
    admin_address: str | None
    upstream_ca: str | None
    upstream_cert: str | None
    upstream_key: str | None
    upstream_key_password: str | None


@dataclass(frozen=True, init=False, repr=False)
class ProxyOptions:
    """The options of one proxy (specification: Configuration), valid and normalised; intervals are milliseconds.

    Takes what `GivenOptions` lists; an option that is None, or a text of blanks, has its default. `proxy_secrets` and
    `exp_bootstrap` are other ways to give `client_keys`, `exp_bootstrap_url` and `exp_bootstrap_authorization`: they are
    found there, and are themselves empty. Raises `ConfigurationError` with every problem at once. The environment is
    not read: `flagsvc.settings.load.load` does that.
    """

    flagsvc_url: str
    flagsvc_api_token: str
    client_keys: tuple[str, ...]
    proxy_secrets: tuple[str, ...]
    port: int
    proxy_base_path: str
    flagsvc_app_name: str
    flagsvc_instance_id: str
    refresh_interval: int
    metrics_interval: int
    metrics_jitter: int
    environment: str | None
    project_name: str | None
    logger: object
    use_json_logger: bool
    log_level: str
    custom_strategies: tuple[Any, ...]
    trust_proxy: TrustProxy
    name_prefix: str | None
    tags: tuple[tuple[str, str], ...]
    client_keys_header_name: str
    storage_provider: Any
    enable_oas: bool
    enable_all_endpoint: bool
    cors_allowed_headers: tuple[str, ...]
    cors_credentials: bool
    cors_exposed_headers: tuple[str, ...]
    cors_max_age: int
    cors_methods: tuple[str, ...]
    cors_options_success_status: int
    cors_origin: Origin
    cors_preflight_continue: bool
    http_options_reject_unauthorized: bool
    http_proxy: str | None
    https_proxy: str | None
    exp_bootstrap: None
    exp_bootstrap_url: str | None
    exp_bootstrap_authorization: str | None
    exp_server_side_sdk_config_tokens: tuple[str, ...]
    exp_custom_enrichers: tuple[Any, ...]
    host: str | None
    keep_alive_timeout: int
    workers: int
    worker_timeout: int
    body_limit: int
    metrics_body_limit: int
    header_limit: int
    query_limit: int
    answer_cache_bytes: int
    no_proxy: tuple[str, ...]
    upstream_timeout: int
    metrics_buffer: int
    metrics_buffer_bytes: int
    metrics_batch: int
    variant_feature_state: bool
    hash_encoding: str
    storage: str
    storage_password: str | None
    storage_ca: str | None
    storage_cert: str | None
    storage_key: str | None
    storage_key_password: str | None
    storage_timeout: int
    storage_prefix: str
    lease_time: int
    access_log: bool
    max_staleness: int
    retry_after_limit: int
    age_header: str | None
    shutdown_grace: int
    watch_interval: int
    key_overlap: int
    max_connections: int
    request_memory: int | None
    header_timeout: int
    body_timeout: int
    write_timeout: int
    json_depth_limit: int
    context_properties_limit: int
    context_value_limit: int
    toggle_limit: int
    rate_limit_key: int
    rate_limit_address: int
    rate_limit_burst: int
    enricher_timeout: int
    enricher_failure: str
    tls_cert: str | None
    tls_key: str | None
    tls_key_password: str | None
    tls_min_version: str
    tls_client_ca: str | None
    tls_handshake_timeout: int
    socket_mode: str
    admin_address: str | None
    upstream_ca: str | None
    upstream_cert: str | None
    upstream_key: str | None
    upstream_key_password: str | None

    def __init__(self, **given: Unpack[GivenOptions]) -> None:
        entries, problems = _entries(given)
        settled = settle(entries, os.environ, in_code=True)
        problems += settled.problems.values()
        if problems:
            del given, entries, settled  # secrets are among them, and a traceback keeps what its frames hold
            raise ConfigurationError(problems)
        for text in settled.deprecations:
            _warn(text)
        for option in OPTIONS:
            object.__setattr__(self, option.field, settled.values[option.name])

    def __repr__(self) -> str:
        """Return the options that are not at their defaults, secrets masked."""
        shown = (
            f"{field.name}={BY_FIELD[field.name].masked(getattr(self, field.name))!r}"
            for field in fields(self)
            if getattr(self, field.name) != BY_FIELD[field.name].default_for(os.environ)
        )
        return f"ProxyOptions({', '.join(shown)})"


def _entries(given: Mapping[str, object]) -> tuple[dict[str, Given], list[str]]:
    """Return what was given in code by option name, and a problem for each name no option has."""
    entries: dict[str, Given] = {}
    problems: list[str] = []
    for field, value in given.items():
        if value is None:
            continue
        if field not in BY_FIELD:
            problems.append(f"unknown option `{field}`; {nearest(field, list(BY_FIELD))}".removesuffix("; "))
        elif is_blank(value):
            continue
        elif field == "exp_bootstrap":
            problems += _bootstrap(value, entries)
        else:
            entries[BY_FIELD[field].name] = Given(value, CODE)
    return entries, problems


def _bootstrap(value: object, entries: dict[str, Given]) -> list[str]:
    """Put the parts of expBootstrap, a URL or a mapping, where no part of their own is given; return the problems."""
    found, problems = flatten({"expBootstrap": {"url": value} if isinstance(value, str) else value}, "in code", BY_NAME)
    for name, part in found.items():
        entries.setdefault(name, Given(part, CODE))
    return problems


def _warn(text: str) -> None:
    """Raise a DeprecationWarning at the line that made the options."""
    from warnings import warn

    warn(text, DeprecationWarning, stacklevel=3)


def advice(options: ProxyOptions) -> list[str]:
    """Return a warning for each combination of options that is valid but probably a mistake."""
    return advice_on({name: getattr(options, option.field) for name, option in BY_NAME.items()})


def differing(one: ProxyOptions, other: ProxyOptions) -> list[Option]:
    """Return the rows of the options whose values differ."""
    return [option for option in OPTIONS if getattr(one, option.field) != getattr(other, option.field)]


def secrets_of(options: ProxyOptions) -> list[str]:
    """Return everything in the options that must be written nowhere."""
    found: list[str] = []
    for option in OPTIONS:
        value = getattr(options, option.field) if option.secret else None
        found += value if isinstance(value, tuple) else [value] if value else []
    server = server_at(options.storage)
    return found if server is None or not server.password else [*found, server.password]
