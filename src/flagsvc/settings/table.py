"""The options of both programs, read off their rows: the loader, `--help`, the reference pages and the tests read these tables."""

from __future__ import annotations

from flagsvc.settings.base import rows_of
from flagsvc.settings.option import Option
from flagsvc.settings.rows.callers import CallerOptions, CorsOptions
from flagsvc.settings.rows.evaluation import EvaluationOptions
from flagsvc.settings.rows.experimental import ExperimentalOptions
from flagsvc.settings.rows.listening import ListeningOptions
from flagsvc.settings.rows.logging import LoggingOptions
from flagsvc.settings.rows.metrics import MetricsOptions
from flagsvc.settings.rows.server import (
    ServerCallers,
    ServerListening,
    ServerLogging,
    ServerSignIn,
    ServerStorage,
    ServerWebhooks,
)
from flagsvc.settings.rows.storage import StorageOptions
from flagsvc.settings.rows.upstream import UpstreamOptions


class ProxyRows(
    UpstreamOptions,
    CallerOptions,
    ListeningOptions,
    EvaluationOptions,
    MetricsOptions,
    StorageOptions,
    LoggingOptions,
    CorsOptions,
    ExperimentalOptions,
):
    """The options of the proxy, section by section."""


class ServerRows(ServerListening, ServerCallers, ServerSignIn, ServerWebhooks, ServerStorage, ServerLogging):
    """The options of the flag server, section by section."""


OPTIONS: tuple[Option, ...] = rows_of(ProxyRows)
"""Every option of `flagsvc proxy`, section by section."""

SERVER_OPTIONS: tuple[Option, ...] = rows_of(ServerRows)
"""Every option of `flagsvc server`, section by section. Options of both programs are the proxy's rows."""

BY_NAME = {option.name: option for option in OPTIONS}

MOST_USED = (
    *("flagsvcUrl", "flagsvcApiToken", "clientKeys", "refreshInterval", "storage", "port", "trustProxy", "cors.origin"),
    *("workers", "logLevel"),
)
"""The options that most deployments look at: README.md and the short help show them."""

SERVER_MOST_USED = ("database", "seed", "initBackendTokens", "basePath", "publicUrl", "oidcIssuer")
"""The options of the flag server alone that its short help shows beside those of the proxy."""
