"""For every option that text can give: a text that is not its default, and the normalised value it stands for."""

from __future__ import annotations

import json

from flagsvc.settings.table import BY_NAME

SAMPLES: dict[str, tuple[str, object]] = {
    "flagsvcUrl": (" https://flags.example.com/api/ ", "https://flags.example.com/api"),
    "flagsvcApiToken": ("*:development.sample-token", "*:development.sample-token"),
    "clientKeys": ("sample-key-1, sample-key-2", ("sample-key-1", "sample-key-2")),
    "proxySecrets": ("sample-key-3,sample-key-4", ("sample-key-3", "sample-key-4")),
    "port": ("8080", 8080),
    "proxyBasePath": ("base/path/", "/base/path"),
    "flagsvcAppName": ("web proxy", "web proxy"),
    "flagsvcInstanceId": ("instance-7", "instance-7"),
    "refreshInterval": ("0", 0),
    "metricsInterval": ("0", 0),
    "metricsJitter": ("2500", 2500),
    "environment": ("staging", "staging"),
    "projectName": ("checkout", "checkout"),
    "useJsonLogger": ("TRUE", True),
    "logLevel": ("Debug", "debug"),
    "customStrategies": ("a.py,b.py", ("a.py", "b.py")),
    "trustProxy": ("127.0.0.1, 192.168.1.1/24", ("127.0.0.1", "192.168.1.0/24")),
    "namePrefix": ("web.", "web."),
    "tags": ("team:web, url:http://x", (("team", "web"), ("url", "http://x"))),
    "clientKeysHeaderName": ("X-Client-Key", "x-client-key"),
    "enableOAS": ("yes", True),
    "enableAllEndpoint": ("on", True),
    "cors.allowedHeaders": ("X-One,X-Two", ("X-One", "X-Two")),
    "cors.credentials": ("t", True),
    "cors.exposedHeaders": ("ETag, X-Three", ("ETag", "X-Three")),
    "cors.maxAge": ("-1", -1),
    "cors.methods": ("get,POST,options", ("GET", "POST", "OPTIONS")),
    "cors.optionsSuccessStatus": ("200", 200),
    "cors.origin": ("https://A.example.com, https://*.example.org", ("https://a.example.com", "https://*.example.org")),
    "cors.preflightContinue": ("1", True),
    "httpOptions.rejectUnauthorized": ("off", False),
    "httpProxy": ("proxy.example.com:3128", "http://proxy.example.com:3128"),
    "httpsProxy": ("https://proxy.example.com", "https://proxy.example.com"),
    "noProxy": ("localhost,.example.com", ("localhost", ".example.com")),
    "expBootstrap.url": ("https://cdn.example.com/flags.json", "https://cdn.example.com/flags.json"),
    "expBootstrap.urlHeaders.Authorization": ("Bearer sample", "Bearer sample"),
    "expServerSideSdkConfig.tokens": ("sample-token-5,sample-token-6", ("sample-token-5", "sample-token-6")),
    "expCustomEnrichers": ("enrich.py", ("enrich.py",)),
    "host": ("[::1]", "::1"),
    "keepAliveTimeout": ("120", 120),
    "workers": ("4", 4),
    "workerTimeout": ("800", 800),
    "bodyLimit": ("2 kB", 2048),
    "metricsBodyLimit": ("2MB", 2 * 1024 * 1024),
    "headerLimit": ("32768", 32768),
    "queryLimit": ("8kB", 8192),
    "answerCacheBytes": ("1 MB", 1024 * 1024),
    "upstreamTimeout": ("1500", 1500),
    "metricsBuffer": ("500", 500),
    "metricsBufferBytes": ("2MB", 2 * 1024 * 1024),
    "metricsBatch": ("100", 100),
    "variantFeatureState": ("true", True),
    "hashEncoding": ("UTF-8", "utf8"),
    "storage": ("valkey://Flags.example.com/2", "redis://Flags.example.com/2"),
    "storagePassword": ("sample-password-9", "sample-password-9"),
    "storageCa": ("/etc/tls/storage-ca.pem", "/etc/tls/storage-ca.pem"),
    "storageCert": ("/etc/tls/storage.pem", "/etc/tls/storage.pem"),
    "storageKey": ("/etc/tls/storage-key.pem", "/etc/tls/storage-key.pem"),
    "storageKeyPassword": ("sample-password-10", "sample-password-10"),
    "storageTimeout": ("700", 700),
    "storagePrefix": ("flags:eu", "flags:eu"),
    "leaseTime": ("3000", 3000),
    "accessLog": ("true", True),
    "shutdownGrace": ("12", 12),
    "watchInterval": ("0", 0),
    "keyOverlap": ("300", 300),
    "tlsCert": ("/etc/tls/cert.pem", "/etc/tls/cert.pem"),
    "tlsKey": ("/etc/tls/key.pem", "/etc/tls/key.pem"),
    "tlsKeyPassword": ("sample-password-7", "sample-password-7"),
    "tlsMinVersion": ("TLSv1.3", "1.3"),
    "tlsClientCa": ("/etc/tls/callers.pem", "/etc/tls/callers.pem"),
    "tlsHandshakeTimeout": ("3", 3),
    "socketMode": ("600", "0600"),
    "adminAddress": ("[::1]:9090", "[::1]:9090"),
    "upstreamCa": ("/etc/tls/ca.pem", "/etc/tls/ca.pem"),
    "upstreamCert": ("/etc/tls/own.pem", "/etc/tls/own.pem"),
    "upstreamKey": ("/etc/tls/own-key.pem", "/etc/tls/own-key.pem"),
    "upstreamKeyPassword": ("sample-password-8", "sample-password-8"),
    "maxStaleness": ("300", 300),
    "retryAfterLimit": ("60000", 60_000),
    "ageHeader": ("X-Config-Age", "x-config-age"),
    "maxConnections": ("500", 500),
    "requestMemory": ("64 MB", 64 * 1024 * 1024),
    "headerTimeout": ("5", 5),
    "bodyTimeout": ("30", 30),
    "writeTimeout": ("30", 30),
    "jsonDepthLimit": ("16", 16),
    "contextPropertiesLimit": ("50", 50),
    "contextValueLimit": ("256", 256),
    "toggleLimit": ("100", 100),
    "rateLimitKey": ("200", 200),
    "rateLimitAddress": ("20", 20),
    "rateLimitBurst": ("40", 40),
    "enricherTimeout": ("250", 250),
    "enricherFailure": ("Context", "context"),
}

BASE = {
    "FLAGSVC_URL": "http://127.0.0.1:4242/api",
    "FLAGSVC_API_TOKEN": "base-token",
    "FLAGSVC_PROXY_CLIENT_KEYS": "base-key",
    "HOME": "/home/somebody",
}
"""An environment that is enough for a start."""


def base_without(name: str) -> dict[str, str]:
    """Return BASE without what would stand in the way of the option `name`, with what it has no effect without."""
    in_the_way = {
        "flagsvcUrl": "FLAGSVC_URL",
        "flagsvcApiToken": "FLAGSVC_API_TOKEN",
        "clientKeys": "FLAGSVC_PROXY_CLIENT_KEYS",
        "proxySecrets": "FLAGSVC_PROXY_CLIENT_KEYS",
    }
    left = {variable: value for variable, value in BASE.items() if variable != in_the_way.get(name)}
    return left | {BY_NAME[other].reads[0]: SAMPLES[other][0] for other in needed(name)}


def needed(name: str) -> tuple[str, ...]:
    """Return the options that `name` has no effect without."""
    return (BY_NAME[name].needs,) if BY_NAME[name].needs else ()


def kept_as(name: str) -> str:
    """Return the option under which the value of `name` is found in the end."""
    return "clientKeys" if name == "proxySecrets" else name


def toml(name: str, value: object) -> str:
    """Return a line of TOML; JSON's texts, numbers, booleans and lists read the same there."""
    return f"{name} = {json.dumps(value, ensure_ascii=False)}\n"
