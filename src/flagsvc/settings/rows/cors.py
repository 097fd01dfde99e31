"""The options of cross-origin requests (CORS)."""

from __future__ import annotations

from flagsvc.settings import headers
from flagsvc.settings import kinds as of
from flagsvc.settings import network as net
from flagsvc.settings.base import Options, Origins, Texts
from flagsvc.settings.option import Scope, Section, option


class CorsOptions(Options):
    """Which pages of other origins may send requests, and what their scripts may send and read."""

    section = Section.CORS

    cors_allowed_headers: Texts = option(
        "cors.allowedHeaders",
        reads=("CORS_ALLOWED_HEADERS",),
        kind=headers.HEADER_NAMES,
        default=(),
        default_text="those the preflight asks for",
        help="allowed request headers",
        advanced=True,
    )
    cors_credentials: bool = option(
        "cors.credentials",
        reads=("CORS_CREDENTIALS",),
        kind=of.BOOLEAN,
        default=False,
        help="allow credentials",
    )
    cors_exposed_headers: Texts = option(
        "cors.exposedHeaders",
        reads=("CORS_EXPOSED_HEADERS",),
        kind=headers.HEADER_NAMES,
        default=("ETag",),
        help="response headers that scripts may read",
        advanced=True,
    )
    cors_max_age: int = option(
        "cors.maxAge",
        reads=("CORS_MAX_AGE",),
        kind=of.integer(-1, metavar="SECONDS"),
        default=172_800,
        help="seconds a browser may keep the answer to a preflight; -1 keeps none",
        advanced=True,
    )
    cors_methods: Texts = option(
        "cors.methods",
        reads=("CORS_METHODS",),
        kind=headers.METHODS,
        default=("GET", "POST"),
        help="allowed methods",
        advanced=True,
    )
    cors_options_success_status: int = option(
        "cors.optionsSuccessStatus",
        reads=("CORS_OPTIONS_SUCCESS_STATUS",),
        kind=of.integer(200, 299, metavar="STATUS"),
        default=204,
        help="status of the answer to a preflight",
        advanced=True,
    )
    cors_origin: Origins = option(
        "cors.origin",
        reads=("CORS_ORIGIN",),
        kind=net.ORIGINS,
        default="*",
        help="allowed origins: *, one, or several with commas between; https://*.example.com is a pattern",
        scope=Scope.INHERITED,
    )
    cors_preflight_continue: bool = option(
        "cors.preflightContinue",
        reads=("CORS_PREFLIGHT_CONTINUE",),
        kind=of.BOOLEAN,
        default=False,
        help="answer OPTIONS with 200 and Allow in place of the preflight's own answer",
        advanced=True,
    )
