"""Checks what options name (certificates, extensions, the storage) before a start, so that all problems are listed together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from flagsvc.cli.error_output import JsonError
from flagsvc.core.errors import ConfigurationError, ExtensionError, FlagsvcError
from flagsvc.core.extras import missing_extra
from flagsvc.core.log import build_logger
from flagsvc.core.version import INTERPRETED, INTERPRETED_WARNING, engine_form
from flagsvc.settings.places import Resolved
from flagsvc.settings.storage import server_at

if TYPE_CHECKING:
    import ssl

TLS = ("tlsCert", "tlsKey", "tlsKeyPassword")
PAIRS = (
    TLS,
    ("upstreamCert", "upstreamKey", "upstreamKeyPassword"),
    ("storageCert", "storageKey", "storageKeyPassword"),
)
AUTHORITIES = ("tlsClientCa", "upstreamCa", "storageCa")


def check_certificates(resolved: Resolved) -> None:
    """Load the files as the program would, and add their problems. `ssl` is imported only if a file is given."""
    named = [names[0] for names in PAIRS] + list(AUTHORITIES)
    if not any(resolved.values.get(name) for name in named):
        return
    import ssl

    for name, load in _loads(resolved):
        try:
            load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        except ConfigurationError as error:
            resolved.problems.setdefault(name, "; ".join(error.problems))


def _loads(resolved: Resolved) -> Iterator[tuple[str, Callable[[ssl.SSLContext], None]]]:
    """Yield each given option's name and the function that loads its files."""
    from flagsvc.core.certificates import CertificateFiles, CertificateOptionNames, load_authorities

    values = resolved.values
    for names in PAIRS:
        if is_file_used(names[0], values) and not resolved.problems.keys() & set(names):
            yield names[0], CertificateFiles(CertificateOptionNames(*names), *(values[name] for name in names)).load
    for name in AUTHORITIES:
        if is_file_used(name, values):
            yield name, partial(load_authorities, name=name, path=values[name])


def is_file_used(name: str, values: Mapping[str, Any]) -> bool:
    """Return whether the program reads the file of an option. Files for the storage are read only for a server with TLS."""
    if not name.startswith("storage"):
        return bool(values.get(name))
    server = server_at(values.get("storage") or "none")
    return bool(values.get(name)) and server is not None and server.tls


def check_storage(resolved: Resolved) -> None:
    """Add a problem if the storage is a server and its client package is not installed."""
    if server_at(resolved.values["storage"]) is not None and (problem := missing_extra("redis")):
        resolved.problems["storage"] = f"storage ({resolved.sources['storage']}): {problem}"


EXTENSIONS = {"customStrategies": "load_strategies", "expCustomEnrichers": "load_enrichers"}
"""The options that name files of code, and the functions that load them; imported only if such a file is given."""


def check_extensions(resolved: Resolved) -> None:
    """Load the files of custom strategies and enrichers as the proxy would, and add their problems."""
    for name, function in EXTENSIONS.items():
        if not resolved.values[name]:
            continue
        from flagsvc.proxy import extensions

        try:
            getattr(extensions, function)(resolved.values[name])
        except ExtensionError as error:
            resolved.problems[name] = f"{name} ({resolved.sources[name]}): {error}"


def log_warnings(resolved: Resolved) -> None:
    """Log warnings about the options, also when they are rejected, and a warning if the engine is interpreted."""
    logger = build_logger(level=resolved.values["logLevel"], as_json=resolved.values["useJsonLogger"])
    for text in resolved.warnings:
        logger.warn(f"configuration: {text}")
    if engine_form() == INTERPRETED and not resolved.problems:
        logger.warn(INTERPRETED_WARNING)


@contextmanager
def report_errors_as_json(wanted: bool) -> Iterator[None]:
    """Wrap our errors so that they are printed as lines of JSON, if `wanted`: the program then logs JSON too."""
    try:
        yield
    except FlagsvcError as error:
        if not wanted:
            raise
        raise JsonError(error) from error
