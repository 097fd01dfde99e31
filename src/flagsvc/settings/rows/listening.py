"""The options of the sockets that the proxy listens on, of its processes and of their end."""

from __future__ import annotations

from flagsvc.settings import kinds as of
from flagsvc.settings import network as net
from flagsvc.settings.base import Converted, Options, Texts
from flagsvc.settings.option import Section, option


class ListeningOptions(Options):
    """Where the proxy listens, how it speaks, and how it ends."""

    section = Section.LISTENING

    port: int = option(
        "port",
        reads=("PORT", "PROXY_PORT"),
        kind=of.PORT,
        default=3000,
        help="port to listen on; 0 takes a free one",
    )
    proxy_base_path: str = option(
        "proxyBasePath",
        reads=("PROXY_BASE_PATH",),
        kind=net.BASE_PATH,
        default="",
        help="path in front of every other: base/path gives /base/path/proxy",
    )
    host: str | None = option(
        "host",
        reads=("FLAGSVC_HOST",),
        kind=net.HOST,
        default=None,
        default_text="all addresses, IPv4 and IPv6",
        help="address to listen on; :: is all addresses too, and fails if IPv6 is off",
    )
    keep_alive_timeout: int = option(
        "keepAliveTimeout",
        reads=("FLAGSVC_KEEP_ALIVE_TIMEOUT",),
        kind=of.SECONDS,
        default=75,
        help="seconds an idle connection stays open; keep it above the idle time of the load balancer in front",
        stops="keeping connections without asking anything",
    )
    workers: Converted[int, int | str] = option(
        "workers",
        reads=("FLAGSVC_WORKERS",),
        kind=of.WORKERS,
        default=1,
        help="processes that answer requests on the port; with more than one, a further process fetches the configuration"
        " for all; `auto`: one for each processor available to this process",
    )
    worker_timeout: int = option(
        "workerTimeout",
        reads=("FLAGSVC_WORKER_TIMEOUT",),
        kind=of.integer(500, 3_600_000, "MS", or_none=True),
        default=3_000,
        help="milliseconds after which one of several workers that does not answer its parent is replaced; make it longer than"
        " custom code may keep a worker busy; 0 replaces only those that end",
        advanced=True,
    )
    shutdown_grace: int = option(
        "shutdownGrace",
        reads=("FLAGSVC_SHUTDOWN_GRACE",),
        kind=of.integer(0, 3600, "SECONDS"),
        default=5,
        help="seconds that requests are still answered after SIGTERM, while readiness fails and load balancers look elsewhere;"
        " make it longer than they take to notice",
    )
    max_connections: int = option(
        "maxConnections",
        reads=("FLAGSVC_MAX_CONNECTIONS",),
        kind=of.integer(1, 1_000_000),
        default=10_000,
        help="connections that each worker holds at once; one more is answered 503 and closed",
        stops="opening connections until there is no file or memory left for others",
        advanced=True,
    )
    max_streams: int = option(
        "maxStreams",
        reads=("FLAGSVC_MAX_STREAMS",),
        kind=of.integer(0, 1_000_000),
        default=10_000,
        help="event streams, which tell callers of changes, that each worker holds besides maxConnections; one more is answered"
        " 429, and with 0 all get 404",
        stops="opening streams until there is no file or memory left for others",
    )
    max_streams_per_network: int = option(
        "maxStreamsPerNetwork",
        reads=("FLAGSVC_MAX_STREAMS_PER_NETWORK",),
        kind=of.integer(1, 1_000_000),
        default=1000,
        help="event streams that one network holds open, an IPv4 address or an IPv6 /64; one more is answered 429",
        stops="taking the streams of all other callers",
        advanced=True,
    )
    stream_window: int | None = option(
        "streamWindow",
        reads=("FLAGSVC_STREAM_WINDOW",),
        kind=of.integer(0, 60_000, "MS"),
        default=None,
        default_text="grows with their number",
        help="milliseconds over which the callers with streams hear of a change, so that they do not all ask at once; by default"
        " 0 for up to 100 streams, else 100 for each 1,000",
        advanced=True,
    )
    offer_streaming: bool = option(
        "offerStreaming",
        reads=("FLAGSVC_OFFER_STREAMING",),
        kind=of.BOOLEAN,
        default=False,
        help="tell server-side SDKs that poll without a filter that they may open an event stream instead; those that can do so by"
        " themselves",
        advanced=True,
    )
    request_memory: int | None = option(
        "requestMemory",
        reads=("FLAGSVC_REQUEST_MEMORY",),
        kind=of.SIZE,
        default=None,
        default_text="an eighth of the memory there is",
        help="bytes of requests and answers under way that each worker holds; over it, those that hold most are answered 503, and"
        " one network may hold half of it",
        stops="filling the memory with requests that never end, or with answers that are not taken",
        advanced=True,
    )
    header_timeout: int = option(
        "headerTimeout",
        reads=("FLAGSVC_HEADER_TIMEOUT",),
        kind=of.SECONDS,
        default=20,
        help="seconds until the whole head of a request must be there",
        stops="unfinished requests, or single bytes at long intervals",
        advanced=True,
    )
    body_timeout: int = option(
        "bodyTimeout",
        reads=("FLAGSVC_BODY_TIMEOUT",),
        kind=of.SECONDS,
        default=60,
        help="seconds after its head until the whole body of a request must be there",
        stops="announcing a body and not sending it, or a byte now and then",
        advanced=True,
    )
    write_timeout: int = option(
        "writeTimeout",
        reads=("FLAGSVC_WRITE_TIMEOUT",),
        kind=of.SECONDS,
        default=60,
        help="seconds that a caller may take nothing of its answer",
        stops="asking, and not reading the answer",
        advanced=True,
    )
    tls_cert: str | None = option(
        "tlsCert",
        reads=("FLAGSVC_TLS_CERT",),
        kind=of.PATH,
        default=None,
        help="certificate with its chain, PEM, to speak HTTPS with; read again when the file changes",
    )
    tls_key: str | None = option(
        "tlsKey",
        reads=("FLAGSVC_TLS_KEY",),
        kind=of.PATH,
        default=None,
        default_text="in the certificate's file",
        needs="tlsCert",
        help="key of the certificate, PEM",
    )
    tls_key_password: str | None = option(
        "tlsKeyPassword",
        reads=("FLAGSVC_TLS_KEY_PASSWORD",),
        kind=of.PASSWORD,
        default=None,
        secret=True,
        needs="tlsCert",
        help="password of the key, where it is encrypted",
        advanced=True,
    )
    tls_min_version: str = option(
        "tlsMinVersion",
        reads=("FLAGSVC_TLS_MIN_VERSION",),
        kind=of.TLS_VERSION,
        default="1.2",
        help="lowest version of TLS that callers may speak",
        advanced=True,
    )
    tls_client_ca: str | None = option(
        "tlsClientCa",
        reads=("FLAGSVC_TLS_CLIENT_CA",),
        kind=of.PATH,
        default=None,
        needs="tlsCert",
        help="authorities, PEM, of which every caller must show a certificate (mutual TLS)",
        advanced=True,
    )
    tls_handshake_timeout: int = option(
        "tlsHandshakeTimeout",
        reads=("FLAGSVC_TLS_HANDSHAKE_TIMEOUT",),
        kind=of.SECONDS,
        default=10,
        help="seconds after which a connection is closed whose TLS handshake is not done",
        stops="connections without a TLS handshake",
        advanced=True,
    )
    socket_mode: str = option(
        "socketMode",
        reads=("FLAGSVC_SOCKET_MODE",),
        kind=net.FILE_MODE,
        default="0660",
        help="mode of the files of Unix sockets: who may connect",
        advanced=True,
    )
    admin_address: str | None = option(
        "adminAddress",
        reads=("FLAGSVC_ADMIN_ADDRESS",),
        kind=net.ADDRESS,
        default=None,
        help="a second address, plain HTTP, for health, metrics and pages; metrics are then answered there alone, also before the"
        " first configuration",
    )
    admin_pages: bool = option(
        "adminPages",
        reads=("FLAGSVC_ADMIN_PAGES",),
        kind=of.BOOLEAN,
        default=True,
        help="serve pages for people at `adminAddress`, below /ui",
    )
    admin_page_keys: Texts = option(
        "adminPageKeys",
        reads=("FLAGSVC_ADMIN_PAGE_KEYS",),
        kind=of.SECRETS,
        default=(),
        secret=True,
        help="keys that open the pages at `adminAddress`, where that is neither loopback nor a Unix socket; without any, only the"
        " status is shown there, without names of flags",
    )
