"""The options of this implementation beyond the specification's tables (behaviour: Drop-in, limits, Evaluation)."""

from __future__ import annotations

from flagsvc.settings import defaults
from flagsvc.settings import network as net
from flagsvc.settings import parse as of
from flagsvc.settings.option import Option, Section

ADDED: tuple[Option, ...] = (
    Option(
        name="host",
        reads=("FLAGSVC_HOST",),
        kind=net.HOST,
        section=Section.LISTENING,
        default_text="all addresses, IPv4 and IPv6",
        help="address to listen on",
    ),
    Option(
        name="keepAliveTimeout",
        reads=("FLAGSVC_KEEP_ALIVE_TIMEOUT",),
        kind=of.SECONDS,
        section=Section.LISTENING,
        default=75,
        help="seconds an idle connection stays open; keep it above the idle time of the load balancer in front",
    ),
    Option(
        name="workers",
        reads=("FLAGSVC_WORKERS",),
        kind=of.integer(1, 256),
        section=Section.LISTENING,
        default=1,
        help="processes that answer requests on the port; with more than one another keeps the configuration for all",
    ),
    Option(
        name="bodyLimit",
        reads=("FLAGSVC_BODY_LIMIT",),
        kind=of.SIZE,
        section=Section.CALLERS,
        default=100 * 1024,
        help="largest body of a request, packed or unpacked",
    ),
    Option(
        name="metricsBodyLimit",
        reads=("FLAGSVC_METRICS_BODY_LIMIT",),
        kind=of.SIZE,
        section=Section.CALLERS,
        default=1024 * 1024,
        help="largest body of a usage metrics post, packed or unpacked",
    ),
    Option(
        name="headerLimit",
        reads=("FLAGSVC_HEADER_LIMIT",),
        kind=of.SIZE,
        section=Section.CALLERS,
        default=64 * 1024,
        help="largest header block of a request",
    ),
    Option(
        name="queryLimit",
        reads=("FLAGSVC_QUERY_LIMIT",),
        kind=of.SIZE,
        section=Section.CALLERS,
        default=16 * 1024,
        help="longest query string",
    ),
    Option(
        name="answerCacheBytes",
        reads=("FLAGSVC_ANSWER_CACHE_BYTES",),
        kind=of.SIZE_OR_NONE,
        section=Section.EVALUATION,
        default=4 * 1024 * 1024,
        help="bytes of answers that each worker keeps for callers who ask the same again; 0 keeps none",
    ),
    Option(
        name="noProxy",
        reads=("NO_PROXY", "no_proxy"),
        kind=of.TEXTS,
        section=Section.UPSTREAM,
        default=(),
        help="hosts and domains that are reached without the outbound proxy; * for all",
    ),
    Option(
        name="upstreamTimeout",
        reads=("FLAGSVC_UPSTREAM_TIMEOUT",),
        kind=of.integer(1, metavar="MS"),
        section=Section.UPSTREAM,
        default=10_000,
        help="milliseconds after which a request to the upstream server is given up",
    ),
    Option(
        name="metricsBuffer",
        reads=("FLAGSVC_METRICS_BUFFER",),
        kind=of.integer(1),
        section=Section.METRICS,
        default=100_000,
        help="counters of toggles and variants kept while they cannot be sent; what comes on top is dropped and counted",
    ),
    Option(
        name="variantFeatureState",
        reads=("FLAGSVC_VARIANT_FEATURE_STATE",),
        kind=of.BOOLEAN,
        section=Section.EVALUATION,
        default=False,
        help="repeat the toggle's state inside each variant (feature_enabled, featureEnabled), as some SDKs read it",
    ),
    Option(
        name="hashEncoding",
        reads=("FLAGSVC_HASH_ENCODING",),
        kind=of.HASH_ENCODING,
        section=Section.EVALUATION,
        default="low-byte",
        help="bytes of a text that are hashed: low-byte as the reference proxy has it, utf8 as the Rust, Java and"
        " Python SDKs; the two differ for ids and groups outside ASCII",
    ),
    Option(
        name="storage",
        reads=("FLAGSVC_STORAGE",),
        kind=net.STORAGE,
        section=Section.STORAGE,
        default_from=defaults.storage,
        default_text="the user's state folder: $XDG_STATE_HOME/flagsvc, else ~/.local/state/flagsvc",
        help="folder that keeps the last configuration, to start from while upstream is away; none keeps nothing",
    ),
    Option(
        name="accessLog",
        reads=("FLAGSVC_ACCESS_LOG",),
        kind=of.BOOLEAN,
        section=Section.LOGGING,
        default=False,
        help="log a line for each request: method, route, status, size and time, nothing about the user",
    ),
)
