"""For every option that text can give: a text that is not its default, and the normalised value it stands for."""

from __future__ import annotations

import json

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
    "bodyLimit": ("2 kB", 2048),
    "metricsBodyLimit": ("2MB", 2 * 1024 * 1024),
    "headerLimit": ("32768", 32768),
    "queryLimit": ("8kB", 8192),
    "answerCacheBytes": ("1 MB", 1024 * 1024),
    "upstreamTimeout": ("1500", 1500),
    "metricsBuffer": ("500", 500),
    "variantFeatureState": ("true", True),
    "hashEncoding": ("UTF-8", "utf8"),
    "storage": ("file:///var/lib/flags", "file:///var/lib/flags"),
    "accessLog": ("true", True),
}

BASE = {
    "FLAGSVC_URL": "http://127.0.0.1:4242/api",
    "FLAGSVC_API_TOKEN": "base-token",
    "FLAGSVC_PROXY_CLIENT_KEYS": "base-key",
    "HOME": "/home/somebody",
}
"""An environment that is enough for a start."""


def base_without(name: str) -> dict[str, str]:
    """Return BASE without what would stand in the way of the option `name`."""
    in_the_way = {
        "flagsvcUrl": "FLAGSVC_URL",
        "flagsvcApiToken": "FLAGSVC_API_TOKEN",
        "clientKeys": "FLAGSVC_PROXY_CLIENT_KEYS",
        "proxySecrets": "FLAGSVC_PROXY_CLIENT_KEYS",
    }
    return {variable: value for variable, value in BASE.items() if variable != in_the_way.get(name)}


def kept_as(name: str) -> str:
    """Return the option under which the value of `name` is found in the end."""
    return "clientKeys" if name == "proxySecrets" else name


def toml(name: str, value: object) -> str:
    """Return a line of TOML; JSON's texts, numbers, booleans and lists read the same there."""
    return f"{name} = {json.dumps(value, ensure_ascii=False)}\n"
