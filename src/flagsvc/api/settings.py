"""What the HTTP contract needs to know of the options (specification: Configuration)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """The options that change what a caller sees. Header names are lower case, limits bytes, the base path `/base` or empty.

    `custom_strategies` are their names. Keys and tokens are left out of the repr.
    """

    client_keys: tuple[str, ...] = field(repr=False)
    server_tokens: tuple[str, ...] = field(default=(), repr=False)
    client_keys_header_name: str = "authorization"
    base_path: str = ""
    app_name: str = "flagsvc-proxy"
    environment: str | None = None
    trust_proxy: bool | tuple[str, ...] = False
    enable_oas: bool = False
    enable_all_endpoint: bool = False
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
    header_limit: int = 64 * 1024
    query_limit: int = 16 * 1024
    answer_cache_bytes: int = 4 * 1024 * 1024
    custom_strategies: tuple[str, ...] = ()
    access_log: bool = False
