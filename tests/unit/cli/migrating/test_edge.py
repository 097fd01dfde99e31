"""Every variable of Edge is translated, or named in a note; what several variables say together is one option here."""

from __future__ import annotations

import pytest

from flagsvc.cli.migrating.edge import translate_edge
from flagsvc.cli.migrating.migration import KNOWN, About, Migration
from flagsvc.settings.edge import BY_VARIABLE, ROWS, Takes

BASE = {"UPSTREAM_URL": "https://flags.example.com", "TOKENS": "*:production.s3cret"}
OFFLINE = {"BOOTSTRAP_FILE": "/flags.json"}
SAMPLES = {
    "PORT": "8080",
    "INTERFACE": "127.0.0.1",
    "BASE_PATH": "/edge",
    "TLS_SERVER_PORT": "8443",
    "CORS_ORIGIN": "https://shop.example.com",
    "CORS_MAX_AGE": "60",
    "CORS_METHODS": "PUT",
    "CUSTOM_CLIENT_HEADERS": "X-Key: s3cret",
    "PROXY_TRUSTED_SERVERS": "10.0.0.1",
    "PRETRUSTED_TOKENS": "s3cret@production",
    "REDIS_URL": "redis://h:6379",
    "LOG_FORMAT": "json",
    "RUST_LOG": "debug",
    "BOOTSTRAP_FILE": "/f.json",
    "UPSTREAM_AUTH_HEADER": "X-Upstream",
    "EDGE_AUTH_HEADER": "X-Edge",
    "TOKEN_HEADER": "X-Token",
    "BACKUP_FOLDER": "/backup",
}
"""A value that is not the default, for variables that do not take any text or number."""
COMPANIONS = {
    "PROXY_TRUSTED_SERVERS": {"TRUST_PROXY": "true"},
    "UPSTREAM_URL": {"TOKENS": BASE["TOKENS"]},
    **{name: {"TLS_ENABLE": "true"} for name in ("TLS_SERVER_CERT", "TLS_SERVER_KEY", "TLS_SERVER_PORT")},
    **{name: {"REDIS_HOST": "h"} for name in BY_VARIABLE if name.startswith("REDIS_") and name != "REDIS_URL"},
}
"""Variable → what it has an effect with."""
SAME = {"REDIS_MODE": "single", "REDIS_SCHEME": "redis"}
"""Values that change nothing, and others that do."""
OTHER = {"REDIS_MODE": "cluster", "REDIS_SCHEME": "rediss", "REDIS_PORT": "7000"}


def sample(name: str) -> str:
    """Return a value of a variable that is not its default."""
    row = BY_VARIABLE[name]
    return SAMPLES.get(name) or OTHER.get(name) or ("true" if row.takes is Takes.NOTHING else "77")


@pytest.mark.parametrize("name", [row.name for row in ROWS])
def test_every_variable_has_an_effect_or_a_note(name: str) -> None:
    """With the variable, the options are others than without it, or a note has its name."""
    offline = name in ("CLIENT_TOKENS", "FRONTEND_TOKENS", "RELOAD_INTERVAL", "BOOTSTRAP_FILE")
    given = (OFFLINE if offline else BASE) | COMPANIONS.get(name, {})
    given = {other: value for other, value in given.items() if other != name}
    before, after = translate_edge(given, ""), translate_edge(given | {name: sample(name)}, "")
    is_named = any(note.name == name for note in after.notes)
    assert before.options != after.options or is_named
    assert all(option in KNOWN for option in after.options)
    assert "s3cret" not in "".join(map(str, after.notes))


@pytest.mark.parametrize("name", [row.name for row in ROWS if row.takes is Takes.NOTHING])
def test_a_switch_that_is_off(name: str) -> None:
    """A switch that is off asks for nothing: the options are those without it, or its opposite."""
    before, after = translate_edge(BASE, ""), translate_edge(BASE | {name: "false"}, "")
    changed = {option: value for option, value in after.options.items() if before.options.get(option) != value}
    assert all(value is True for value in changed.values())
    assert not any(note.about in (About.NEEDED, About.ABSENT) for note in after.notes)


def notes(migration: Migration, about: About) -> list[str]:
    """Return the notes of a kind, as texts."""
    return [f"{note.name}: {note.text}" for note in migration.notes if note.about is about]


@pytest.mark.parametrize(
    ("url", "ours"),
    [
        ("https://flags.example.com", "https://flags.example.com/api"),
        ("https://flags.example.com/", "https://flags.example.com/api"),
        ("https://flags.example.com/acme/api/", "https://flags.example.com/acme/api"),
        ("https://flags.example.com/api/client/features", "https://flags.example.com/api"),
        ("http://[::1", None),
        ("flags.example.com", None),
    ],
)
def test_upstream(url: str, ours: str | None) -> None:
    """Edge's URL has no `/api`, ours does. One that is none is a note."""
    found = translate_edge(BASE | {"UPSTREAM_URL": url}, "")
    assert found.options.get("flagsvcUrl") == ours and found.complete is (ours is not None)


@pytest.mark.parametrize(
    ("given", "trust"),
    [
        ({"TRUST_PROXY": "true"}, True),
        ({"TRUST_PROXY": "1", "PROXY_TRUSTED_SERVERS": "10.0.0.0/8, ::1"}, ["10.0.0.0/8", "::1"]),
        ({"TRUST_PROXY": "false", "PROXY_TRUSTED_SERVERS": "10.0.0.0/8"}, None),
        ({"PROXY_TRUSTED_SERVERS": "10.0.0.0/8"}, None),
        ({}, None),
    ],
)
def test_trust(given: dict[str, str], trust: object) -> None:
    """The switch decides, and the list is the value."""
    assert translate_edge(BASE | given, "").options.get("trustProxy") == trust


def test_one_port_with_tls() -> None:
    """With TLS the port is that of HTTPS, and a note names the one that is gone. Without it a certificate has no effect."""
    on = translate_edge(BASE | {"TLS_ENABLE": "true", "PORT": "80", "TLS_SERVER_PORT": "443"}, "")
    assert on.options["port"] == 443
    assert any("nothing listens at 80" in text for text in notes(on, About.CHANGED))
    off = translate_edge(BASE | {"TLS_SERVER_CERT": "/c.pem", "PORT": "80"}, "")
    assert off.options["port"] == 80 and "tlsCert" not in off.options
    assert notes(off, About.IGNORED) == ["TLS_SERVER_CERT: TLS_ENABLE is not on"]


@pytest.mark.parametrize(("host", "ours"), [("::", None), ("[::]", None), ("0.0.0.0", "0.0.0.0"), ("::1", "::1")])
def test_every_address(host: str, ours: str | None) -> None:
    """`::` is IPv4 as well in Edge, which is the default here: as a host it would be IPv6 alone."""
    assert translate_edge(BASE | {"INTERFACE": host}, "").options.get("host") == ours


@pytest.mark.parametrize(
    ("level", "ours", "told"),
    [
        ("info", "info", 0),
        ("TRACE", "debug", 0),
        ("unleash_edge=warn,hyper=off", "warn", 1),
        ("unleash_edge=info", "info", 0),
        ("off", None, 1),
    ],
)
def test_level(level: str, ours: str | None, told: int) -> None:
    """The first level that flagsvc has is taken. A note says that there is only one."""
    found = translate_edge(BASE | {"RUST_LOG": level}, "")
    assert found.options.get("logLevel") == ours
    assert len([note for note in found.notes if note.name == "RUST_LOG"]) == told


def test_first_of_two() -> None:
    """Two variables for one option: the second is named as left out."""
    found = translate_edge(BASE | {"PKCS8_CLIENT_CERTIFICATE_FILE": "/a.pem", "PEM_CERT_FILE": "/b.pem"}, "")
    assert found.options["upstreamCert"] == "/a.pem"
    assert notes(found, About.IGNORED) == ["PEM_CERT_FILE: upstreamCert has a value of another variable"]


@pytest.mark.parametrize(
    ("given", "base"),
    [({}, ""), ({"BASE_PATH": "flags/"}, "/flags"), ({"BASE_PATH": "/"}, ""), ({"BASE_PATH": "not a path"}, "")],
)
def test_metrics_are_below_the_base_path(given: dict[str, str], base: str) -> None:
    """The note has both paths as Prometheus asks for them, with the base path in front."""
    path = f"Prometheus reads {base}/internal-backstage/metrics there, {base}/proxy/internal-backstage/prometheus here"
    assert f"metrics: {path}" in notes(translate_edge(BASE | given, ""), About.CHANGED)


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy"])
def test_outbound_proxy(name: str) -> None:
    """Edge and flagsvc read the same variables for outbound proxies."""
    assert translate_edge(BASE | {name: "http://p:1"}, "").options["httpsProxy"] == "http://p:1"


def test_modes() -> None:
    """The subcommand decides about the mode, else the variables. What the other mode reads is named."""
    both = BASE | OFFLINE | {"CLIENT_TOKENS": "s3cret", "REDIS_URL": "redis://h"}
    online, offline = translate_edge(both, ""), translate_edge(both, "offline")
    assert online.options["flagsvcUrl"] == "https://flags.example.com/api"
    assert {text.partition(":")[0] for text in notes(online, About.IGNORED)} == {"BOOTSTRAP_FILE", "CLIENT_TOKENS"}
    assert offline.options["flagsvcUrl"] == "file:///flags.json"
    assert "tokenValidation" not in offline.options and "refreshInterval" not in offline.options
    assert {text.partition(":")[0] for text in notes(offline, About.IGNORED)} == {"UPSTREAM_URL", "REDIS_URL"}
    assert translate_edge(OFFLINE, "edge").options.get("flagsvcUrl") is None
