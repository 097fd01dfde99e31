"""What an application is made of that lasts: options, logger, extensions, names, and what compiling needs.

Made once and without a running loop: every mistake in options and extension files shows here. `world` makes of it
what runs in one loop.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Protocol, TypeVar

from flagsvc.core.certificates import CertificateFiles
from flagsvc.core.clock import Clock, SystemClock
from flagsvc.core.errors import ConfigurationError, ExtensionError
from flagsvc.core.extras import missing_extra
from flagsvc.core.log import Logger, Secrets, build_logger
from flagsvc.engine.compile import CompileOptions
from flagsvc.engine.strategies import STRATEGIES
from flagsvc.http.client.trust import OWN
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.extensions import Enrichers, Strategies, load_enrichers, load_strategies
from flagsvc.proxy.upstream import Identity, Trust
from flagsvc.settings.defaults import host_name
from flagsvc.settings.options import ProxyOptions, secrets_of
from flagsvc.settings.storage import server_at

T = TypeVar("T")

RENAMED = {
    "app_name": "flagsvc_app_name",
    "base_path": "proxy_base_path",
    "server_tokens": "exp_server_side_sdk_config_tokens",
}
"""Field of ServiceSettings → option, where the two have different names."""


class Restarting(Protocol):
    """Loops that survive faults."""

    @property
    def restarts(self) -> int:
        """How many they have survived."""


@dataclass(frozen=True)
class ProxySetup:
    """The lasting parts of one application. Nothing in it is bound to a loop; two plans share nothing.

    `serving_log` is the logger of the HTTP contract: with an access log it also writes at level info, whatever logLevel is; neither
    logger writes what is in `secrets`. `loops` are those of this process beside what is made of the plan, by name.
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
    secrets: Secrets
    loops: dict[str, Restarting] = field(default_factory=dict)


def make_setup(options: ProxyOptions, *, again: bool = False) -> ProxySetup:
    """Return the plan of an application with these options; `again` in a process whose parent has made it, and has warned.

    Raises ExtensionError, one line for each file or object of custom strategies or enrichers that cannot be used.
    Raises ConfigurationError for certificates towards the upstream that cannot, and for a storage whose extra is not installed.
    """
    clock = SystemClock()
    secrets = Secrets(secrets_of(options))
    log = logger_of(options, clock, options.log_level, secrets)
    apart = options.access_log and options.log_level != "debug"
    serving_log = logger_of(options, clock, "info", secrets) if apart else log
    if not again:
        check_storage(options)
        make_trust(options).check()
    strategies, enrichers = load_extensions(options)
    for name in () if again else sorted(strategies.by_name.keys() & STRATEGIES.keys()):
        log.warn("a custom strategy takes the place of the built-in one of its name", strategy=name)
    identity = Identity(options.flagsvc_app_name, options.flagsvc_instance_id)
    compiling, serving = compile_options(options, strategies), service_settings(options, strategies)
    return ProxySetup(options, clock, log, identity, strategies, enrichers, compiling, serving, serving_log, secrets)


def check_storage(options: ProxyOptions) -> None:
    """Raise ConfigurationError where the storage is a Redis or Valkey server, and the extra for it is not installed."""
    if server_at(options.storage) is not None and (problem := missing_extra("redis")):
        raise ConfigurationError([f"storage: {problem}"])


def survived(plan: ProxySetup) -> dict[str, int]:
    """Return how many faults the loops beside what is made of the plan have survived, by name."""
    return {name: loop.restarts for name, loop in plan.loops.items()}


def renewed(plan: ProxySetup, options: ProxyOptions) -> ProxySetup:
    """Return the plan with other keys and tokens; its loggers, which both plans have, write none of them."""
    plan.secrets.add(secrets_of(options))
    return replace(plan, options=options, serving=service_settings(options, plan.strategies))


def logger_of(options: ProxyOptions, clock: Clock, level: str, secrets: Secrets) -> Logger:
    """Return the logger that the options ask for, at `level` and above."""
    return build_logger(options.logger, level=level, as_json=options.use_json_logger, clock=clock, secrets=secrets)


def make_trust(options: ProxyOptions) -> Trust:
    """Return whom connections to the upstream trust, and as whom they show themselves."""
    cert, key, password = options.upstream_cert, options.upstream_key, options.upstream_key_password
    own = None if cert is None else CertificateFiles(OWN, cert, key, password)
    return Trust(options.http_options_reject_unauthorized, options.upstream_ca, own)


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
    names = [each.name for each in fields(ServiceSettings)]
    values = {name: getattr(options, RENAMED.get(name, name)) for name in names}
    return ServiceSettings(**values | {"custom_strategies": tuple(strategies.by_name)})
