"""The lasting parts of an application: options, logger, extensions, identity, and the settings of engine and service.

They are made once, without a running loop, so that every mistake in options and extension files is found here. `runtime` builds
from them what runs in one loop.
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
from flagsvc.core.log import EventLogger, Logger, Secrets, build_logger
from flagsvc.engine.compile import CompileOptions
from flagsvc.engine.strategies import STRATEGIES
from flagsvc.http.client.trust import OWN
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.changes import needs_replacement, with_keys_meanwhile
from flagsvc.proxy.extensions import Enrichers, Strategies, load_enrichers, load_strategies
from flagsvc.proxy.tokens import OwnSecrets
from flagsvc.proxy.upstream import Identity, Trust
from flagsvc.settings.defaults import host_name
from flagsvc.settings.options import ProxyOptions, secrets_of
from flagsvc.settings.places import Resolved
from flagsvc.settings.storage import server_at
from flagsvc.settings.tokens import read_scope

T = TypeVar("T")

RENAMED = {
    "app_name": "flagsvc_app_name",
    "base_path": "proxy_base_path",
    "server_tokens": "exp_server_side_sdk_config_tokens",
}
"""Field of ServiceSettings → field of the option, where the two have different names."""


class RestartCounter(Protocol):
    """Loops that are restarted when they fail."""

    @property
    def restarts(self) -> int:
        """The number of restarts."""


@dataclass(frozen=True)
class ProxySetup:
    """The lasting parts of one application. Nothing in it is bound to an event loop, and two setups share nothing.

    `service_log` is the logger of the HTTP service. If there is an access log, it writes at level info too, at every logLevel.
    Both loggers mask `secrets`; `own_secrets` are not shown to upstreams. `loops` are other loops of this process, by name, whose
    restarts are reported.

    In a process with several environments, each one of `environments` is the setup of one environment, and has its `name`. The
    rest is the setup of what they share, such as `checked_folders`, the storage folders that are checked already. A process with a
    single environment has a single setup without a name. `resolved` is what the options were read from, if they were read.
    """

    options: ProxyOptions
    clock: Clock
    log: EventLogger
    identity: Identity
    strategies: Strategies
    enrichers: Enrichers
    compile_options: CompileOptions
    service_settings: ServiceSettings
    service_log: EventLogger
    secrets: Secrets
    own_secrets: OwnSecrets
    loops: dict[str, RestartCounter] = field(default_factory=dict)
    name: str = ""
    environments: tuple[ProxySetup, ...] = ()
    checked_folders: set[str] = field(default_factory=set)
    resolved: Resolved | None = field(default=None, repr=False)

    @property
    def has_pages(self) -> bool:
        """Whether the process has pages, which show what is kept for them alone."""
        return self.options.admin_address is not None and self.options.admin_pages

    @property
    def parts(self) -> tuple[ProxySetup, ...]:
        """The setups of the environments: this one, if there is a single environment."""
        return self.environments or (self,)


def make_setup(options: ProxyOptions, *, is_worker: bool = False, resolved: Resolved | None = None) -> ProxySetup:
    """Return the setup of an application with these options. `is_worker` skips checks and warnings that the parent has done.

    Raises ExtensionError, with one line for each file or object of custom strategies or enrichers that cannot be used. Raises
    ConfigurationError for certificates towards the upstream that cannot be used, and for a storage whose extra is not
    installed.
    """
    clock = SystemClock()
    secrets = Secrets(secrets_of(options))
    log = make_logger(options, clock, options.log_level, secrets)
    is_separate = options.access_log and options.log_level != "debug"
    service_log = make_logger(options, clock, "info", secrets) if is_separate else log
    if not is_worker:
        check_storage(options)
        make_trust(options).check()
    strategies, enrichers = load_extensions(options)
    if not is_worker:
        warn_of_names(strategies, log)
    identity = Identity(options.flagsvc_app_name, options.flagsvc_instance_id)
    setup = ProxySetup(
        options,
        clock,
        log,
        identity,
        strategies,
        enrichers,
        make_compile_options(options, strategies),
        make_service_settings(options, strategies),
        service_log,
        secrets,
        OwnSecrets(options),
    )
    made = tuple(make_environment_setup(setup, each.name, each.options, is_worker) for each in options.environments)
    return replace(setup, environments=made, resolved=resolved)


def make_environment_setup(
    process: ProxySetup, name: str, options: ProxyOptions, is_worker: bool = False
) -> ProxySetup:
    """Return the setup of one environment. Its log lines have a field with its name. Raises what `make_setup` does."""
    if not is_worker:
        make_trust(options).check()
    strategies, enrichers = process.strategies, process.enrichers
    if (options.custom_strategies, options.exp_custom_enrichers) != (
        process.options.custom_strategies,
        process.options.exp_custom_enrichers,
    ):
        strategies, enrichers = load_extensions(options)
    log = process.log.bind(environment=name)
    if strategies is not process.strategies and not is_worker:
        warn_of_names(strategies, log)
    return replace(
        process,
        name=name,
        options=options,
        log=log,
        service_log=process.service_log.bind(environment=name),
        identity=Identity(options.flagsvc_app_name, options.flagsvc_instance_id),
        strategies=strategies,
        enrichers=enrichers,
        compile_options=make_compile_options(options, strategies),
        service_settings=make_service_settings(options, strategies),
        loops={},
        environments=(),
    )


def warn_of_names(strategies: Strategies, log: Logger) -> None:
    """Log each custom strategy that has the name of a built-in one."""
    for name in sorted(strategies.by_name.keys() & STRATEGIES.keys()):
        log.warn("a custom strategy takes the place of the built-in one of its name", strategy=name)


def check_storage(options: ProxyOptions) -> None:
    """Raise ConfigurationError if the storage is a Redis or Valkey server and its extra is not installed."""
    if server_at(options.storage) is not None and (problem := missing_extra("redis")):
        raise ConfigurationError([f"storage: {problem}"])


def count_loop_restarts(setup: ProxySetup) -> dict[str, int]:
    """Return the restarts of the setup's `loops`, by name."""
    return {name: loop.restarts for name, loop in setup.loops.items()}


def renew_setup(setup: ProxySetup, options: ProxyOptions) -> ProxySetup:
    """Return the setup with other keys and tokens, and other environments. The loggers mask the new keys as well.

    The setup of an environment that has not changed is the same object. Raises what `make_setup` does.
    """
    setup.secrets.add(secrets_of(options))
    setup.own_secrets.add(options)
    known = {each.name: each for each in setup.environments}
    made = tuple(
        renew_environment(setup, known.get(each.name), each.name, each.options) for each in options.environments
    )
    settings = make_service_settings(options, setup.strategies)
    return replace(setup, options=options, service_settings=settings, environments=made)


def renew_meanwhile(former: ProxySetup, coming: ProxySetup) -> ProxySetup:
    """Return the setup of an environment that answers until another one takes its place, with the keys that open it meanwhile.

    Everything else stays, also the upstream's token.
    """
    options = with_keys_meanwhile(former.options, coming.options)
    return former if options == former.options else renew_setup(former, options)


def keys_of_setup(setup: ProxySetup) -> tuple[str, ...]:
    """Return the keys and tokens of callers of one environment."""
    return (*setup.service_settings.client_keys, *setup.service_settings.server_tokens)


def renew_environment(process: ProxySetup, known: ProxySetup | None, name: str, options: ProxyOptions) -> ProxySetup:
    """Return the setup of an environment, which may be new. If only keys and tokens differ, the known one is renewed.

    A token of another project or environment makes it another one.
    """
    if known is None or needs_replacement(known.options, options):
        return make_environment_setup(process, name, options)
    return renew_setup(known, options) if options != known.options else known


def make_logger(options: ProxyOptions, clock: Clock, level: str, secrets: Secrets) -> EventLogger:
    """Return the logger of the options, which writes at `level` and above."""
    return build_logger(options.logger, level=level, as_json=options.use_json_logger, clock=clock, secrets=secrets)


def make_trust(options: ProxyOptions) -> Trust:
    """Return the trusted authorities and the client certificate for connections to the upstream."""
    cert, key, password = options.upstream_cert, options.upstream_key, options.upstream_key_password
    own = None if cert is None else CertificateFiles(OWN, cert, key, password)
    return Trust(options.http_options_reject_unauthorized, options.upstream_ca, own)


def load_extensions(options: ProxyOptions) -> tuple[Strategies, Enrichers]:
    """Return the custom strategies and enrichers. Raises ExtensionError with the problems of both."""
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


def make_compile_options(options: ProxyOptions, strategies: Strategies) -> CompileOptions:
    """Return the options of the engine's compiler."""
    return CompileOptions(
        hash_encoding=options.hash_encoding,
        hostname=host_name(os.environ),
        variant_feature_state=options.variant_feature_state,
        custom_strategies=strategies.by_name,
        project=options.project_name,
        name_prefix=options.name_prefix,
        code_digest=strategies.digest,
        class_bytes=options.class_cache_bytes,
    )


def make_service_settings(options: ProxyOptions, strategies: Strategies) -> ServiceSettings:
    """Return the settings of the HTTP service."""
    made = {
        "custom_strategies": tuple(strategies.by_name),
        "upstream_environment": environment_of(options.flagsvc_api_token) or options.environment or "default",
    }
    names = [each.name for each in fields(ServiceSettings) if each.name not in made]
    return ServiceSettings(**made | {name: getattr(options, RENAMED.get(name, name)) for name in names})


def environment_of(token: str) -> str:
    """Return the environment that a token names, as in `project:environment.secret`; empty if it names none."""
    named = read_scope(token)
    return "" if named is None else named.environment
