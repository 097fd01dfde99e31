"""What an application is made of that lasts: options, logger, extensions, names, and what compiling needs.

Made once and without a running loop: every mistake in options and extension files shows here. `world` makes of it
what runs in one loop.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TypeVar

from flagsvc.api.settings import ServiceSettings
from flagsvc.clock import Clock, SystemClock
from flagsvc.engine.compile import CompileOptions
from flagsvc.engine.strategies import STRATEGIES
from flagsvc.errors import ExtensionError
from flagsvc.extensions import Enrichers, Strategies, load_enrichers, load_strategies
from flagsvc.log import Logger, build_logger
from flagsvc.settings.defaults import host_name
from flagsvc.settings.options import ProxyOptions
from flagsvc.upstream import Identity

T = TypeVar("T")

RENAMED = {
    "app_name": "flagsvc_app_name",
    "base_path": "proxy_base_path",
    "server_tokens": "exp_server_side_sdk_config_tokens",
}
"""Field of ServiceSettings → option, where the two have different names."""


@dataclass(frozen=True)
class Plan:
    """The lasting parts of one application. Nothing in it is bound to a loop; two plans share nothing.

    `serving_log` is the logger of the HTTP contract: with an access log it also writes at level info, whatever logLevel is.
    """

    options: ProxyOptions
    clock: Clock
    log: Logger
    identity: Identity
    strategies: Strategies
    enrichers: Enrichers
    compiling: CompileOptions
    serving: ServiceSettings
    serving_log: Logger


def make_plan(options: ProxyOptions, *, again: bool = False) -> Plan:
    """Return the plan of an application with these options; `again` in a process whose parent has made it, and has warned.

    Raises ExtensionError, one line for each file or object of custom strategies or enrichers that cannot be used.
    """
    clock = SystemClock()
    log = logger_of(options, clock, options.log_level)
    serving_log = logger_of(options, clock, "info") if options.access_log and options.log_level != "debug" else log
    strategies, enrichers = load_extensions(options)
    for name in () if again else sorted(strategies.by_name.keys() & STRATEGIES.keys()):
        log.warn("a custom strategy takes the place of the built-in one of its name", strategy=name)
    identity = Identity(options.flagsvc_app_name, options.flagsvc_instance_id)
    compiling, serving = compile_options(options, strategies), service_settings(options, strategies)
    return Plan(options, clock, log, identity, strategies, enrichers, compiling, serving, serving_log)


def logger_of(options: ProxyOptions, clock: Clock, level: str) -> Logger:
    """Return the logger that the options ask for, at `level` and above; it writes none of the secrets in them."""
    secrets = [options.flagsvc_api_token, options.exp_bootstrap_authorization or ""]
    secrets += [*options.client_keys, *options.exp_server_side_sdk_config_tokens]
    return build_logger(options.logger, level=level, as_json=options.use_json_logger, clock=clock, secrets=secrets)


def load_extensions(options: ProxyOptions) -> tuple[Strategies, Enrichers]:
    """Return the custom strategies and enrichers; what is wrong with either is told together."""
    problems: list[str] = []

    def attempt(load: Callable[[Iterable[object]], T], sources: Iterable[object]) -> T:
        try:
            return load(sources)
        except ExtensionError as error:
            problems.append(str(error))
            return load(())

    strategies = attempt(load_strategies, options.custom_strategies)  # type: ignore[arg-type]
    enrichers = attempt(load_enrichers, options.exp_custom_enrichers)  # type: ignore[arg-type]
    if problems:
        raise ExtensionError("\n".join(problems))
    return strategies, enrichers


def compile_options(options: ProxyOptions, strategies: Strategies) -> CompileOptions:
    """Return what the engine needs to know beside a document."""
    return CompileOptions(
        hash_encoding=options.hash_encoding,
        hostname=host_name(os.environ),
        variant_feature_state=options.variant_feature_state,
        custom_strategies=strategies.by_name,
        project=options.project_name,
        name_prefix=options.name_prefix,
        code_digest=strategies.digest,
    )


def service_settings(options: ProxyOptions, strategies: Strategies) -> ServiceSettings:
    """Return what the HTTP contract needs to know of the options."""
    names = [field.name for field in fields(ServiceSettings)]
    values = {name: getattr(options, RENAMED.get(name, name)) for name in names}
    return ServiceSettings(**values | {"custom_strategies": tuple(strategies.by_name)})
