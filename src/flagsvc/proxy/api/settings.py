"""The options that the HTTP service uses (specification: Configuration)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """The options that change what a caller sees.

    `make_service_settings` in `proxy/generations/setup.py` sets every field. The defaults are only for services that are built
    directly: the operators' address and tests.

    Header names are in lower case, and the base path is `/base` or empty. Size limits are in bytes, those of a context in
    characters. Rates are in requests per second, `max_staleness` is in seconds, and `enricher_timeout` in milliseconds,
    `stream_window` too. `dialects` always has `ofrep`, whose switch is a setting of its own. `custom_strategies` are names.
    `upstream_environment` is the environment of the upstream's token. Keys and tokens are left out of the repr.
    """

    client_keys: tuple[str, ...] = field(repr=False)
    server_tokens: tuple[str, ...] = field(default=(), repr=False)
    client_keys_header_name: str = "authorization"
    base_path: str = ""
    app_name: str = "flagsvc-proxy"
    environment: str | None = None
    upstream_environment: str = "default"
    tags: tuple[tuple[str, str], ...] = ()
    trust_proxy: bool | tuple[str, ...] = False
    enable_oas: bool = False
    enable_all_endpoint: bool = False
    dialects: tuple[str, ...] = ("proxy", "frontend", "client", "ofrep")
    ofrep: bool = False
    cors_allowed_headers: tuple[str, ...] = ()
    cors_credentials: bool = False
    cors_exposed_headers: tuple[str, ...] = ("ETag",)
    cors_max_age: int = 172_800
    cors_methods: tuple[str, ...] = ("GET", "POST")
    cors_options_success_status: int = 204
    cors_origin: str | tuple[str, ...] = "*"
    cors_preflight_continue: bool = False
    body_limit: int = 100 * 1024
    metrics_body_limit: int = 1024 * 1024
    header_limit: int = 16 * 1024
    query_limit: int = 16 * 1024
    json_depth_limit: int = 32
    context_properties_limit: int = 250
    context_value_limit: int = 4096
    toggle_limit: int = 5000
    rate_limit_key: int = 0
    rate_limit_address: int = 0
    rate_limit_burst: int = 0
    max_streams: int = 10_000
    max_streams_per_network: int = 1000
    stream_window: int | None = None
    offer_streaming: bool = False
    enricher_timeout: int = 1000
    enricher_failure: str = "error"
    answer_cache_bytes: int = 4 * 1024 * 1024
    custom_strategies: tuple[str, ...] = ()
    impact_metrics: tuple[str, ...] = ()
    access_log: bool = False
    max_staleness: int = 0
    age_header: str | None = None
    admin_address: str | None = None

    @property
    def without_admin_address(self) -> bool:
        """Whether operators use the same address as callers."""
        return self.admin_address is None
