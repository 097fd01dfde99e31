"""The options of evaluation."""

from __future__ import annotations

from flagsvc.settings import kinds as of
from flagsvc.settings.base import Files, Options, Size
from flagsvc.settings.option import Scope, Section, option


class EvaluationOptions(Options):
    """How flags are evaluated."""

    section = Section.EVALUATION

    environment: str | None = option(
        "environment",
        reads=("FLAGSVC_ENVIRONMENT",),
        kind=of.ENVIRONMENT,
        default=None,
        help="environment of every evaluation context; callers cannot override it",
        scope=Scope.INHERITED,
    )
    custom_strategies: Files = option(
        "customStrategies",
        reads=("FLAGSVC_CUSTOM_STRATEGIES_FILE",),
        kind=of.extension_files("strategies", "docs/how-to/custom-strategies.md"),
        default=(),
        help="Python files that each export a list `strategies` of custom activation strategies",
        scope=Scope.INHERITED,
    )
    answer_cache_bytes: Size = option(
        "answerCacheBytes",
        reads=("FLAGSVC_ANSWER_CACHE_BYTES",),
        kind=of.SIZE_OR_NONE,
        default=4 * 1024 * 1024,
        help="bytes of answers that each worker keeps for callers who ask the same again; 0 keeps none",
        scope=Scope.INHERITED,
        advanced=True,
    )
    class_cache_bytes: Size = option(
        "classCacheBytes",
        reads=("FLAGSVC_CLASS_CACHE_BYTES",),
        kind=of.SIZE_OR_NONE,
        default=8 * 1024 * 1024,
        help="bytes that each worker keeps to answer lists faster: what contexts that no constraint tells apart get alike;"
        " 0 keeps none",
        scope=Scope.INHERITED,
        advanced=True,
    )
    variant_feature_state: bool = option(
        "variantFeatureState",
        reads=("FLAGSVC_VARIANT_FEATURE_STATE",),
        kind=of.BOOLEAN,
        default=False,
        default_text="true if UNLEASH_URL names the upstream, as the reference answers; else false, as the contract says",
        follows="flagsvcUrl",
        help="repeat the toggle's state inside each variant (feature_enabled, featureEnabled), as some SDKs read it",
        scope=Scope.INHERITED,
        advanced=True,
    )
    hash_encoding: str = option(
        "hashEncoding",
        reads=("FLAGSVC_HASH_ENCODING",),
        kind=of.HASH_ENCODING,
        default="low-byte",
        help="bytes of a text that are hashed: low-byte as the reference proxy has it, utf8 as the Rust, Java and"
        " Python SDKs; the two differ for ids and groups outside ASCII",
        scope=Scope.INHERITED,
        advanced=True,
    )
    enricher_timeout: int = option(
        "enricherTimeout",
        reads=("FLAGSVC_ENRICHER_TIMEOUT",),
        kind=of.integer(1, 3_600_000, metavar="MS"),
        default=1000,
        help="milliseconds that all context enrichers together may take for one request; then they have failed",
        stops="requests that wait for custom code without end",
        scope=Scope.INHERITED,
        advanced=True,
    )
    enricher_failure: str = option(
        "enricherFailure",
        reads=("FLAGSVC_ENRICHER_FAILURE",),
        kind=of.choice(("error", "context"), {}),
        default="error",
        help="what a request gets whose context enrichers fail: error is a 500, context the answer to the context as it came",
        scope=Scope.INHERITED,
        advanced=True,
    )
