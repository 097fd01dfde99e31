"""The options of this implementation beyond the specification's tables (behaviour: Drop-in, limits, Evaluation)."""

from __future__ import annotations

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
        name="workerTimeout",
        reads=("FLAGSVC_WORKER_TIMEOUT",),
        kind=of.integer_or_none(500, 3_600_000, "MS"),
        section=Section.LISTENING,
        default=2000,
        help="milliseconds after which one of several workers that does not answer its parent is replaced; make it longer than"
        " custom code may keep a worker busy; 0 replaces only those that end",
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
        default=16 * 1024,
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
        name="ageHeader",
        reads=("FLAGSVC_AGE_HEADER",),
        kind=net.ANSWER_HEADER,
        section=Section.CALLERS,
        help="name of a header of every answer with the seconds since the last good answer from upstream, such as Age;"
        " unset, there is none",
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
        name="maxStaleness",
        reads=("FLAGSVC_MAX_STALENESS",),
        kind=of.integer(0, 31_536_000, metavar="SECONDS"),
        section=Section.UPSTREAM,
        default=0,
        help="seconds without a good answer from upstream after which /proxy/ready says no, while all else is answered as"
        " before; 0 for never",
    ),
    Option(
        name="retryAfterLimit",
        reads=("FLAGSVC_RETRY_AFTER_LIMIT",),
        kind=of.integer(0, 3_600_000, metavar="MS"),
        section=Section.UPSTREAM,
        default=300_000,
        help="milliseconds of a pause that are kept where the upstream server asks for more (Retry-After); 0 keeps none",
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
        name="metricsBufferBytes",
        reads=("FLAGSVC_METRICS_BUFFER_BYTES",),
        kind=of.SIZE,
        section=Section.METRICS,
        default=8 * 1024 * 1024,
        help="bytes of such counters kept, as they would be sent; what comes on top is dropped and counted",
    ),
    Option(
        name="metricsBatch",
        reads=("FLAGSVC_METRICS_BATCH",),
        kind=of.integer(1),
        section=Section.METRICS,
        default=10_000,
        help="most counters of toggles and variants in one post; fewer are sent where the upstream finds a post too large",
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
        name="accessLog",
        reads=("FLAGSVC_ACCESS_LOG",),
        kind=of.BOOLEAN,
        section=Section.LOGGING,
        default=False,
        help="log a line for each request: method, route, status, size and time, nothing about the user",
    ),
)
