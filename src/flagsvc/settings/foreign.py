"""Variables of Unleash Edge and Node.js that a new user may set, and the names of the options that replace them.

The table in docs/how-to/move-over-from-edge.md lists the same for Edge's flags.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from flagsvc.settings.kinds import is_blank
from flagsvc.settings.option import is_injected


class Foreign(NamedTuple):
    """What replaces a variable of another program (`here`). There is no warning if a variable of `instead` has the same value.

    Many programs use a `common` name. It gives a warning only if a variable that only Edge uses is set, too.
    """

    here: str
    common: bool = False
    instead: tuple[str, ...] = ()


NOTHING = "flagsvc has no equivalent"
LISTS = "allow and deny addresses in the load balancer"
REDIS = "FLAGSVC_STORAGE, one URL: redis://user:password@host:6379"
AUTHORITIES = ("FLAGSVC_UPSTREAM_CA", "UNLEASH_UPSTREAM_CA", "SSL_CERT_FILE")

FOREIGN: dict[str, Foreign] = {
    "UPSTREAM_URL": Foreign("FLAGSVC_URL, with /api behind it"),
    "TOKENS": Foreign("FLAGSVC_API_TOKEN, one backend token"),
    "PRETRUSTED_TOKENS": Foreign("FLAGSVC_PROXY_CLIENT_KEYS, the keys that callers send, without `@environment`"),
    "FRONTEND_TOKENS": Foreign("FLAGSVC_PROXY_CLIENT_KEYS"),
    "CLIENT_TOKENS": Foreign("EXP_SERVER_SIDE_SDK_CONFIG_TOKENS"),
    "BOOTSTRAP_FILE": Foreign("FLAGSVC_URL=file:///path/to/document.json", common=True),
    "BASE_PATH": Foreign("PROXY_BASE_PATH, or FLAGSVC_SERVER_BASE_PATH for the flag server"),
    "INTERFACE": Foreign("FLAGSVC_HOST", common=True),
    "APP_NAME": Foreign("FLAGSVC_APP_NAME", common=True),
    "INSTANCE_ID": Foreign("FLAGSVC_INSTANCE_ID", common=True),
    "WORKERS": Foreign("FLAGSVC_WORKERS", common=True),
    "FEATURES_REFRESH_INTERVAL_SECONDS": Foreign("FLAGSVC_FETCH_INTERVAL, in milliseconds"),
    "METRICS_INTERVAL_SECONDS": Foreign("FLAGSVC_METRICS_INTERVAL, in milliseconds"),
    "UPSTREAM_REQUEST_TIMEOUT": Foreign("FLAGSVC_UPSTREAM_TIMEOUT, in milliseconds"),
    "UPSTREAM_SOCKET_TIMEOUT": Foreign("FLAGSVC_UPSTREAM_TIMEOUT, in milliseconds"),
    "TOKEN_REVALIDATION_INTERVAL_SECONDS": Foreign(NOTHING),
    "BACKUP_FOLDER": Foreign("FLAGSVC_STORAGE=file:///folder"),
    "REDIS_URL": Foreign("FLAGSVC_STORAGE=redis://host:6379"),
    "REDIS_HOST": Foreign(REDIS, common=True),
    "REDIS_PORT": Foreign(REDIS, common=True),
    "REDIS_USERNAME": Foreign(REDIS, common=True),
    "REDIS_PASSWORD": Foreign("FLAGSVC_STORAGE_PASSWORD", common=True),
    "REDIS_SCHEME": Foreign(REDIS, common=True),
    "REDIS_SECURE": Foreign("FLAGSVC_STORAGE=rediss://host:6379", common=True),
    "REDIS_MODE": Foreign(f"{NOTHING}: a single server is spoken to, no cluster", common=True),
    "REDIS_READ_CONNECTION_TIMEOUT_MILLISECONDS": Foreign("FLAGSVC_STORAGE_TIMEOUT"),
    "REDIS_WRITE_CONNECTION_TIMEOUT_MILLISECONDS": Foreign("FLAGSVC_STORAGE_TIMEOUT"),
    "S3_BUCKET_NAME": Foreign(f"{NOTHING}: FLAGSVC_STORAGE is a folder or a Redis server", common=True),
    "UPSTREAM_CERTIFICATE_FILE": Foreign("FLAGSVC_UPSTREAM_CA"),
    "SKIP_SSL_VERIFICATION": Foreign("HTTP_OPTIONS_REJECT_UNAUTHORIZED=false"),
    "PKCS8_CLIENT_CERTIFICATE_FILE": Foreign("FLAGSVC_UPSTREAM_CERT"),
    "PKCS8_CLIENT_KEY_FILE": Foreign("FLAGSVC_UPSTREAM_KEY"),
    "PKCS12_IDENTITY_FILE": Foreign("FLAGSVC_UPSTREAM_CERT and FLAGSVC_UPSTREAM_KEY, in PEM form"),
    "PKCS12_PASSPHRASE": Foreign("FLAGSVC_UPSTREAM_KEY_PASSWORD"),
    "TLS_ENABLE": Foreign("FLAGSVC_TLS_CERT and FLAGSVC_TLS_KEY: PORT then speaks HTTPS alone", common=True),
    "TLS_SERVER_CERT": Foreign("FLAGSVC_TLS_CERT"),
    "TLS_SERVER_KEY": Foreign("FLAGSVC_TLS_KEY"),
    "TLS_SERVER_PORT": Foreign("PORT, which speaks HTTPS where FLAGSVC_TLS_CERT is given"),
    "REDIRECT_HTTP_TO_HTTPS": Foreign(NOTHING, common=True),
    "EDGE_KEEPALIVE_TIMEOUT": Foreign("FLAGSVC_KEEP_ALIVE_TIMEOUT"),
    "EDGE_REQUEST_TIMEOUT": Foreign("FLAGSVC_HEADER_TIMEOUT and FLAGSVC_BODY_TIMEOUT"),
    "CLIENT_KEEPALIVE_TIMEOUT": Foreign(NOTHING),
    "PROXY_TRUSTED_SERVERS": Foreign("TRUST_PROXY, with the addresses and networks"),
    "TOKEN_HEADER": Foreign("CLIENT_KEY_HEADER_NAME"),
    "EDGE_AUTH_HEADER": Foreign("CLIENT_KEY_HEADER_NAME"),
    "UPSTREAM_AUTH_HEADER": Foreign("FLAGSVC_UPSTREAM_AUTH_HEADER"),
    "CUSTOM_CLIENT_HEADERS": Foreign("FLAGSVC_UPSTREAM_HEADERS"),
    "ALLOW_LIST": Foreign(f"{NOTHING}: {LISTS}", common=True),
    "DENY_LIST": Foreign(f"{NOTHING}: {LISTS}", common=True),
    "DISABLE_ALL_ENDPOINT": Foreign("ENABLE_ALL_ENDPOINT, which is off by default"),
    "LOG_FORMAT": Foreign("JSON_LOGGER=true for JSON", common=True),
    "NODE_EXTRA_CA_CERTS": Foreign(
        "FLAGSVC_UPSTREAM_CA, or SSL_CERT_FILE in place of the system's", instead=AUTHORITIES
    ),
}
"""Variable → what to set here. A value is never shown: it may be a token."""


def foreign(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each variable of another program that was probably meant for the proxy."""
    there = {
        name: FOREIGN[name]
        for name, value in sorted(environment.items())
        if name in FOREIGN and not is_blank(value) and not is_injected(name, value)
    }
    edge = any(not row.common and not row.instead for row in there.values())
    for name, row in there.items():
        told = any(environment.get(other) == environment[name] for other in row.instead)
        if (edge or not row.common) and not told:
            yield f"environment {name}: flagsvc does not read it; {link(row)}"


def link(row: Foreign) -> str:
    """Return the hint of a warning: the name to use, or that there is none."""
    return row.here if row.here.startswith(NOTHING) else f"use {row.here}"
