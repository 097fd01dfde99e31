"""Where Unleash Edge listens, whom it trusts, and what it logs, as our options."""

from __future__ import annotations

from collections.abc import Mapping

from flagsvc.cli.migrating.edge_tokens import split_list
from flagsvc.cli.migrating.migration import About, Migration
from flagsvc.settings.edge import BY_VARIABLE
from flagsvc.settings.kinds import BOOLEANS, LOG_LEVEL, RefusedError

DEFAULT = "Edge's default"
"""The reason for an option that keeps what Edge does without being told."""
PORT, TLS_PORT = BY_VARIABLE["PORT"].default, BY_VARIABLE["TLS_SERVER_PORT"].default
EVERYWHERE = ("::", "[::]")
LEVELS = {"trace": "debug"}
"""A level of Edge's log → ours, where it has another name."""


def translate_listening(given: Mapping[str, str], migration: Migration) -> None:
    """Set address, port and certificate. Edge has a port for each of HTTP and HTTPS, flagsvc has one."""
    translate_host(given, migration)
    secure = is_on(given, "TLS_ENABLE", migration)
    names = ("TLS_SERVER_CERT", "TLS_SERVER_KEY", "TLS_SERVER_PORT")
    if not secure:
        for name in names:
            if name in given:
                migration.note(About.IGNORED, name, "TLS_ENABLE is not on")
        _set_port("PORT", PORT, given, migration)
        return
    for option, name in zip(("tlsCert", "tlsKey"), names, strict=False):
        if name in given:
            migration.set(option, given[name].strip(), name)
    _set_port("TLS_SERVER_PORT", TLS_PORT, given, migration)
    text = f"one port speaks HTTPS, that of TLS_SERVER_PORT; nothing listens at {given.get('PORT', PORT).strip()}"
    migration.note(About.CHANGED, "TLS_ENABLE", text)


def translate_host(given: Mapping[str, str], migration: Migration) -> None:
    """Set the address to listen on. `::` is every address there, which is the default here."""
    host = given.get("INTERFACE", "").strip()
    if host in EVERYWHERE:
        migration.note(About.IGNORED, "INTERFACE", "every address is the default")
    elif host:
        migration.set("host", host, "INTERFACE")


def _set_port(name: str, default: str, given: Mapping[str, str], migration: Migration) -> None:
    """Set the port to that of a variable, or to Edge's default."""
    if name in given:
        migration.set("port", given[name].strip(), name)
    migration.set_default("port", int(default), DEFAULT)


def translate_trust(given: Mapping[str, str], migration: Migration) -> None:
    """Set whose addresses are trusted: a switch and a list there, one option here."""
    if not is_on(given, "TRUST_PROXY", migration):
        if "PROXY_TRUSTED_SERVERS" in given:
            migration.note(About.IGNORED, "PROXY_TRUSTED_SERVERS", "TRUST_PROXY is not on")
        return
    servers = split_list(given.get("PROXY_TRUSTED_SERVERS", ""))
    if servers:
        migration.set("trustProxy", servers, "PROXY_TRUSTED_SERVERS")
        migration.note(About.CHANGED, "TRUST_PROXY", "the list of PROXY_TRUSTED_SERVERS is its value here")
    else:
        migration.set("trustProxy", True, "TRUST_PROXY")


def translate_log(given: Mapping[str, str], migration: Migration) -> None:
    """Set the form and the level of the log."""
    if given.get("LOG_FORMAT", "").strip().lower() == "json":
        migration.set("useJsonLogger", True, "LOG_FORMAT")
    elif "LOG_FORMAT" in given:
        migration.note(About.IGNORED, "LOG_FORMAT", "text is the default")
    if "RUST_LOG" in given:
        words = [word.rpartition("=")[2].strip().lower() for word in given["RUST_LOG"].split(",")]
        levels = [LEVELS.get(word, word) for word in words]
        known = [level for level in levels if is_level(level)]
        if known:
            migration.set("logLevel", known[0], "RUST_LOG")
        if not known or len(levels) > 1:
            migration.note(
                About.CHANGED, "RUST_LOG", "flagsvc has one level, LOG_LEVEL: debug, info, warn, error or fatal"
            )


def is_level(text: str) -> bool:
    """Return whether a text is a level of our log."""
    try:
        return bool(LOG_LEVEL.parse(text))
    except RefusedError:
        return False


def is_on(given: Mapping[str, str], name: str, migration: Migration) -> bool:
    """Return whether a switch is on. A value that is neither on nor off becomes a note."""
    text = given.get(name, "false").strip().lower()
    if text not in BOOLEANS:
        migration.note(About.NEEDED, name, "expected true or false")
    return BOOLEANS.get(text, False)
